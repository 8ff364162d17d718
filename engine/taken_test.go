package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// napping is a function that waits for an hour, or fails at once.
func napping() *builder.FuncRef[string, string] {
	return builder.MustFunc("nap", func(ctx context.Context, s string) (string, error) {
		if s == "fail" {
			return "", workitem.Fatal(errors.New("no"))
		}
		return s, step.Sleep(ctx, "nap", time.Hour)
	})
}

// What a start does by what the case that holds its key is doing.
func TestTheSameAgain(t *testing.T) {
	const starts, found, refused = "starts", "found", "refused"
	for _, test := range []struct {
		policy workflow.Taken
		holder string // later, waits, done or failed
		want   string
	}{
		{workflow.Refuse, "later", refused}, {workflow.Refuse, "waits", refused}, {workflow.Refuse, "done", refused}, {workflow.Refuse, "failed", starts},
		{workflow.Return, "later", found}, {workflow.Return, "waits", found}, {workflow.Return, "done", found}, {workflow.Return, "failed", starts},
		{workflow.Replace, "later", starts}, {workflow.Replace, "waits", refused}, {workflow.Replace, "done", refused}, {workflow.Replace, "failed", starts},
		{workflow.Supersede, "later", starts}, {workflow.Supersede, "waits", starts}, {workflow.Supersede, "done", refused}, {workflow.Supersede, "failed", starts},
	} {
		t.Run(string(test.policy)+" "+test.holder, func(t *testing.T) {
			f := napping()
			e := enginetest.New(t, f)
			opts := []workflow.Option{workflow.BusinessKey("ada"), workflow.IfTaken(test.policy)}
			input, first := "a", slices.Clone(opts)
			switch test.holder {
			case "later":
				first = append(first, workflow.After(10*time.Minute))
			case "failed":
				input = "fail"
			}
			holder, err := f.Run(t.Context(), e, input, first...)
			require.NoError(t, err)
			e.Drain()
			if test.holder == "done" {
				e.Advance(2 * time.Hour)
			}
			again := workflow.Start("nap", []byte(`"b"`), append(opts, workflow.Key("once"), workflow.By("ann"))...)
			result, err := e.Do(t.Context(), again)
			e.Drain()
			if test.want == refused {
				var taken *workflow.KeyTakenError
				require.ErrorAs(t, err, &taken)
				require.Equal(t, holder.ID, taken.Case)
				require.Len(t, everyCase(t, e), 1)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want == found, result.Found)
			require.Equal(t, test.want == found, result.Case == holder.ID)
			if test.want == starts && test.holder != "failed" {
				old := caseOf(t, e, holder.ID)
				require.Equal(t, state.CaseCanceled, old.State)
				require.Equal(t, "replaced", old.Failure.Code)
				require.JSONEq(t, `"b"`, string(caseOf(t, e, result.Case).Input))
			}
			n := len(everyCase(t, e))
			same, err := e.Do(t.Context(), again)
			require.NoError(t, err)
			require.Equal(t, result, same, "the idempotency key has its answer")
			require.Len(t, everyCase(t, e), n)
		})
	}
}

func everyCase(t *testing.T, e store.Viewer) []workitem.CaseID {
	return found(t, e, store.CaseFilter{})
}

// A key is taken once for each day of a zone, whatever became of the case, but for one that failed.
func TestOncePerDay(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := e.Now().In(berlin)
	e.Advance(time.Date(now.Year(), now.Month(), now.Day()+1, 22, 0, 0, 0, berlin).Sub(now))
	day := e.Now().In(berlin).Format(time.DateOnly)
	start := func(input string, opts ...workflow.Option) (workflow.Result, error) {
		opts = append(opts, workflow.BusinessKey("ada"), workflow.OncePer(workflow.Day, "Europe/Berlin"))
		return e.Do(t.Context(), workflow.Start("nap", []byte(input), opts...))
	}
	failing, err := start(`"fail"`)
	require.NoError(t, err)
	e.Drain()
	first, err := start(`"a"`)
	require.NoError(t, err)
	require.NotEqual(t, failing.Case, first.Case)
	require.Equal(t, "ada "+day+" Europe/Berlin", caseOf(t, e, first.Case).Key)
	e.Advance(90 * time.Minute)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, first.Case).State)
	_, err = start(`"b"`)
	require.ErrorIs(t, err, workflow.ErrKeyTaken)
	same, err := start(`"b"`, workflow.IfTaken(workflow.Return))
	require.NoError(t, err)
	require.Equal(t, workflow.Result{Case: first.Case, Found: true}, same)

	tomorrow, err := start(`"c"`, workflow.After(time.Hour))
	require.NoError(t, err, "it begins on the next day")
	_, err = start(`"d"`, workflow.After(2*time.Hour))
	require.ErrorIs(t, err, workflow.ErrKeyTaken)
	e.Advance(time.Hour)
	_, err = start(`"d"`)
	require.ErrorIs(t, err, workflow.ErrKeyTaken)
	replaced, err := start(`"d"`, workflow.IfTaken(workflow.Supersede))
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, caseOf(t, e, tomorrow.Case).State)
	require.Equal(t, caseOf(t, e, tomorrow.Case).Key, caseOf(t, e, replaced.Case).Key)
}

func TestPoliciesThatCannotBe(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	for _, test := range []struct {
		want string
		opts []workflow.Option
	}{
		{"need a business key", []workflow.Option{workflow.IfTaken(workflow.Return)}},
		{"need a business key", []workflow.Option{workflow.OncePer(workflow.Day, "")}},
		{"none of", []workflow.Option{workflow.BusinessKey("a"), workflow.IfTaken("juggle")}},
		{"none of", []workflow.Option{workflow.BusinessKey("a"), workflow.OncePer("year", "")}},
		{"zone", []workflow.Option{workflow.BusinessKey("a"), workflow.OncePer(workflow.Day, "Local")}},
	} {
		_, err := f.Run(t.Context(), e, "a", test.opts...)
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		require.ErrorContains(t, err, test.want)
	}
	require.Empty(t, everyCase(t, e))
}

// Of many starts at once each policy leaves one case that is active.
func TestTheSameAgainAtOnce(t *testing.T) {
	for _, policy := range []workflow.Taken{workflow.Refuse, workflow.Return, workflow.Supersede} {
		t.Run(string(policy), func(t *testing.T) {
			e := enginetest.New(t, napping())
			startAtOnce(t, policy, e.Engine, e.Engine)
		})
	}
}

func TestTheSameAgainInAFleet(t *testing.T) {
	f := newFleet(t)
	one, two := f.open(engine.Config{}, napping()), f.open(engine.Config{}, napping())
	startAtOnce(t, workflow.Return, one, two)
	startAtOnce(t, workflow.Supersede, one, two)
}

func startAtOnce(t *testing.T, policy workflow.Taken, engines ...*engine.Engine) {
	t.Helper()
	const starts = 12
	var started sync.WaitGroup
	errs := make([]error, starts)
	for i := range starts {
		started.Go(func() {
			start := workflow.Start("nap", []byte(`"x"`), workflow.BusinessKey(string(policy)), workflow.IfTaken(policy))
			_, errs[i] = engines[i%len(engines)].Do(t.Context(), start)
			for errors.Is(errs[i], store.ErrUndone) && errors.Is(errs[i], store.ErrUnavailable) { // on a busy machine: the wait for a lock of the other engine
				_, errs[i] = engines[i%len(engines)].Do(t.Context(), start)
			}
		})
	}
	started.Wait()
	refused := 0
	for _, err := range errs {
		if policy == workflow.Refuse && errors.Is(err, workflow.ErrKeyTaken) {
			refused++
			continue
		}
		require.NoError(t, err)
	}
	live := found(t, engines[0], store.CaseFilter{Key: string(policy), States: []state.CaseState{state.CaseStarted}})
	require.Len(t, live, 1)
	all := found(t, engines[0], store.CaseFilter{Key: string(policy)})
	switch policy {
	case workflow.Refuse:
		require.Equal(t, starts-1, refused)
	case workflow.Supersede:
		require.Len(t, all, starts)
	default:
		require.Len(t, all, 1)
	}
}
