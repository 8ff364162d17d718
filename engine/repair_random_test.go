package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// repaired are workflows in which failures climb, are borne, held open and tried again.
const repaired = `
workflow flat
  start s
  end e
  condition p q
  task A
  task B items=3
  task C policy=incident
  task D split=xor
  task J join=or
  task R auto
  flow s -> A
  flow A -> B, C, D
  flow B -> J
  flow C -> J
  flow D -> p, q
  flow p -> R
  flow R -> J
  flow q -> J
  flow J -> e
workflow deep
  start s
  end e
  composite S of flat cases=2 policy=quorum:1
  composite T of leaf cases=2 policy=incident
  composite U of leaf
  task Z
  flow s -> Z
  flow Z -> S, T, U
  flow S -> J
  flow T -> J
  flow U -> J
  task J
  flow J -> e
workflow leaf
  start s
  end e
  task a items=2 policy=quorum:1
  task b
  flow s -> a
  flow a -> b
  flow b -> e
`

// compiled makes workflows of notation.
func compiled(t testing.TB, text string) (all []engine.Workflow) {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{}, text)
	require.NoError(t, err)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, d := range defs {
		all = append(all, d)
	}
	return all
}

// breaker breaks and repairs cases at random.
type breaker struct {
	t     testing.TB
	e     *enginetest.Engine
	roots []workitem.CaseID
	log   []string
}

// mayBeRefused are the codes with which a repair is refused that makes no sense as things are.
var mayBeRefused = []string{"not-failed", "not-active", "not-found", "illegal-transition", "suspended", "dead-end", "bad-command", "bad-route"}

// do has the engine execute a command. It is done or refused; then each root case that is active has a person or a job that can act.
func (b *breaker) do(c workflow.Command) bool {
	b.t.Helper()
	_, err := b.e.Do(b.t.Context(), c)
	b.log = append(b.log, fmt.Sprintf("%s %s %s %s %v", c.Kind, c.Action, c.From, c.To, err))
	if err != nil {
		require.Contains(b.t, mayBeRefused, engine.Code(err), "%v\n%s", err, strings.Join(b.log, "\n"))
	}
	b.e.Drain()
	for _, id := range b.roots {
		answer, err := b.e.Why(b.t.Context(), id)
		require.NoError(b.t, err)
		stuck := func(w why.Wait) bool { return w.Kind == why.Stuck }
		require.False(b.t, slices.ContainsFunc(answer.Waits, stuck), "%s\n%s", answer, strings.Join(b.log, "\n"))
	}
	return err == nil
}

func (b *breaker) items() (all []*store.ItemRow) {
	for row, err := range store.AllItems(b.t.Context(), b.e, store.ItemFilter{}) {
		require.NoError(b.t, err)
		all = append(all, row)
	}
	return all
}

func (b *breaker) cases(f store.CaseFilter) (all []*state.Case) {
	for c, err := range store.AllCases(b.t.Context(), b.e, f) {
		require.NoError(b.t, err)
		all = append(all, c)
	}
	return all
}

// step does one random thing.
func (b *breaker) step(rt *rapid.T) {
	items, cases := b.items(), b.cases(store.CaseFilter{})
	if len(items) == 0 {
		return
	}
	it := rapid.SampledFrom(items).Draw(rt, "item")
	for it.State.Final() && rapid.IntRange(0, 3).Draw(rt, "another") > 0 {
		it = rapid.SampledFrom(items).Draw(rt, "item")
	}
	switch rapid.SampledFrom([]string{"act", "act", "act", "fail", "fail", "retry", "retry", "skip", "give-up", "resume", "resume", "cancel", "crash", "suspend", "move", "move", "advance"}).
		Draw(rt, "what") {
	case "act":
		do := workitem.Complete
		if it.State == workitem.Initialized {
			do = workitem.Start
		}
		b.do(workflow.Act(it.ID, do, nil, b.route(rt, it)...))
	case "advance":
		b.e.Advance(time.Duration(rapid.IntRange(1, 20).Draw(rt, "minutes")) * time.Minute)
	case "fail":
		b.do(workflow.Fail(it.ID, workitem.Failf("broken", "at random")))
	case "retry":
		opts := []workflow.Option{workflow.Because("at random")}
		if rapid.Bool().Draw(rt, "policy") {
			attempts := rapid.IntRange(0, 3).Draw(rt, "attempts")
			opts = append(opts, workflow.RetryPolicy(retry.Changes{Attempts: &attempts}))
		}
		b.do(workflow.Retry(it.ID, nil, opts...))
	case "skip":
		b.do(workflow.Skip(it.ID, nil))
	case "give-up":
		b.do(workflow.GiveUp(it.ID))
	case "resume":
		b.do(workflow.Resume(rapid.SampledFrom(cases).Draw(rt, "case").ID, nil))
	case "move":
		c := rapid.SampledFrom(cases).Draw(rt, "case")
		place := func(what string) string {
			if names := c.Net.TaskNames(); rapid.Bool().Draw(rt, "task") {
				return rapid.SampledFrom(names).Draw(rt, what)
			}
			return c.Net.ConditionName(net.ConditionID(rapid.IntRange(0, c.Net.NumConditions()-1).Draw(rt, what)))
		}
		b.do(workflow.Move(c.ID, place("from"), place("to"), workflow.Because("at random")))
	case "suspend":
		b.do(workflow.Suspend(rapid.SampledFrom(cases).Draw(rt, "case").ID))
	case "cancel":
		if c := rapid.SampledFrom(cases).Draw(rt, "case"); !c.Parent.IsZero() {
			b.do(workflow.Cancel(c.ID, nil))
		}
	case "crash":
		b.e.Crash()
	}
}

// route chooses, now and then, one or two of the flows of the split of an item's task.
func (b *breaker) route(rt *rapid.T, it *store.ItemRow) []workflow.Option {
	if rapid.Bool().Draw(rt, "default") {
		return nil
	}
	cases := b.cases(store.CaseFilter{})
	d := cases[slices.IndexFunc(cases, func(c *state.Case) bool { return c.ID == it.Case })].Net.Definition()
	var to []string
	for _, f := range d.Flows {
		if f.From == it.Task && rapid.Bool().Draw(rt, f.To) {
			to = append(to, f.To)
		}
	}
	if len(to) == 0 {
		return nil
	}
	return []workflow.Option{workflow.Route(to...)}
}

// finish brings every root case to its end: suspended and failed ones are resumed, incidents tried again, and all items done.
func (b *breaker) finish() {
	for range 200 {
		left := b.cases(store.CaseFilter{RootOnly: true, States: []state.CaseState{state.CaseStarted, state.CaseFailed}})
		if len(left) == 0 {
			return
		}
		for _, c := range b.cases(store.CaseFilter{Suspended: true}) {
			require.True(b.t, b.do(workflow.Resume(c.ID, nil)), "a suspended case can be resumed:\n%s", strings.Join(b.log, "\n"))
		}
		for _, c := range left {
			if c.State == state.CaseFailed {
				require.True(b.t, b.do(workflow.Resume(c.ID, nil)), "a failed case can be resumed:\n%s", strings.Join(b.log, "\n"))
			}
		}
		for i, err := range store.Incidents(b.t.Context(), b.e, store.IncidentFilter{}) {
			require.NoError(b.t, err)
			if i.Item.IsZero() {
				b.do(workflow.Resume(i.Child, nil))
			} else {
				b.do(workflow.Retry(i.Item, nil))
			}
		}
		for _, it := range b.items() {
			if it.State.Live() {
				b.do(workflow.Skip(it.ID, nil))
			}
		}
	}
	require.Fail(b.t, "a case does not come to its end", strings.Join(b.log, "\n"))
}

// play starts a case of each workflow, breaks and repairs them, and brings them to their ends.
func (b *breaker) play(rt *rapid.T, workflows ...string) {
	for _, name := range workflows {
		id, err := enginetest.Start(b.t.Context(), b.e, name, nil)
		require.NoError(b.t, err)
		b.roots = append(b.roots, id)
	}
	for range rapid.IntRange(1, 40).Draw(rt, "steps") {
		b.step(rt)
	}
	b.finish()
	b.e.Check()
}

// Whatever is broken and repaired, each act is done or refused, every case has somebody who can act, and can be brought to its
// end; the database is whole.
func TestRandomRepairsLeaveEveryCaseAWayToItsEnd(t *testing.T) {
	workflows := compiled(t, repaired)
	rapid.Check(t, func(rt *rapid.T) {
		b := &breaker{t: t, e: enginetest.New(t, workflows...)}
		b.play(rt, "flat", "deep")
	})
}
