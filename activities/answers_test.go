package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// recorder is a kernel that notes what callbacks ask for.
type recorder struct {
	activities.Effects
	items  []*workitem.Item
	opened []activities.NewItem
	asked  []string // actions, with their payloads
	ended  []string
	err    error // of every call
}

func (r *recorder) Items(workitem.CaseID, string) []*workitem.Item { return r.items }

func (r *recorder) OpenItem(_ context.Context, _ activities.Place, n activities.NewItem) (*workitem.Item, error) {
	r.opened = append(r.opened, n)
	return new(workitem.Item), r.err
}

func (r *recorder) Ask(_ *workitem.Item, a workitem.Action, payload json.RawMessage) error {
	r.asked = append(r.asked, a.String()+" "+string(payload))
	return r.err
}

func (r *recorder) End(it *workitem.Item, a workitem.Action, f *workitem.Failure) error {
	r.ended = append(r.ended, a.String()+" "+it.Label()+" "+f.Message)
	return r.err
}

var born = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// failed is the change of the third attempt of an item, an hour after the first was made.
func (r *recorder) failed(failure *workitem.Failure, f activities.Function) *activities.Change {
	r.items = []*workitem.Item{{ID: workitem.ID{1}, Created: born}, {ID: workitem.ID{9}, Created: born.Add(-time.Hour)},
		{ID: workitem.ID{2}, Predecessor: workitem.ID{1}, Created: born.Add(time.Minute)},
		{ID: workitem.ID{3}, Predecessor: workitem.ID{2}, Attempt: 3, Input: json.RawMessage(`5`), Failure: failure}}
	a := activities.NewActivation(r, activities.Place{Task: "a"}, born.Add(time.Hour), activities.CaseInfo{}, workitem.Tally{})
	c := activities.NewChange(a, f)
	c.Item, c.From, c.To = r.items[3], workitem.Started, workitem.Failed
	return c
}

// A retry answers a failure that another attempt may repair, also one that says nothing, and nothing else.
func TestARetryAnswersFailures(t *testing.T) {
	p := retry.Constant(4, time.Minute)
	for _, test := range []struct {
		failure *workitem.Failure
		to      workitem.State
		again   int
	}{
		{workitem.Failf("busy", ""), workitem.Failed, 1},
		{nil, workitem.Failed, 1},
		{&workitem.Failure{Code: "wrong"}, workitem.Failed, 0},
		{workitem.Failf("busy", ""), workitem.Canceled, 0},
	} {
		r := new(recorder)
		c := r.failed(test.failure, activities.Function{})
		c.To = test.to
		require.NoError(t, activities.Retry(p)(t.Context(), c))
		require.Len(t, r.opened, test.again)
		if test.again > 0 {
			require.Equal(t, time.Minute, r.opened[0].After)
			require.Equal(t, c.Item, r.opened[0].Predecessor)
			require.False(t, r.opened[0].KeepSteps)
		}
	}
	r := new(recorder)
	require.NoError(t, activities.Retry(retry.Constant(3, time.Minute))(t.Context(), r.failed(nil, activities.Function{})))
	require.Empty(t, r.opened, "the attempts are used up")
	require.NoError(t, activities.Resume(p)(t.Context(), r.failed(nil, activities.Function{})))
	require.True(t, r.opened[0].KeepSteps)
	c := r.failed(nil, activities.Function{})
	c.Item = nil // that of a child case
	require.NoError(t, activities.Retry(p)(t.Context(), c))
	require.Len(t, r.opened, 1)
	r.err = errors.New("broken")
	require.ErrorIs(t, activities.Retry(p)(t.Context(), r.failed(nil, activities.Function{})), r.err)
}

// The filters of a policy see the failure, the function with its input, and the time since the first attempt, unless the process
// in which the work failed has asked them.
func TestTheFiltersOfARetry(t *testing.T) {
	var seen []retry.Failure
	p := retry.Constant(9, 0)
	p.Filters = []retry.Filter{func(f retry.Failure) bool { seen = append(seen, f); return false }}
	r := new(recorder)
	failure := workitem.Failf("busy", "")
	require.NoError(t, activities.Retry(p)(t.Context(), r.failed(failure, activities.Function{})))
	require.Empty(t, r.opened)
	require.Equal(t, []retry.Failure{{Attempt: 3, Elapsed: time.Hour, Err: failure, Name: "a", Input: json.RawMessage(`5`)}}, seen)

	decode := func(input json.RawMessage) (any, error) { return string(input) + "!", nil }
	require.NoError(t, activities.Retry(p)(t.Context(), r.failed(nil, activities.Function{Name: "f", Decode: decode})))
	require.Equal(t, retry.Failure{Attempt: 3, Elapsed: time.Hour, Name: "f", Input: "5!"}, seen[1])

	refuse := func(json.RawMessage) (any, error) { return nil, errors.New("no") }
	require.Equal(t, json.RawMessage(`5`), activities.Function{Decode: refuse}.Typed(json.RawMessage(`5`)), "it stays JSON")

	asked := &workitem.Failure{Code: "busy", Retryable: true, Filtered: true}
	require.NoError(t, activities.Retry(p)(t.Context(), r.failed(asked, activities.Function{})))
	require.Len(t, seen, 2)
	require.Len(t, r.opened, 1)
}

// Several answers are called in turn, up to the first that fails; a nil one is none. The policy of a single retry among them is
// known, that of several is not.
func TestAllAnswers(t *testing.T) {
	var log []string
	broken := errors.New("broken")
	say := func(text string, err error) func(context.Context, *activities.Item) error {
		return func(context.Context, *activities.Item) error { log = append(log, text); return err }
	}
	require.ErrorIs(t, activities.All(say("a", nil), nil, say("b", broken), say("c", nil))(t.Context(), nil), broken)
	require.Equal(t, []string{"a", "b"}, log)

	p := retry.Constant(4, time.Minute)
	p.Filters = []retry.Filter{retry.OnCode("busy")}
	q := retry.Constant(5, time.Minute)
	q.Filters = []retry.Filter{retry.OnCode("late")}
	require.Equal(t, 4, activities.RetryOf(activities.Retry(p)).Attempts)
	require.Equal(t, 4, activities.RetryOf(activities.All(activities.Retry(p))).Attempts)
	require.Zero(t, activities.RetryOf(activities.All(activities.Retry(p), activities.Retry(q))).Attempts)
	require.Zero(t, activities.RetryOf(activities.Retry(retry.Policy{Attempts: -1})).Attempts, "it cannot work")
	require.Zero(t, activities.RetryOf(func(context.Context, *activities.Change) error { return nil }).Attempts)
}

// What a callback asks goes to the kernel with its payload as JSON. A reason that is nil is none.
func TestRequestsOfItemReachKernel(t *testing.T) {
	r := new(recorder)
	it := activities.NewItemScope(r, activities.Place{Task: "a"}, born, activities.CaseInfo{}, &workitem.Item{Task: "a", Generation: 1, Number: 2})
	require.NoError(t, it.Start())
	require.NoError(t, it.Complete(map[string]int{"n": 1}))
	require.NoError(t, it.Complete(json.RawMessage(`[2]`)))
	require.NoError(t, it.Fail(&workitem.Failure{Code: "bad"}))
	require.NoError(t, it.Cancel(nil))
	require.Equal(t, []string{"start ", `complete {"n":1}`, "complete [2]", `fail {"code":"bad","retryable":false}`, "cancel "}, r.asked)
	require.Error(t, it.Complete(math.NaN()), "it has no JSON form")
	require.Error(t, it.Fail(&workitem.Failure{Details: json.RawMessage(`{`)}))
	require.Len(t, r.asked, 5)

	r.failed(nil, activities.Function{})
	last := activities.NewItemScope(r, activities.Place{Task: "a"}, born, activities.CaseInfo{}, r.items[3])
	require.Equal(t, []*workitem.Item{r.items[2], r.items[0]}, last.Predecessors())
}

// A timeout ends its item, or each item of its task up to the first that is refused, and says of which of the two it was.
func TestTimersEndItems(t *testing.T) {
	r := &recorder{items: []*workitem.Item{{Task: "a", Generation: 1, Number: 1}, {Task: "a", Generation: 1, Number: 2}}}
	a := activities.NewActivation(r, activities.Place{Task: "a"}, born, activities.CaseInfo{}, workitem.Tally{})
	it := activities.NewItemScope(r, activities.Place{Task: "a"}, born, activities.CaseInfo{}, r.items[0])
	require.NoError(t, activities.Timeout(time.Minute).Item(t.Context(), it))
	require.NoError(t, activities.CancelAfter(time.Minute).Item(t.Context(), it))
	require.NoError(t, activities.TimeoutTask(time.Minute).Task(t.Context(), a))
	require.Equal(t, []string{"fail a.1.1 not done within 1m0s", "cancel a.1.1 not done within 1m0s",
		"fail a.1.1 the task was not done within 1m0s", "fail a.1.2 the task was not done within 1m0s"}, r.ended)
	r.ended, r.err = nil, errors.New("broken")
	require.ErrorIs(t, activities.CancelTaskAfter(time.Minute).Task(t.Context(), a), r.err)
	require.Len(t, r.ended, 1)
}
