package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// fetched is the output of the work in the table, with a rule of its own.
type fetched struct {
	Text string `json:"text" validate:"required"`
}

// page is its input.
type page struct {
	URL string `json:"url"`
}

// throttled is an error type with a field that no failure keeps.
type throttled struct{ quota int }

func (e *throttled) Error() string { return fmt.Sprintf("throttled at %d", e.quota) }

var errBusy = errors.New("busy")

// attempt is the work of the table: the n-th call.
type attempt func(ctx context.Context, n int) (fetched, error)

// failing is work that always fails in the same way.
func failing(err error) attempt {
	return func(context.Context, int) (fetched, error) { return fetched{}, err }
}

// retryCase is one way to fail, and what every host makes of it.
type retryCase struct {
	work    attempt
	filters []retry.Filter
	calls   int
	waits   []time.Duration // between the calls
	failure string          // of the last attempt, as code: message; "" if it succeeded
	quiet   bool            // the message of the failure is not compared
}

// retryCases are run with 4 attempts, and waits of 1s, 2s, 4s.
func retryCases() map[string]retryCase {
	all := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
	on := func(f ...retry.Filter) []retry.Filter { return f }
	late := func(ctx context.Context, _ int) (fetched, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return fetched{}, fmt.Errorf("fetch: %w", ctx.Err())
	}
	third := func(_ context.Context, n int) (fetched, error) {
		if n < 3 {
			return fetched{}, errBusy
		}
		return fetched{Text: "there"}, nil
	}
	byState := func(f retry.Failure) bool {
		e, ok := errors.AsType[*throttled](f.Err)
		return ok && e.quota == 7 && f.Input == any(page{"/a"}) && f.Name == "fetch" && f.Attempt < 3
	}
	return map[string]retryCase{
		"no filter":                   {failing(errBusy), nil, 4, all, "error: busy", false},
		"a sentinel":                  {failing(errBusy), on(retry.On(errBusy)), 4, all, "error: busy", false},
		"another sentinel":            {failing(errBusy), on(retry.On(context.Canceled)), 1, nil, "error: busy", false},
		"a wrapped sentinel":          {failing(fmt.Errorf("a: %w", errBusy)), on(retry.On(errBusy)), 4, all, "error: a: busy", false},
		"a type":                      {failing(&throttled{7}), on(retry.OnType[*throttled]()), 4, all, "error: throttled at 7", false},
		"another type":                {failing(errBusy), on(retry.OnType[*throttled]()), 1, nil, "error: busy", false},
		"a wrapped type":              {failing(fmt.Errorf("a: %w", &throttled{7})), on(retry.OnType[*throttled]()), 4, all, "error: a: throttled at 7", false},
		"any of several filters":      {failing(errBusy), on(retry.OnType[*throttled](), retry.On(errBusy)), 4, all, "error: busy", false},
		"error, name, input, attempt": {failing(&throttled{7}), on(byState), 3, all[:2], "error: throttled at 7", false},
		"it succeeds at last":         {third, on(retry.On(errBusy)), 3, all[:2], "", false},
		"a code":                      {failing(workitem.Failf("limit", "slow down")), on(retry.OnCode("limit")), 4, all, "limit: slow down", false},
		"another code":                {failing(workitem.Failf("limit", "slow down")), on(retry.OnCode("busy")), 1, nil, "limit: slow down", false},
		"permanent":                   {failing(retry.Permanent(errBusy)), on(retry.On(errBusy)), 1, nil, "error: busy", false},
		"fatal":                       {failing(workitem.Fatal(errBusy)), nil, 1, nil, "error: busy", false},
		"a failure that is final":     {failing(&workitem.Failure{Code: "no-funds", Message: "0"}), nil, 1, nil, "no-funds: 0", false},
		"retry after":                 {failing(retry.After(time.Minute, errBusy)), on(retry.On(errBusy)), 4, []time.Duration{time.Minute, time.Minute, time.Minute}, "error: busy", false},
		"a failure's own wait":        {failing(&workitem.Failure{Code: "limit", Retryable: true, After: time.Minute}), nil, 4, []time.Duration{time.Minute, time.Minute, time.Minute}, "limit", true},
		"a panic":                     {func(context.Context, int) (fetched, error) { panic("a bug") }, nil, 4, all, "panic: a bug", false},
		"a panic, by type":            {func(context.Context, int) (fetched, error) { panic(errBusy) }, on(retry.OnType[*retry.PanicError]()), 4, all, "panic: busy", false},
		"a panic, not wanted":         {func(context.Context, int) (fetched, error) { panic("a bug") }, on(retry.On(errBusy)), 1, nil, "panic: a bug", false},
		"its own timeout":             {late, on(retry.On(context.DeadlineExceeded)), 4, all, "error: fetch: context deadline exceeded", false},
		"a canceled context":          {failing(context.Canceled), on(retry.On(context.Canceled)), 4, all, "error: context canceled", false},
		"an output against its rules": {failing(nil), on(retry.On(errBusy)), 4, all, "invalid", true},
		"an invalid error, filtered":  {failing(domain.Validate(fetched{})), on(retry.On(errBusy)), 1, nil, "invalid", true},
	}
}

// retryOutcome is what a host made of a case.
type retryOutcome struct {
	calls   int
	waits   []time.Duration
	failure *workitem.Failure
}

// meter counts the calls of the work, and measures the waits between them.
type meter struct {
	mu  sync.Mutex
	now func() time.Time
	at  []time.Time
}

func (m *meter) call(ctx context.Context, work attempt) (fetched, error) {
	m.mu.Lock()
	m.at = append(m.at, m.now())
	n := len(m.at)
	m.mu.Unlock()
	return work(ctx, n)
}

func (m *meter) outcome(f *workitem.Failure) retryOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := retryOutcome{calls: len(m.at), failure: f}
	for i := 1; i < len(m.at); i++ {
		o.waits = append(o.waits, m.at[i].Sub(m.at[i-1]))
	}
	return o
}

// retryHosts are all the places where a retry policy is given.
var retryHosts = map[string]func(*testing.T, retry.Policy, attempt) retryOutcome{
	"retry.Do":         hostDo,
	"step.Retry":       hostStep,
	"action":           hostAction,
	"activities.Retry": hostTask,
	"job":              hostJob,
}

// A policy with filters means the same wherever it is given: as many calls, after the same waits, with the same failure
// at the end.
func TestAPolicyMeansTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for name, c := range retryCases() {
		for host, run := range retryHosts {
			t.Run(name+"/"+host, func(t *testing.T) {
				p := retry.Exponential(4, time.Second)
				p.Filters = c.filters
				got := run(t, p, c.work)
				require.Equal(t, c.calls, got.calls)
				require.Equal(t, c.waits, got.waits)
				switch {
				case c.failure == "":
					require.Nil(t, got.failure)
				case c.quiet:
					require.Equal(t, c.failure, got.failure.Code)
				default:
					require.Equal(t, c.failure, got.failure.String())
				}
			})
		}
	}
}

func hostDo(t *testing.T, p retry.Policy, work attempt) retryOutcome {
	clock := &jumpClock{at: time.Unix(0, 0)}
	m := &meter{now: clock.Now}
	call := retry.Call[fetched]{Policy: p, Name: "fetch", Input: page{"/a"}, Clock: clock,
		Checks: []retry.Check[fetched]{retry.Valid(func(f fetched) error { return domain.Validate(f) })}}
	_, err := call.Do(t.Context(), func(ctx context.Context, _ int) (fetched, error) { return m.call(ctx, work) })
	if e, ok := errors.AsType[*retry.ExhaustedError](err); ok {
		err = e.Err
	}
	return m.outcome(workitem.FailureOf(err))
}

// jumpClock is over with every wait at once.
type jumpClock struct{ at time.Time }

func (c *jumpClock) Now() time.Time { return c.at }

func (c *jumpClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.at = c.at.Add(d)
	f()
	return func() bool { return false }
}

func hostStep(t *testing.T, p retry.Policy, work attempt) retryOutcome {
	m := new(meter)
	a := builder.MustFunc("pages", func(ctx context.Context, in page) (fetched, error) {
		return step.Do(ctx, "fetch", func(ctx context.Context) (fetched, error) { return m.call(ctx, work) },
			step.Retry(p), step.Input(in))
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, a)
	m.now = e.Clock().Now
	run, err := a.Run(t.Context(), e, page{"/a"})
	require.NoError(t, err)
	e.Advance(time.Hour)
	_, err = run.Result(t.Context(), e)
	if err == nil {
		return m.outcome(nil)
	}
	steps := stepsOf(t, e, store.StepFilter{Case: run.ID})
	return m.outcome(steps[0].Failure)
}

func hostAction(t *testing.T, p retry.Policy, work attempt) retryOutcome {
	m := new(meter)
	a := builder.MustFunc("fetch", func(ctx context.Context, _ page) (fetched, error) { return m.call(ctx, work) },
		builder.Retry(func(own *retry.Policy) { *own = p }))
	e := enginetest.New(t, a)
	m.now = e.Clock().Now
	run, err := a.Run(t.Context(), e, page{"/a"})
	require.NoError(t, err)
	e.Advance(time.Hour)
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	if s.State == workflow.RunCompleted {
		return m.outcome(nil)
	}
	return m.outcome(s.Failure)
}

func hostTask(t *testing.T, p retry.Policy, work attempt) retryOutcome {
	m := new(meter)
	b := builder.New[page]("pages")
	fetch := builder.Task(b, "fetch", builder.Work[page, fetched]{
		Input:                  builder.CaseInput(b),
		Run:                    func(ctx context.Context, _ page) (fetched, error) { return m.call(ctx, work) },
		OnWorkItemStateChanged: activities.All(activities.Retry(p), nil),
	})
	b.Path(b.Start(), fetch, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	m.now = e.Clock().Now
	id, err := w.Start(t.Context(), e, page{"/a"})
	require.NoError(t, err)
	e.Advance(time.Hour)
	items := itemsOf(t, e, id)
	return m.outcome(items[len(items)-1].Failure)
}

func hostJob(t *testing.T, p retry.Policy, work attempt) retryOutcome {
	m := new(meter)
	b := builder.New[page]("pages")
	fetch := builder.Job(b, "fetch", func(ctx context.Context, _ page) error {
		got, err := m.call(ctx, work)
		if err == nil {
			err = domain.Validate(got) // a job has no output: its function says what is wrong
			if err != nil {
				err = &activities.OutputError{Err: err}
			}
		}
		return err
	}, builder.JobOptions{Retry: p})
	b.OnInitialized(func(_ context.Context, c *activities.Case) error {
		_, err := fetch.Detached(c, 0, page{"/a"})
		return err
	})
	b.Path(b.Start(), builder.Task(b, "do", builder.Work[any, any]{}), b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	m.now = e.Clock().Now
	_, err := w.Start(t.Context(), e, page{})
	require.NoError(t, err)
	e.Advance(time.Hour)
	jobs := listed(t, e, func(r store.Reader) ([]*state.Job, error) {
		return r.Jobs(t.Context(), store.JobFilter{Kind: state.JobCall})
	})
	require.Len(t, jobs, 1)
	if jobs[0].State == state.JobDone {
		return m.outcome(nil)
	}
	return m.outcome(jobs[0].Failure)
}

// A person who fails an item, and a process that hands in a failure, give no Go error: filters by code decide.
func TestAReportedFailureIsFilteredByItsCode(t *testing.T) {
	p := retry.Exponential(3, time.Second)
	p.Filters = []retry.Filter{retry.On(errBusy), retry.OnCode("busy")}
	b := builder.New[page]("pages")
	fetch := builder.Task(b, "fetch", builder.Work[page, fetched]{
		Input: builder.CaseInput(b), OnWorkItemStateChanged: activities.Retry(p),
	})
	b.Path(b.Start(), fetch, b.End())
	w := b.MustBuild()
	for failure, want := range map[*workitem.Failure]int{
		workitem.Failf("busy", "later"): 2, workitem.Failf("broken", "never"): 1, workitem.Failf("error", "busy"): 1, nil: 1,
	} {
		e := enginetest.New(t, w)
		id, err := w.Start(t.Context(), e, page{})
		require.NoError(t, err)
		it := itemsOf(t, e, id)[0]
		require.NoError(t, fetch.Start(t.Context(), e, it.ID))
		require.NoError(t, fetch.Fail(t.Context(), e, it.ID, failure))
		require.Len(t, itemsOf(t, e, id), want, "%v", failure)
	}
}

// The answer of the filters is stored with the failure, so that whatever decides later needs no error.
func TestTheAnswerOfTheFiltersIsStored(t *testing.T) {
	var seen []retry.Failure
	p := retry.Exponential(4, time.Second)
	p.Filters = []retry.Filter{func(f retry.Failure) bool {
		seen = append(seen, f)
		return f.Attempt < 2
	}}
	got := hostAction(t, p, failing(&throttled{7}))
	require.Equal(t, 2, got.calls)
	require.False(t, got.failure.Retryable)
	require.True(t, got.failure.Filtered)
	require.Len(t, seen, 2, "once for each attempt, in the worker")
	require.Equal(t, []int{1, 2}, []int{seen[0].Attempt, seen[1].Attempt})
	require.Equal(t, time.Second, seen[1].Elapsed)
	require.True(t, slices.ContainsFunc(seen, func(f retry.Failure) bool { return f.Input == any(page{"/a"}) }))
}

// listed runs a query of a store.
func listed[T any](t *testing.T, e *enginetest.Engine, query func(store.Reader) ([]T, error)) (list []T) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		list, err = query(r)
		return err
	}))
	return list
}

// itemsOf lists the work items of a case, oldest first.
func itemsOf(t *testing.T, e *enginetest.Engine, id workitem.CaseID) []*store.ItemRow {
	t.Helper()
	return listed(t, e, func(r store.Reader) ([]*store.ItemRow, error) {
		return r.Items(t.Context(), store.ItemFilter{Case: id})
	})
}
