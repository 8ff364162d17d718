package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// Taken is the policy of a start whose business key another root case of the workflow holds. The zero value is Refuse
// if the workflow has builder.UniqueKey; otherwise keys need not be unique.
type Taken string

// The policies. With each of them the key of the new case is unique, as with builder.UniqueKey: the case holds it
// while it is active, and after it has completed.
const (
	Refuse    Taken = "refuse"    // fail with a [*KeyTakenError]
	Return    Taken = "return"    // start nothing; the result has the case that holds the key, and Found set
	Replace   Taken = "replace"   // cancel a case that has not started yet, and start; otherwise fail
	Supersede Taken = "supersede" // cancel an active case, and start; fail if it has completed

	// Queued starts this case when all earlier cases with the key have ended, in the order of their starts. It holds
	// the key until it ends. It cannot be combined with a delay.
	Queued Taken = "queue"

	// Debounced delays the case, see [Debounce], which is required. It replaces a debounced case that has not started,
	// which is canceled. It holds the key until it ends, but after its start no longer against other debounced starts.
	Debounced Taken = "debounce"
)

// Period is a calendar period.
type Period string

// The periods. Each begins at its local time in the zone.
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

// IfTaken says what the start of a case does if another case holds its business key. Concurrent starts are decided one
// after the other, also in different engines.
func IfTaken(t Taken) Option { return set(func(c *Command) { c.IfTaken = t }) }

// OncePer allows one case with a business key in each calendar period of a time zone ("" is UTC), determined by the
// start of the case. The period becomes part of the key: "ada 2030-01-31 Europe/Berlin". Without IfTaken a further
// start is rejected.
func OncePer(p Period, zone string) Option {
	return OptionFunc(func(c *Command) error {
		if p == "" {
			return fmt.Errorf("%w: OncePer has no period: give one of %q, or leave it out", ErrBadCommand, periods)
		}
		c.Per, c.Zone = p, zone
		return nil
	})
}

// MaxThrottle is the largest number of starts in the window of a Throttle: each start examines those before it.
const MaxThrottle = 1000

// Throttle allows at most n starts of cases of the workflow with the business key in any (sliding) window of the given
// length:
//
//	start of ada   0 s   20 s   40 s      60 s       Throttle(2, time.Minute)
//	               yes   yes    refused   yes        two from 0 s until 60 s, two from 20 s until 80 s
//
// A further start fails with a *ThrottledError, which says when the next one is possible; with IfTaken(Return) the
// result has the case that was started last. n is from 1 to MaxThrottle. All starts of root cases with the key count,
// whatever became of the cases; a case that is started with Throttle is kept at least for the window, regardless of
// builder.Keep. It cannot be combined with a delay, OncePer or another IfTaken. To delay work instead of rejecting it,
// use builder.Limits with a limit.Rate by key.
func Throttle(n int, window time.Duration) Option {
	return OptionFunc(func(c *Command) error {
		c.Throttle, c.Window = n, window
		return c.checkWindow()
	})
}

// Debounce starts the case when there has been no further start with its business key for the time quiet. Each further
// start replaces the one before, with its own input, and restarts the wait, but the case starts at the latest when
// longest has passed since the first start, if that is not 0. So of many changes in a short time only the last is
// processed, once. It implies IfTaken(Debounced). The replaced case is canceled with the code "replaced". It cannot be
// combined with a delay.
func Debounce(quiet, longest time.Duration) Option {
	return set(func(c *Command) { c.IfTaken, c.Quiet, c.Longest = Debounced, quiet, longest })
}

// DebounceDelay returns how long after now a debounced start begins, if the first start with its key was at first.
func (c *Command) DebounceDelay(first, now time.Time) time.Duration {
	if c.Longest == 0 {
		return c.Quiet
	}
	return max(0, min(c.Quiet, first.Add(c.Longest).Sub(now)))
}

// throttled reports whether a start is one of [Throttle].
func (c *Command) throttled() bool { return c.Throttle != 0 || c.Window != 0 }

// asksUnique reports whether a start wants its key to be unique.
func (c *Command) asksUnique() bool { return !c.throttled() && (c.IfTaken != "" || c.Per != "") }

// KeyRequirements is what a start requires of its business key.
type KeyRequirements struct {
	Unique bool
	Queued bool              // the case begins when those before it have ended
	Except []workitem.CaseID // cases that may hold the key too
	Window string            // a part of the key; "" for none

	Throttle int // how many cases with the key may start in a time; 0 is any number
	Within   time.Duration
}

// KeyRequirements returns what a start of a case that begins at a time requires of its business key.
func (c *Command) KeyRequirements(begins time.Time) (KeyRequirements, error) {
	w := KeyRequirements{Unique: c.asksUnique(), Queued: c.IfTaken == Queued, Throttle: c.Throttle, Within: c.Window}
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
	_, err := c.KeyRequirements(time.Time{})
	return err
}
