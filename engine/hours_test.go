package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// office is the window of most of these tests. A bubble begins on Saturday, 1 January 2000, at 01:00 in Berlin.
var office = schedule.MustParseWindow("sat,sun 02:00-04:00", "Europe/Berlin")

// until lets time pass in a bubble, until clocks in Berlin show a time of the first week of 2000.
func until(t *testing.T, text string) {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, office.Location())
	require.NoError(t, err)
	<-time.After(time.Until(at))
}

// inBerlin are times as clocks in Berlin show them.
func inBerlin(times []time.Time) (list []string) {
	for _, at := range times {
		list = append(list, at.In(office.Location()).Format("Mon 15:04:05"))
	}
	return list
}

// says compares a part of what why says of a case.
func says(t *testing.T, e interface {
	Why(context.Context, workitem.CaseID) (*why.Answer, error)
}, id workitem.CaseID, want string) {
	t.Helper()
	answer, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, answer.String(), want)
}

// A function begins only in its hours. One that waits for them holds no worker and no attempt, and others of its queue pass; one that
// is under way as they end is not disturbed, and those behind it wait for the next day.
func TestWorkBeginsOnlyInItsHours(t *testing.T) {
	var c, free callLog
	f := builder.MustFunc("f", busyFor(&c, 50*time.Minute), builder.Hours(office))
	other := builder.MustFunc("other", busyFor(&free, time.Minute))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, numbers(4)...)
		begin := time.Now()
		endAll(t, e, startAll(t, e, other, numbers(3)...))
		require.Equal(t, 3*time.Minute, time.Since(begin), "the worker is free")
		says(t, e, runs[0].ID, "item run.1.1 waits until 02:00 Europe/Berlin, when its hours begin (sat,sun 02:00-04:00), since 3m")
		until(t, "2000-01-01 04:10:00")
		says(t, e, runs[2].ID, "item run.1.1 is under way")
		says(t, e, runs[3].ID, "item run.1.1 waits until Sun 2000-01-02 02:00 Europe/Berlin")
		list, err := e.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		require.Equal(t, 1, list.Queues[0].Waiting)
		endAll(t, e, runs)
		require.Equal(t, []string{"Sat 02:00:00", "Sat 02:50:00", "Sat 03:40:00", "Sun 02:00:00"}, inBerlin(c.at))
		for _, r := range runs {
			status, err := r.Status(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, 1, status.Attempt)
		}
	}, f, other)
}

// The next attempt of a function and the end of a sleep wait for the hours, too, and why says when that is.
func TestAttemptsAndSleepsWaitForTheHours(t *testing.T) {
	var c, woken callLog
	fails := builder.MustFunc("fails", func(_ context.Context, n int) (int, error) {
		if c.begin(); len(c.at) < 3 {
			return 0, errors.New("it fails")
		}
		return n, nil
	}, builder.Hours(office), builder.Retry(func(p *retry.Policy) { *p = retry.Constant(3, 110*time.Minute) }))
	sleeps := builder.MustFunc("sleeps", func(ctx context.Context, n int) (int, error) {
		if err := step.Sleep(ctx, "nap", 3*time.Hour); err != nil {
			return 0, err
		}
		woken.begin()
		return n, nil
	}, builder.Hours(office))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		until(t, "2000-01-01 02:30:00")
		runs := append(startAll(t, e, fails, 1), startAll(t, e, sleeps, 2)...)
		require.NoError(t, e.Drain(t.Context()))
		says(t, e, runs[0].ID, "item run.1.2 goes on at Sun 2000-01-02 02:00 Europe/Berlin, when its hours begin (sat,sun 02:00-04:00), attempt 2 of 3")
		says(t, e, runs[1].ID, "step nap of run.1.1 goes on at Sun 2000-01-02 02:00 Europe/Berlin, when its hours begin")
		until(t, "2000-01-02 01:00:00")
		says(t, e, runs[0].ID, "item run.1.2 waits until 02:00 Europe/Berlin, when its hours begin (sat,sun 02:00-04:00), attempt 2 of 3")
		says(t, e, runs[1].ID, "step nap of run.1.1 waits until 02:00 Europe/Berlin, when its hours begin")
		endAll(t, e, runs)
		require.Equal(t, []string{"Sat 02:30:00", "Sun 02:00:00", "Sun 03:50:00"}, inBerlin(c.at))
		require.Equal(t, []string{"Sun 02:00:00"}, inBerlin(woken.at))
	}, fails, sleeps)
}

// Jobs that wait for their hours do so over a kill; one that is canceled meanwhile does not begin.
func TestJobsWaitForTheirHoursOverARestart(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, time.Minute), builder.Hours(schedule.MustParseWindow("02:00-01:00", "Europe/Berlin")))
	synctest.Test(t, func(t *testing.T) {
		path := sqlite.File(t.TempDir() + "/hours.db")
		cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
		e, err := cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		until(t, "2000-01-01 01:30:00")
		runs := startAll(t, e, f, numbers(3)...)
		_, err = runs[0].Cancel(t.Context(), e, nil)
		require.NoError(t, err)
		require.NoError(t, e.Kill())
		e, err = cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		require.NoError(t, e.Drain(t.Context()))
		_, err = runs[1].Cancel(t.Context(), e, nil)
		require.NoError(t, err)
		endAll(t, e, runs[2:])
		require.Equal(t, []string{"Sat 02:00:00"}, inBerlin(c.at))
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

// A job whose hours end while it waits for a limit lets the others pass that wait for it.
func TestAJobOutOfItsHoursHoldsUpNoLine(t *testing.T) {
	var c, free callLog
	one := builder.Limits(builder.Takes(limit.Resource("one", 1), 0))
	f := builder.MustFunc("f", busyFor(&c, time.Hour), one, builder.Hours(office))
	other := builder.MustFunc("other", busyFor(&free, time.Hour), one)
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		until(t, "2000-01-01 03:30:00")
		runs := startAll(t, e, f, numbers(3)...)
		<-time.After(time.Second)
		endAll(t, e, startAll(t, e, other, 1, 2))
		for _, r := range runs[1:] {
			_, err := r.Cancel(t.Context(), e, nil)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"Sat 03:30:00"}, inBerlin(c.at))
		require.Equal(t, []string{"Sat 04:30:00", "Sat 05:30:00"}, inBerlin(free.at))
	}, f, other)
}

// Hours are part of the definition, and belong to functions.
func TestHoursThatCannotBe(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Hours: office}), b.End())
	_, err := b.Build()
	require.ErrorContains(t, err, `task "t" has Hours but no Run`)
	with, without := builder.MustFunc("f", echo, builder.Hours(office)), builder.MustFunc("f", echo)
	require.NotEqual(t, with.Fingerprint, without.Fingerprint)
	require.Contains(t, string(with.Document), `"hours":"sat,sun 02:00-04:00 Europe/Berlin"`)
}

// In random zones, around changes of their clocks: a job begins at the first moment from its start on at which clocks show a time
// within its hours, on a clock that moves in random steps.
func TestHoursAroundChangesOfClocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 7))
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut", "Africa/Cairo", "Europe/Chisinau"}
	texts := []string{"08:00-18:00", "22:00-06:00", "02:30-03:00", "01:30-02:10", "mon-fri 00:00-05:00", "sun", "sat 23:30-02:30"}
	for range testsize.Pick(5, 15, 500) {
		zone, err := schedule.Location(zones[rnd.IntN(len(zones))])
		require.NoError(t, err)
		w := schedule.MustParseWindow(texts[rnd.IntN(len(texts))], zone.String())
		var began time.Time
		var e *enginetest.Engine
		f := builder.MustFunc("f", func(context.Context, int) (int, error) {
			began = e.Now()
			return 0, nil
		}, builder.Hours(w))
		e = enginetest.New(t, f)
		_, change := e.Now().AddDate(0, rnd.IntN(12), 0).In(zone).ZoneBounds()
		start := change.Add(-time.Duration(rnd.IntN(72*60)) * time.Minute)
		e.Clock().Set(start)
		run, err := f.Run(t.Context(), e, 1)
		require.NoError(t, err)
		e.Drain()
		for began.IsZero() {
			e.Advance(time.Duration(1+rnd.IntN(600)) * time.Minute)
		}
		want := start
		for !within(w.String(), want.In(zone)) {
			want = want.Add(time.Minute)
		}
		require.True(t, began.Equal(want), "%v, from %v: it began at %v, and was to at %v", w, start.In(zone), began.In(zone), want.In(zone))
		status, err := run.Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, workflow.RunCompleted, status.State)
	}
}

// within is an own reading of the windows of that test: whether clocks that show a time show one in the window.
func within(window string, at time.Time) bool {
	fields := strings.Fields(window)
	days, times := "sun-sat", fields[0]
	if len(fields) == 3 {
		days, times = fields[0], fields[1]
	} else if !strings.Contains(times, ":") {
		days, times = times, "00:00-24:00"
	}
	on := func(d time.Weekday) bool {
		switch name := strings.ToLower(d.String()[:3]); days {
		case "sun-sat":
			return true
		case "mon-fri":
			return d != time.Saturday && d != time.Sunday
		default:
			return days == name
		}
	}
	from, to, _ := strings.Cut(times, "-")
	shows := at.Format("15:04")
	if from < to {
		return on(at.Weekday()) && from <= shows && shows < to
	}
	return on(at.Weekday()) && shows >= from || on((at.Weekday()+6)%7) && shows < to
}

// Every engine of a fleet keeps to the hours of a definition, and what waits with one that dies begins on another when they begin.
func TestEnginesKeepToTheHours(t *testing.T) {
	f := newFleet(t)
	c := &jumping{Clock: retry.SystemClock}
	inTwelve := time.Now().UTC().Add(12 * time.Hour)
	hours := schedule.MustParseWindow(inTwelve.Format("15:04")+"-"+inTwelve.Add(2*time.Hour).Format("15:04"), "UTC")
	var mu sync.Mutex
	var began []time.Time
	fn := builder.MustFunc("f", func(_ context.Context, n int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		began = append(began, c.Now())
		return n, nil
	}, builder.Hours(hours))
	a, b := f.open(engine.Config{Clock: c}, fn), f.open(engine.Config{Clock: c}, fn)
	var runs []builder.Run[int]
	for i, e := range []*engine.Engine{a, a, b, b} {
		run, err := fn.Run(t.Context(), e, i)
		require.NoError(t, err)
		require.NoError(t, e.Drain(t.Context()))
		runs = append(runs, run)
		says(t, e, run.ID, "UTC, when its hours begin ("+strings.TrimSuffix(hours.String(), " UTC")+")")
	}
	require.NoError(t, a.Kill())
	c.ahead.Store(int64(12*time.Hour + time.Minute))
	for i, run := range runs {
		require.Equal(t, fmt.Sprintf("completed: %d", i), ends(t, b, run.ID))
	}
	for _, at := range began {
		require.True(t, hours.Contains(at), "%v", at)
	}
}
