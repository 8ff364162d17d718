package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Overlap says what happens at a tick while what began at an earlier tick of the same schedule still runs.
type Overlap uint8

// The policies of overlap. The zero value skips.
const (
	OverlapSkip   Overlap = iota // the tick is left out
	OverlapQueue                 // it begins when what runs has ended
	OverlapCancel                // what runs is canceled, and the tick begins
	OverlapAllow                 // both run
)

var overlapNames = []string{"skip", "queue", "cancel", "allow"}

// String returns "skip", "queue", "cancel" or "allow".
func (o Overlap) String() string { return nameOf("overlap", overlapNames, int(o)) }

// MarshalText returns the name that String returns.
func (o Overlap) MarshalText() ([]byte, error) { return textOf("Overlap", overlapNames, int(o)) }

// UnmarshalText sets the policy by its name. Another text is an error that is [ErrInvalid].
func (o *Overlap) UnmarshalText(text []byte) error {
	i, err := find("Overlap", overlapNames, text)
	*o = Overlap(i)
	return err
}

// Action is what is done at a tick.
type Action uint8

// The actions at a tick.
const (
	ActionStart   Action = iota // what belongs to the tick begins
	ActionLeave                 // nothing begins
	ActionWait                  // it begins when what runs, and what waits before it, has ended
	ActionReplace               // what runs is canceled, and it begins
)

// At returns what is done at a tick. busy says that what began at an earlier tick runs, or waits.
func (o Overlap) At(busy bool) Action {
	switch {
	case !busy || o == OverlapAllow:
		return ActionStart
	case o == OverlapQueue:
		return ActionWait
	case o == OverlapCancel:
		return ActionReplace
	}
	return ActionLeave
}

// CatchUp says what happens to ticks that were missed.
type CatchUp uint8

// The policies of catching up. The zero value leaves out what was missed.
const (
	CatchUpNone CatchUp = iota // ticks that are later than Grace are left out
	CatchUpLast                // the latest tick begins, the others are left out
	CatchUpAll                 // the latest CatchUpMost ticks begin, in their order
)

var catchUpNames = []string{"none", "last", "all"}

// String returns "none", "last" or "all".
func (c CatchUp) String() string { return nameOf("catch-up", catchUpNames, int(c)) }

// MarshalText returns the name that String returns.
func (c CatchUp) MarshalText() ([]byte, error) { return textOf("CatchUp", catchUpNames, int(c)) }

// UnmarshalText sets the policy by its name. Another text is an error that is [ErrInvalid].
func (c *CatchUp) UnmarshalText(text []byte) error {
	i, err := find("CatchUp", catchUpNames, text)
	*c = CatchUp(i)
	return err
}

func nameOf(what string, names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

func textOf(what string, names []string, i int) ([]byte, error) {
	if i >= len(names) {
		return nil, fmt.Errorf("%w: %s is %d: use one of the constants", ErrInvalid, what, i)
	}
	return []byte(names[i]), nil
}

func find(what string, names []string, text []byte) (int, error) {
	i := slices.Index(names, string(text))
	if i < 0 {
		return 0, fmt.Errorf("%w: %s is %q: use one of %q", ErrInvalid, what, text, names)
	}
	return i, nil
}

// Due is what a schedule asks for at a time.
type Due struct {
	// Ticks are those that begin now, the earliest first.
	Ticks []time.Time

	// Last is the latest tick that was looked at, whether it begins or is left out. The next call of Due takes it. It
	// is what to store: in one transaction with what begins at Ticks, so that each tick begins once.
	Last time.Time

	// LeftOut says that ticks before Last were missed and do not begin.
	LeftOut bool

	// Next is when Due is to be called again: the beginning of the next tick. The zero time if there is none.
	Next time.Time
}

// Due returns what is due at a time, if all ticks up to last have been looked at. last is the Last of the call before;
// for a schedule that is new or was resumed it is the time of that, or zero for now, so that it begins with the ticks
// after it. Due is a function of its arguments: a process that asks again after a crash gets the same answer. A clock
// that goes back makes nothing due twice.
func (t *Timetable) Due(last, now time.Time) Due {
	if last.IsZero() {
		last = now
	}
	if t.schedule.Paused {
		return Due{Last: last}
	}
	d := Due{Last: last}
	if latest := t.latest(last, now, 1); len(latest) > 0 {
		d.Last = latest[0]
		switch t.schedule.CatchUp {
		case CatchUpLast:
			d.Ticks = latest
		case CatchUpAll:
			d.Ticks = t.latest(last, now, cmp.Or(t.schedule.CatchUpMost, DefaultCatchUpMost))
		default:
			d.Ticks = t.onTime(last, now)
		}
		d.LeftOut = len(d.Ticks) == 0 || !d.Ticks[0].Equal(t.Next(last))
	}
	if next := t.Next(d.Last); !next.IsZero() {
		d.Next = t.Begin(next)
	}
	return d
}

// begun returns the ticks after from that have begun. Each begins before the next tick, so they are all before some time.
func (t *Timetable) begun(from, now time.Time) (ticks []time.Time) {
	for tick := range t.After(from) {
		if t.Begin(tick).After(now) {
			break
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// latest returns the last n of the ticks that have begun. It looks back further and further, and so not at all that a long
// time has missed.
func (t *Timetable) latest(last, now time.Time, n int) []time.Time {
	for span := time.Minute; ; span *= 4 {
		from := now.Add(-span)
		all := !from.After(last) || span > 1<<60
		if all {
			from = last
		}
		if ticks := t.begun(from, now); all || len(ticks) >= n {
			return ticks[max(0, len(ticks)-n):]
		}
	}
}

// onTime returns the ticks that have begun, and are not missed.
func (t *Timetable) onTime(last, now time.Time) []time.Time {
	grace := cmp.Or(t.schedule.Grace, DefaultGrace)
	from := now.Add(-grace - t.schedule.Jitter)
	if from.Before(last) {
		from = last
	} else {
		from = from.Add(-1)
	}
	return slices.DeleteFunc(t.begun(from, now), func(tick time.Time) bool { return now.Sub(t.Begin(tick)) > grace })
}
