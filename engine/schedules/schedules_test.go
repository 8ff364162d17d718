package schedules_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// ran notes the ticks that a function was called for.
type ran struct {
	mu    sync.Mutex
	ticks []time.Time
	hold  chan struct{} // a call waits until it can take from it; nil lets them all through
	ended chan struct{} // has one for each call that was canceled while it waited
}

func (r *ran) f(ctx context.Context, _ string) (string, error) {
	w, _ := builder.WorkFrom(ctx)
	tick, ok := workflow.TickOf(w.Case)
	if !ok {
		return "", errors.New("no tick")
	}
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			r.ended <- struct{}{}
			return "", ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks = append(r.ticks, tick.At)
	return "", nil
}

func (r *ran) take() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.ticks = nil }()
	return r.ticks
}

// bench is an engine with one function and its schedules.
type bench struct {
	*enginetest.Engine
	t     *testing.T
	f     *builder.FuncRef[string, string]
	s     *schedules.Schedules
	calls *ran
}

func newBench(t *testing.T, declared ...schedule.Schedule) *bench {
	return newBenchOn(t, enginetest.Store(t), declared...)
}

func newBenchOn(t *testing.T, o store.Opener, declared ...schedule.Schedule) *bench {
	b := &bench{t: t, calls: new(ran)}
	b.f = builder.MustFunc("digest", b.calls.f, builder.Keep(builder.Forever))
	b.s = b.declare(declared...)
	b.Engine = enginetest.Open(t, o, engine.Config{Lease: 1000 * time.Hour}, b.f, b.s) // runs outlive steps of the clock
	_, err := b.s.Serve(t.Context(), b)
	require.NoError(t, err)
	return b
}

func (b *bench) declare(declared ...schedule.Schedule) *schedules.Schedules {
	var list []workflow.Scheduled
	for _, s := range declared {
		list = append(list, builder.Schedule(s, b.f, "all"))
	}
	return schedules.New(engine.Code, list...)
}

// reopen ends the engine as a crash does, and opens it with other declarations.
func (b *bench) reopen(declared ...schedule.Schedule) schedules.Report {
	b.t.Helper()
	b.s = b.declare(declared...)
	b.Crash(b.f, b.s)
	r, err := b.s.Serve(b.t.Context(), b)
	require.NoError(b.t, err)
	return r
}

// at is a time of the day of the virtual clock's epoch.
func at(hour, minute int) time.Time {
	return virtual.Epoch.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

func (b *bench) info(name string) *schedules.Info {
	b.t.Helper()
	i, err := schedules.Find(b.t.Context(), b, name)
	require.NoError(b.t, err)
	return i
}

func hourly(name string) schedule.Schedule { return schedule.Schedule{Name: name, Cron: "0 * * * *"} }

func TestARunIsStartedAtEachTick(t *testing.T) {
	b := newBench(t, schedule.Schedule{Name: "digest", Cron: "0 8 * * mon-fri", Zone: "Europe/Berlin"})
	b.Advance(4 * 24 * time.Hour) // from Tuesday, 1 January 2030, to the end of Friday
	require.Equal(t, []time.Time{at(7, 0), at(24+7, 0), at(48+7, 0), at(72+7, 0)}, b.calls.take())
	b.Advance(2 * 24 * time.Hour)
	require.Empty(t, b.calls.take(), "at the weekend")
	b.Advance(24 * time.Hour)
	require.Len(t, b.calls.take(), 1)
	i := b.info("digest")
	require.Equal(t, at(6*24+7, 0), i.Latest.Tick)
	run, err := b.Case(t.Context(), i.Latest.Case)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, run.State)
	require.Equal(t, "active", i.Word(b.Now()))
	require.Equal(t, "2030-01-08 08:00:00 +0100 CET", i.Next(b.Now(), 5)[0].String())
}

// A schedule has no ticks before it was added, before its times were changed, and before its start.
func TestTheLastTicksBeginWithTheSchedule(t *testing.T) {
	b, ctx := newBench(t, hourly("digest")), t.Context()
	past := func() (ticks []time.Time) {
		for _, tick := range b.info("digest").Past(b.Now(), 5) {
			ticks = append(ticks, tick.UTC())
		}
		return ticks
	}
	require.Empty(t, past())
	b.Advance(150 * time.Minute)
	require.Equal(t, []time.Time{at(2, 0), at(1, 0)}, past())

	often := schedule.Schedule{Name: "digest", Cron: "*/30 * * * *"}
	_, err := schedules.Add(ctx, b, builder.Schedule(often, b.f, "all"))
	require.NoError(t, err)
	b.Drain()
	require.Empty(t, past(), "the ticks before were those of other times")
	b.Advance(time.Hour)
	require.Equal(t, []time.Time{at(3, 30), at(3, 0)}, past())

	often.Start = at(5, 0)
	_, err = schedules.Add(ctx, b, builder.Schedule(often, b.f, "all"))
	require.NoError(t, err)
	b.Advance(2 * time.Hour)
	require.Equal(t, []time.Time{at(5, 30), at(5, 0)}, past())
}

func TestMissedTicksFollowPolicy(t *testing.T) {
	for _, c := range []struct {
		catchUp schedule.CatchUp
		most    int
		want    []time.Time
	}{
		{schedule.CatchUpNone, 0, nil},
		{schedule.CatchUpLast, 0, []time.Time{at(5, 0)}},
		{schedule.CatchUpAll, 0, []time.Time{at(2, 0), at(3, 0), at(4, 0), at(5, 0)}},
		{schedule.CatchUpAll, 2, []time.Time{at(4, 0), at(5, 0)}},
	} {
		t.Run(c.catchUp.String(), func(t *testing.T) {
			s := hourly("digest")
			s.CatchUp, s.CatchUpMost, s.Overlap = c.catchUp, c.most, schedule.OverlapAllow
			b := newBench(t, s)
			b.Advance(90 * time.Minute)
			require.Equal(t, []time.Time{at(1, 0)}, b.calls.take())
			require.NoError(t, b.Kill())
			b.Clock().Set(at(5, 30)) // while nothing runs
			b.reopenAfterKill(s)
			b.Drain()
			require.ElementsMatch(t, c.want, b.calls.take())
			b.Advance(time.Hour)
			require.Equal(t, []time.Time{at(6, 0)}, b.calls.take())
		})
	}
}

// reopenAfterKill opens an engine that was killed.
func (b *bench) reopenAfterKill(declared ...schedule.Schedule) { b.reopen(declared...) }

func TestOverlaps(t *testing.T) {
	start := func(t *testing.T, o schedule.Overlap) *bench {
		s := hourly("digest")
		s.Overlap = o
		b := newBench(t, s)
		b.calls.hold, b.calls.ended = make(chan struct{}, 10), make(chan struct{}, 10)
		b.Clock().Set(at(1, 0))
		b.settle(1)
		return b
	}
	t.Run("skip", func(t *testing.T) {
		b := start(t, schedule.OverlapSkip)
		b.Clock().Set(at(2, 0))
		b.settle(2)
		require.Equal(t, 1, b.info("digest").Skipped)
		b.calls.hold <- struct{}{}
		b.Drain()
		b.calls.hold <- struct{}{}
		b.Advance(time.Hour)
		require.Equal(t, []time.Time{at(1, 0), at(3, 0)}, b.calls.take())
	})
	t.Run("allow", func(t *testing.T) {
		b := start(t, schedule.OverlapAllow)
		b.Clock().Set(at(2, 0))
		b.settle(2)
		b.calls.hold <- struct{}{}
		b.calls.hold <- struct{}{}
		b.Drain()
		require.ElementsMatch(t, []time.Time{at(1, 0), at(2, 0)}, b.calls.take())
	})
	t.Run("cancel", func(t *testing.T) {
		b := start(t, schedule.OverlapCancel)
		old := b.info("digest").Latest.Case
		b.Clock().Set(at(2, 0))
		b.settle(2)
		<-b.calls.ended // or it could be the one that continues
		b.calls.hold <- struct{}{}
		b.Drain()
		require.Equal(t, []time.Time{at(2, 0)}, b.calls.take())
		c, err := b.Case(t.Context(), old)
		require.NoError(t, err)
		require.Equal(t, state.CaseCanceled, c.State)
		require.Equal(t, "replaced", c.Failure.Code)
	})
	t.Run("queue", func(t *testing.T) {
		b := start(t, schedule.OverlapQueue)
		b.Clock().Set(at(2, 0))
		b.settle(2)
		b.Clock().Set(at(3, 0))
		b.settle(3)
		i := b.info("digest")
		require.Equal(t, []time.Time{at(2, 0), at(3, 0)}, i.Waiting)
		require.Equal(t, "waiting", i.Word(b.Now()))
		for range 3 {
			run := b.f.Of(b.info("digest").Latest.Case)
			b.calls.hold <- struct{}{}
			_, err := run.Result(t.Context(), b)
			require.NoError(t, err)
			if len(i.Waiting) > 0 {
				_, err = b.WaitRun(t.Context(), i.Case) // the schedule looks again when a run has ended
				require.NoError(t, err)
				i = b.info("digest")
			}
		}
		require.Equal(t, []time.Time{at(1, 0), at(2, 0), at(3, 0)}, b.calls.take())
	})
}

// settle waits until the schedule has looked at n ticks, while runs continue.
func (b *bench) settle(n int) {
	b.t.Helper()
	for {
		i := b.info("digest")
		if i.Last.Equal(at(n, 0)) {
			return
		}
		_, err := b.WaitRun(b.t.Context(), i.Case)
		require.NoError(b.t, err)
	}
}

func TestPauseResumeRunAndRemove(t *testing.T) {
	b, ctx := newBench(t, hourly("digest")), t.Context()
	by := []workflow.Option{workflow.By("ann"), workflow.Because("the server moves")}
	require.NoError(t, schedules.Pause(ctx, b, "digest", by...))
	b.Advance(150 * time.Minute)
	require.Empty(t, b.calls.take())
	require.Equal(t, "paused", b.info("digest").Word(b.Now()))
	require.NoError(t, schedules.Run(ctx, b, "digest"))
	b.Drain()
	require.Equal(t, []time.Time{at(2, 30)}, b.calls.take(), "paused or not")
	require.NoError(t, schedules.Resume(ctx, b, "digest"))
	b.Advance(time.Hour)
	require.Equal(t, []time.Time{at(3, 0)}, b.calls.take(), "the ticks of the pause are left out")
	changes := b.info("digest").Changes
	require.Equal(t, "ann", changes[1].By)
	require.Equal(t, "the server moves", changes[1].Reason)
	require.NoError(t, schedules.Remove(ctx, b, "digest", by...))
	b.Advance(5 * time.Hour)
	require.Empty(t, b.calls.take())
	require.ErrorIs(t, schedules.Pause(ctx, b, "digest"), store.ErrNotFound)

	_, err := schedules.Add(ctx, b, builder.Schedule(hourly("digest"), b.f, "again"), by...)
	require.NoError(t, err)
	b.Advance(time.Hour)
	require.Len(t, b.calls.take(), 1)
}

func TestHistoryHasActors(t *testing.T) {
	b, ctx := newBench(t, hourly("digest")), t.Context()
	id := b.info("digest").Case
	require.NoError(t, schedules.Pause(ctx, b, "digest", workflow.By("ann"), workflow.Because("the server moves")))
	c, err := b.Case(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "the server moves", c.Failure.Message)
	var by []string
	for e, err := range store.AllEntries(ctx, b, store.JournalFilter{Root: id}) {
		require.NoError(t, err)
		by = append(by, e.By)
	}
	require.Contains(t, by, "ann")
}

func TestABackfillBeginsTheTicksThatHaveNoRun(t *testing.T) {
	b, ctx := newBench(t, hourly("digest")), t.Context()
	b.Advance(150 * time.Minute)
	require.Equal(t, []time.Time{at(1, 0), at(2, 0)}, b.calls.take())
	require.NoError(t, schedules.Backfill(ctx, b, "digest", at(-2, 0), at(3, 0)))
	b.backfilled()
	require.Equal(t, []time.Time{at(-2, 0), at(-1, 0), at(0, 0)}, b.calls.take(), "in their order, and no tick twice")
	require.ErrorIs(t, schedules.Backfill(ctx, b, "digest", at(0, 1), at(0, 2)), workflow.ErrBadCommand)
	require.ErrorIs(t, schedules.Backfill(ctx, b, "digest", at(0, 0), at(9999, 0)), workflow.ErrBadCommand)
}

// backfilled waits until no tick waits.
func (b *bench) backfilled() {
	b.t.Helper()
	for b.Drain(); ; b.Drain() {
		i := b.info("digest")
		if len(i.Waiting) == 0 {
			return
		}
		_, err := b.WaitRun(b.t.Context(), i.Case)
		require.NoError(b.t, err)
	}
}

func TestDeclarationsInCode(t *testing.T) {
	b, ctx := newBench(t, hourly("digest"), hourly("other")), t.Context()
	require.NoError(t, schedules.Pause(ctx, b, "digest"))
	require.Equal(t, schedules.Report{}, b.reopen(hourly("digest"), hourly("other")), "nothing has changed")

	daily := schedule.Schedule{Name: "digest", Cron: "0 8 * * *"}
	require.Equal(t, schedules.Report{Added: []string{"third"}, Updated: []string{"digest"}, Vanished: []string{"other"}},
		b.reopen(daily, hourly("third")))
	i := b.info("digest")
	require.Equal(t, "0 8 * * *", i.Schedule.Cron)
	require.True(t, i.Schedule.Paused, "what people did stays")
	require.NoError(t, schedules.Resume(ctx, b, "digest"))
	b.Advance(9 * time.Hour)
	require.Equal(t, at(8, 0), b.info("digest").Latest.Tick)
	list, err := schedules.List(ctx, b)
	require.NoError(t, err)
	require.Len(t, list, 3)

	twice := schedules.New(engine.Code, builder.Schedule(daily, b.f, ""), builder.Schedule(daily, b.f, ""))
	_, err = twice.Serve(ctx, b)
	require.ErrorContains(t, err, "two schedules")
	_, err = schedules.New(engine.Code, builder.Schedule(schedule.Schedule{Name: "x"}, b.f, "")).Serve(ctx, b)
	require.ErrorIs(t, err, schedule.ErrInvalid)
	_, err = schedules.Add(ctx, b, builder.Schedule(daily, b.f, "", workflow.Key("k")))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
}

func TestAWorkflowThatIsNotThereIsWaitedFor(t *testing.T) {
	b, ctx := newBench(t), t.Context()
	s := workflow.Scheduled{Schedule: schedule.Schedule{Name: "digest", Cron: "0 * * * *", CatchUp: schedule.CatchUpLast},
		Start: workflow.Start("later", []byte(`"x"`))}
	_, err := schedules.Add(ctx, b, s)
	require.NoError(t, err)
	b.Advance(61 * time.Minute)
	i := b.info("digest")
	require.Equal(t, "failing", i.Word(b.Now()))
	require.Equal(t, "unknown-workflow", i.Latest.Error.Code)
	later := builder.MustFunc("later", b.calls.f)
	b.Crash(b.f, b.s, later)
	b.Advance(time.Minute)
	require.Equal(t, []time.Time{at(1, 0)}, b.calls.take())
}

func TestRefusedStartDoesNotEndSchedule(t *testing.T) {
	b, ctx := newBench(t), t.Context()
	_, err := schedules.Add(ctx, b, workflow.Scheduled{Schedule: hourly("digest"), Start: workflow.Start("digest", []byte(`{"no":"text"}`))})
	require.NoError(t, err)
	b.Advance(61 * time.Minute)
	i := b.info("digest")
	require.Equal(t, "invalid-payload", i.Latest.Error.Code)
	require.Equal(t, at(1, 0), i.Latest.Tick)
	_, err = schedules.Add(ctx, b, builder.Schedule(hourly("digest"), b.f, "x"))
	require.NoError(t, err)
	b.Advance(time.Hour)
	require.Equal(t, []time.Time{at(2, 0)}, b.calls.take())
}

// A clock that is set back begins nothing twice, and one that is set forward leaves out what is too late.
func TestClockSteps(t *testing.T) {
	b := newBench(t, hourly("digest"))
	b.Advance(150 * time.Minute)
	require.Equal(t, []time.Time{at(1, 0), at(2, 0)}, b.calls.take())
	b.Clock().Set(at(0, 30))
	b.Drain()
	b.Advance(2 * time.Hour)
	require.Empty(t, b.calls.take())
	b.Advance(time.Hour)
	require.Equal(t, []time.Time{at(3, 0)}, b.calls.take())
	b.Clock().Set(at(8, 0))
	b.Drain()
	require.Equal(t, []time.Time{at(8, 0)}, b.calls.take())
	require.Equal(t, 1, b.info("digest").Missed)
}

func TestAScheduleThatIsOverStays(t *testing.T) {
	s := hourly("digest")
	s.End = at(3, 0)
	b := newBench(t, s)
	b.Advance(24 * time.Hour)
	require.Equal(t, []time.Time{at(1, 0), at(2, 0)}, b.calls.take())
	i := b.info("digest")
	require.Equal(t, "over", i.Word(b.Now()))
	require.Zero(t, i.Overdue(b.Now(), time.Minute))
}

// Programs that add a schedule at the same time make one chain of it.
func TestAScheduleIsAddedOnce(t *testing.T) {
	b := newBench(t)
	// Two programs look before either of them adds it.
	d := builder.Schedule(hourly("digest"), b.f, "all")
	one, err := schedules.AddCommand(t.Context(), b, d, workflow.By("one"))
	require.NoError(t, err)
	two, err := schedules.AddCommand(t.Context(), b, d, workflow.By("two"))
	require.NoError(t, err)
	_, err = b.Do(t.Context(), one)
	require.NoError(t, err)
	_, err = b.Do(t.Context(), two)
	require.ErrorIs(t, err, workflow.ErrKeyReused, "it is made anew, see Add")
	_, err = schedules.Add(t.Context(), b, d, workflow.By("two"))
	require.NoError(t, err)
	list, err := schedules.List(t.Context(), b)
	require.NoError(t, err)
	require.Len(t, list, 1)
	b.Advance(2*time.Hour + time.Minute)
	require.Equal(t, []time.Time{at(1, 0), at(2, 0)}, b.calls.take())
}

// An engine that was opened without the schedules has no definition of them, and the error says what to do.
func TestServeNeedsTheDefinitionOfSchedules(t *testing.T) {
	f := builder.MustFunc("digest", func(_ context.Context, s string) (string, error) { return s, nil })
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{}, f)
	_, err := schedules.New(engine.Code, builder.Schedule(hourly("digest"), f, "all")).Serve(t.Context(), e)
	require.ErrorIs(t, err, workflow.ErrUnknown)
	require.ErrorContains(t, err, `schedule "digest"`)
	require.ErrorContains(t, err, "give the Schedules to engine.Open, too")
}
