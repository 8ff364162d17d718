package workflow

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/schedule"
)

// Scheduled is a schedule with the command that starts a case at each tick. Package builder creates one for a
// typed workflow; package engine/schedules runs it.
type Scheduled struct {
	Schedule schedule.Schedule `json:"schedule"`
	Start    Command           `json:"start"` // of a case; each tick has a key, an actor and a [Tick] of its own
}

// Check returns an error if the schedule is invalid, or if the command does not start a case or has a key or a time of its
// own. The error wraps schedule.ErrInvalid or ErrBadCommand, or says which option is invalid.
func (s *Scheduled) Check() error {
	if _, err := s.Schedule.Compile(); err != nil {
		return err
	}
	if err := checkCatchUp(&s.Schedule); err != nil {
		return err
	}
	if err := checkShort("name of the schedule", s.Schedule.Name); err != nil {
		return err
	}
	err := s.Start.Check()
	switch c := &s.Start; {
	case err != nil:
	case c.Kind != KindStart:
		err = fmt.Errorf("%w: its command is %q, and only a start can be scheduled", ErrBadCommand, c.Kind)
	case c.Key != "":
		err = fmt.Errorf("%w: it has a key, and each tick has its own; leave it out", ErrBadCommand)
	case !c.At.IsZero():
		err = fmt.Errorf("%w: it begins at one time, and the ticks are the times; leave At out", ErrBadCommand)
	}
	if err != nil {
		return fmt.Errorf("schedule %q: %w", s.Schedule.Name, err)
	}
	return nil
}

// checkCatchUp refuses a CatchUpMost that would have no effect, or that starts more runs in one transaction than a backfill may. It is
// checked when a schedule is declared or added, and not by Compile: one that an earlier version has stored goes on.
func checkCatchUp(s *schedule.Schedule) error {
	switch most := s.CatchUpMost; {
	case most != 0 && s.CatchUp != schedule.CatchUpAll:
		return fmt.Errorf("%w %q: CatchUpMost is %d, and CatchUp is %v: CatchUpMost has an effect with CatchUpAll alone; set CatchUp to it, or leave CatchUpMost out",
			schedule.ErrInvalid, s.Name, most, s.CatchUp)
	case most > schedule.DefaultCatchUpMost:
		return fmt.Errorf("%w %q: CatchUpMost is %d: use at most %d, and schedules.Backfill for earlier ticks", schedule.ErrInvalid, s.Name, most,
			schedule.DefaultCatchUpMost)
	}
	return nil
}

// Tick is the tick of a schedule that a run was started for.
type Tick struct {
	Schedule string    `json:"schedule"`
	At       time.Time `json:"at"` // the tick, without jitter or delay; of a run that was asked for by itself, the time of that
}

// TickOf returns the tick that a case was started for; false if it was not started by a schedule. A restarted case has the
// tick of the original.
func TickOf(c activities.CaseInfo) (Tick, bool) {
	o, err := OptionsOf(c)
	if err != nil || o.Tick == nil {
		return Tick{}, false
	}
	return *o.Tick, true
}
