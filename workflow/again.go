package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// Taken says what a start does if another root case of the workflow holds its business key. "" is [Refuse], if the workflow has
// builder.UniqueKey, and otherwise nothing: the key is not unique then.
type Taken string

// What a start does if its business key is taken. With each of them the key of the case that it starts is unique, as
// builder.UniqueKey has it: it is held while the case goes on, and once it has completed.
const (
	Refuse    Taken = "refuse"    // the error is a [*KeyTakenError]
	Return    Taken = "return"    // nothing is started; the result has the case that holds the key, and says so
	Replace   Taken = "replace"   // a case of which nothing has begun is canceled, and this one starts; another one refuses it
	Supersede Taken = "supersede" // a case that goes on is canceled, and this one starts; one that has completed refuses it

	// Queued has this case begin when those with the key that were started before it have ended, in the order of their starts; at once if
	// all have. It holds the key until it ends. A delay cannot be given too.
	Queued Taken = "queue"

	// Debounced puts the case off, see [Debounce], which has to be given too. A case that was put off so and has not begun is canceled, and
	// this one takes its place. It holds the key until it ends, but not against other starts that are debounced once it has begun.
	Debounced Taken = "debounce"
)

// Period is a part of the calendar.
type Period string

// The periods. Each begins when clocks of its zone show its beginning.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Week  Period = "week" // from Monday on
	Month Period = "month"
)

var (
	takens  = []Taken{Refuse, Return, Replace, Supersede, Queued, Debounced}
	periods = []Period{Hour, Day, Week, Month}
)

// IfTaken says what the start of a case does if another one holds its business key. Two starts at once, by whatever engines, are
// decided one after the other.
func IfTaken(t Taken) Option { return set(func(c *Command) { c.IfTaken = t }) }

// OncePer has a business key be taken by one case for each period of the calendar of a zone ("" is UTC): that in which the case
// begins. The period becomes a part of the key: "ada 2030-01-31 Europe/Berlin". Without [IfTaken] a further start is refused.
func OncePer(p Period, zone string) Option {
	return OptionFunc(func(c *Command) error {
		if p == "" {
			return fmt.Errorf("%w: OncePer has no period: give one of %q, or leave it out", ErrBadCommand, periods)
		}
		c.Per, c.Zone = p, zone
		return nil
	})
}

// MaxThrottle bounds how many starts [Throttle] may let through in a window: each start looks at those before it.
const MaxThrottle = 1000

// Throttle has at most n cases of the workflow with the business key start in any window of a length, however the window is laid:
//
//	start of ada   0 s   20 s   40 s      60 s       Throttle(2, time.Minute)
//	               yes   yes    refused   yes        two from 0 s until 60 s, two from 20 s until 80 s
//
// A start that is one too many is refused with a [*ThrottledError], which says when the next one may come; with [IfTaken] [Return] the
// result has the case that was started last. n is from 1 to [MaxThrottle]. All starts of root cases with the key count, whatever became of
// them; a case that is started with Throttle is kept for the window at least, whatever builder.Keep says. No delay can be given too, nor
// [OncePer], nor another IfTaken. To have work wait instead of refusing it, bound the function with builder.Limits and a limit.Rate by key.
func Throttle(n int, window time.Duration) Option {
	return OptionFunc(func(c *Command) error {
		c.Throttle, c.Window = n, window
		return c.checkWindow()
	})
}

// Debounce has the case begin when no start with its business key has come for a time: each further one within it takes the place of the
// one before, with its own input, and puts the begin off by that time again; but not beyond longest after the first of them, if that is not
// 0. So of many changes within a moment, the last one is worked on, once. It is [IfTaken] with [Debounced]. The case whose place is taken is
// canceled, with the code "replaced". A delay cannot be given too.
func Debounce(quiet, longest time.Duration) Option {
	return set(func(c *Command) { c.IfTaken, c.Quiet, c.Longest = Debounced, quiet, longest })
}

// PutOff is how long after now a debounced start begins, of which the first came at a time.
func (c *Command) PutOff(first, now time.Time) time.Duration {
	if c.Longest == 0 {
		return c.Quiet
	}
	return max(0, min(c.Quiet, first.Add(c.Longest).Sub(now)))
}

// throttled reports whether a start is one of [Throttle].
func (c *Command) throttled() bool { return c.Throttle != 0 || c.Window != 0 }

// asksUnique reports whether a start wants its key to be unique.
func (c *Command) asksUnique() bool { return !c.throttled() && (c.IfTaken != "" || c.Per != "") }

// Wish is what a start asks of its business key.
type Wish struct {
	Unique bool
	Queued bool              // the case begins when those before it have ended
	Beside []workitem.CaseID // cases that may hold the key too
	Window string            // a part of the key; "" for none

	Throttle int // how many cases with the key may start in a time; 0 is any number
	Within   time.Duration
}

// KeyWish is what a start asks of its business key, of a case that begins at a time.
func (c *Command) KeyWish(begins time.Time) (Wish, error) {
	w := Wish{Unique: c.asksUnique(), Queued: c.IfTaken == Queued, Throttle: c.Throttle, Within: c.Window}
	if c.Per == "" {
		return w, nil
	}
	zone, err := schedule.Location(c.Zone)
	if err != nil {
		return w, fmt.Errorf("%w: OncePer: %w", ErrBadCommand, err)
	}
	w.Window = c.Per.of(begins.In(zone))
	if c.Zone != "" {
		w.Window += " " + c.Zone
	}
	return w, nil
}

// of is the period of a time, in its zone.
func (p Period) of(t time.Time) string {
	switch p {
	case Hour:
		return t.Format("2006-01-02T15-0700")
	case Week:
		year, week := t.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case Month:
		return t.Format("2006-01")
	}
	return t.Format(time.DateOnly)
}

// checkWindow checks the numbers of a [Throttle].
func (c *Command) checkWindow() error {
	switch {
	case c.Throttle < 1 || c.Throttle > MaxThrottle:
		return fmt.Errorf("%w: Throttle lets %d starts through in a window: give 1 to %d", ErrBadCommand, c.Throttle, MaxThrottle)
	case c.Window < time.Microsecond:
		return fmt.Errorf("%w: the window of Throttle is %s: give a microsecond or more", ErrBadCommand, c.Window)
	}
	return nil
}

func (c *Command) checkThrottle() error {
	switch {
	case !c.throttled():
		return nil
	case c.IfTaken != "" && c.IfTaken != Refuse && c.IfTaken != Return:
		return fmt.Errorf("%w: a start with Throttle is refused, or returns the last case, and IfTaken is %q: give %q or %q",
			ErrBadCommand, c.IfTaken, Refuse, Return)
	case c.Per != "":
		return fmt.Errorf("%w: the start has OncePer and Throttle: give one of them", ErrBadCommand)
	case c.After != 0 || !c.At.IsZero():
		return fmt.Errorf("%w: the start is throttled, and the case is to begin later: give one of them", ErrBadCommand)
	}
	return c.checkWindow()
}

func (c *Command) checkAgain() error {
	if err := c.checkThrottle(); err != nil {
		return err
	}
	switch {
	case c.IfTaken != "" && !slices.Contains(takens, c.IfTaken):
		return fmt.Errorf("%w: IfTaken is %q, and none of %q", ErrBadCommand, c.IfTaken, takens)
	case c.Per != "" && !slices.Contains(periods, c.Per):
		return fmt.Errorf("%w: OncePer is %q, and none of %q", ErrBadCommand, c.Per, periods)
	case c.IfTaken == Queued && (c.After != 0 || !c.At.IsZero()):
		return fmt.Errorf("%w: IfTaken is %q, and the case is to begin later: give one of them", ErrBadCommand, Queued)
	case c.IfTaken == Debounced && (c.After != 0 || !c.At.IsZero()):
		return fmt.Errorf("%w: the start is debounced, and the case is to begin later: give one of them", ErrBadCommand)
	case (c.Quiet != 0 || c.Longest != 0) && c.IfTaken != Debounced:
		return fmt.Errorf("%w: the times of Debounce are for IfTaken %q, and it is %q", ErrBadCommand, Debounced, c.IfTaken)
	case c.IfTaken == Debounced && c.Quiet <= 0:
		return fmt.Errorf("%w: the start is debounced by %s: give more than 0", ErrBadCommand, c.Quiet)
	case c.IfTaken == Debounced && c.Longest != 0 && c.Longest < c.Quiet:
		return fmt.Errorf("%w: the start is debounced by %s, and at most by %s: give at least as much, or 0 for no bound", ErrBadCommand, c.Quiet, c.Longest)
	case c.Zone != "" && c.Per == "":
		return fmt.Errorf("%w: a zone is for OncePer; give both", ErrBadCommand)
	}
	_, err := c.KeyWish(time.Time{})
	return err
}
