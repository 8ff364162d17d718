package schedule

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"strings"
	"time"
)

// Schedule says when recurring work starts: at the ticks of a cron expression, or at intervals. It is plain data, which
// can be compared, stored and encoded as JSON; [Schedule.Compile] makes a [Timetable] of it.
type Schedule struct {
	// Name identifies the schedule, and spreads its jitter.
	Name string `json:"name"`

	// Cron is an expression of five or six fields, or a name such as @daily; see the package comment. Either Cron or
	// Every is set.
	Cron string `json:"cron,omitempty"`

	// Every is the time between two ticks, at least a second. It is elapsed time: daylight saving time does not change it.
	// The ticks are Start and whole intervals after it; without a Start, whole intervals since 1 January 1970 UTC.
	Every time.Duration `json:"every,omitempty"`

	// Zone is the time zone of Cron, a name of the tz database such as Europe/Berlin. Default: UTC.
	Zone string `json:"zone,omitempty"`

	// Start and End limit the ticks: none is before Start, and none is at or after End. Default: no limit.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`

	// Jitter delays the start of a tick by a random part of this time. The part depends on Name and the tick alone,
	// so it is the same in every process and after every restart. It never reaches the next tick. Default: none.
	Jitter time.Duration `json:"jitter,omitempty"`

	// Overlap is the policy for a tick while the run of an earlier one is not over. Default: OverlapSkip.
	Overlap Overlap `json:"overlap,omitempty"`

	// CatchUp is the policy for ticks that were missed, because no process ran at their time. Default: CatchUpNone.
	CatchUp CatchUp `json:"catch_up,omitempty"`

	// CatchUpMost is how many missed ticks CatchUpAll starts at most: the latest ones. Default: 1000, which is also the most for a
	// schedule of an engine, since they start in one transaction. With another CatchUp it is an error there.
	CatchUpMost int `json:"catch_up_most,omitempty"`

	// Grace is how late a tick may start before CatchUpNone takes it for missed. Default: a minute.
	Grace time.Duration `json:"grace,omitempty"`

	// Paused stops the schedule: nothing is due.
	Paused bool `json:"paused,omitempty"`
}

// The defaults of CatchUpMost and Grace.
const (
	DefaultCatchUpMost = 1000
	DefaultGrace       = time.Minute
)

// Timetable is a compiled schedule, which computes its ticks. It is immutable and safe for concurrent use. Make one
// with [Schedule.Compile], [Cron] or [Every]; the zero Timetable has no ticks.
type Timetable struct {
	schedule Schedule
	zone     *time.Location
	cron     *cron // nil for an interval
}

// Cron returns the timetable of a cron expression in a zone; "" is UTC. The error is [ErrInvalid].
func Cron(expression, zone string) (*Timetable, error) {
	return Schedule{Name: expression, Cron: expression, Zone: zone}.Compile()
}

// Every returns the timetable of an interval, at least a second. The error is [ErrInvalid].
func Every(d time.Duration) (*Timetable, error) {
	return Schedule{Name: d.String(), Every: d}.Compile()
}

// Compile reads the schedule. What is wrong with it is one error, which is [ErrInvalid].
func (s Schedule) Compile() (*Timetable, error) {
	t := &Timetable{schedule: s}
	var wrong []string
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	refuse(s.Name == "", "it has no name")
	refuse((s.Cron == "") == (s.Every == 0), "set either Cron or Every")
	refuse(s.Every != 0 && s.Every < time.Second, "Every is %v: use at least a second", s.Every)
	refuse(!s.End.IsZero() && !s.Start.Before(s.End), "End is not after Start: nothing would begin")
	refuse(s.Jitter < 0, "Jitter is %v: use 0 or more", s.Jitter)
	refuse(s.Grace < 0, "Grace is %v: use 0 for a minute, or more", s.Grace)
	refuse(s.CatchUpMost < 0, "CatchUpMost is %d: use 0 for %d, or more", s.CatchUpMost, DefaultCatchUpMost)
	refuse(int(s.Overlap) >= len(overlapNames), "Overlap is %v: use one of the constants", s.Overlap)
	refuse(int(s.CatchUp) >= len(catchUpNames), "CatchUp is %v: use one of the constants", s.CatchUp)
	var err error
	t.zone, err = Location(s.Zone)
	refuse(err != nil, "%v", err)
	if s.Cron != "" {
		c, err := parseCron(s.Cron)
		if err != nil {
			wrong = append(wrong, strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
		}
		t.cron = &c
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%w %q: %s", ErrInvalid, s.Name, strings.Join(wrong, "; "))
	}
	return t, nil
}

// Schedule returns what the timetable was made of.
func (t *Timetable) Schedule() Schedule { return t.schedule }

// Next returns the first tick after a time, in the zone of the schedule; the zero time if there is none. It does not
// look at Paused, and jitter is not added; see [Timetable.Begin] and [Timetable.Due].
func (t *Timetable) Next(after time.Time) time.Time {
	s := &t.schedule
	if !s.Start.IsZero() && after.Before(s.Start) {
		after = s.Start.Add(-1)
	}
	tick := t.pattern(after)
	if !s.End.IsZero() && !tick.Before(s.End) {
		return time.Time{}
	}
	return tick
}

// pattern is Next without Start and End.
func (t *Timetable) pattern(after time.Time) time.Time {
	if t.cron != nil {
		return t.cron.nextTick(after, t.zone)
	}
	if t.schedule.Every <= 0 {
		return time.Time{}
	}
	start := t.schedule.Start
	if start.IsZero() {
		start = time.Unix(0, 0)
	}
	every := t.schedule.Every
	start = near(start, after, every)
	passed := after.Sub(start)
	whole := passed / every
	if passed%every < 0 {
		whole--
	}
	return start.Add(whole * every).Add(every).In(t.zone) // the sum of both may be more than a duration holds
}

// near returns a tick of an interval from which a duration reaches a time: 292 years, which [time.Time.Sub] returns for more, too.
func near(tick, to time.Time, every time.Duration) time.Time {
	const most = math.MaxInt64
	far := most / every * every
	for passed := to.Sub(tick); ; passed = to.Sub(tick) {
		switch passed {
		case most:
			tick = tick.Add(far)
		case math.MinInt64:
			tick = tick.Add(-far)
		default:
			return tick
		}
	}
}

// After returns the ticks after a time. The sequence is infinite if the schedule has no End.
func (t *Timetable) After(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for tick := t.Next(after); !tick.IsZero() && yield(tick); tick = t.Next(tick) {
		}
	}
}

// Between returns the ticks from one time up to, but not including, another one. It ignores Start, End and Paused: these
// are the ticks that a backfill of the period starts.
func (t *Timetable) Between(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for tick := t.pattern(from.Add(-1)); !tick.IsZero() && tick.Before(to) && yield(tick); tick = t.pattern(tick) {
		}
	}
}

// Begin returns when the work of a tick starts: the tick plus its jitter, which is before the next tick.
func (t *Timetable) Begin(tick time.Time) time.Time {
	jitter := t.schedule.Jitter
	if jitter == 0 {
		return tick
	}
	if next := t.pattern(tick); !next.IsZero() {
		jitter = min(jitter, next.Sub(tick))
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%d", t.schedule.Name, tick.Unix())
	share := float64(hash.Sum64()>>11) / (1 << 53)
	return tick.Add(time.Duration(share * float64(jitter)).Truncate(time.Millisecond))
}

// String describes the schedule on one line: "cron 0 8 * * 1-5 in Europe/Berlin", "every 1h30m0s".
func (s Schedule) String() string {
	if s.Every != 0 {
		return "every " + s.Every.String()
	}
	return "cron " + s.Cron + " in " + cmp.Or(s.Zone, "UTC")
}
