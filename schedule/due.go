package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Overlap is the policy for a tick while the run of an earlier tick of the same schedule is not over.
type Overlap uint8

// The policies of overlap. The zero value skips.
const (
	OverlapSkip   Overlap = iota // the tick is skipped
	OverlapQueue                 // it starts when the earlier run has ended
	OverlapCancel                // the earlier run is canceled, and the tick starts
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

// Action is what happens at a tick.
type Action uint8

// The actions at a tick.
const (
	ActionStart   Action = iota // start the run of the tick
	ActionLeave                 // start nothing
	ActionWait                  // start it when the current run, and those that wait before it, have ended
	ActionReplace               // cancel the current run, and start it
)

// At returns what to do at a tick. busy says that a run of an earlier tick is in progress or waits.
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

// CatchUp is the policy for ticks that were missed.
type CatchUp uint8

// The policies for missed ticks. The zero value skips them.
const (
	CatchUpNone CatchUp = iota // ticks that are later than Grace are skipped
	CatchUpLast                // the latest tick starts, the others are skipped
	CatchUpAll                 // the latest CatchUpMost ticks start, in order
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

// Due is what is due at a point in time.
type Due struct {
	// Ticks are the ticks that start now, the earliest first.
	Ticks []time.Time

	// Last is the latest tick that was processed, whether it starts or is skipped: the argument of the next call of
	// Due. Store it in one transaction with the work of Ticks, so that each tick starts once.
	Last time.Time

	// LeftOut reports that ticks up to Last were missed and do not start.
	LeftOut bool

	// Next is when to call Due again: the start of the next tick. It is the zero time if there is none.
	Next time.Time
}

// Due returns what is due at time now, if all ticks up to last have been processed. last is the Last of the previous
// call. For a new or resumed schedule it is the time of its creation or resumption, or zero for now, so that the
// schedule starts with the ticks after it. Due is a function of its arguments: a process that asks again after a crash
// gets the same answer. A clock that is set back makes nothing due twice.
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
