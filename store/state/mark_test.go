package state_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// shape is what a tree shows: enough to tell one state from another.
func shape(tree *state.Tree) (s []int) {
	tree.Each(func(c *state.Case) {
		s = append(s, int(c.State), c.Items.Len(), c.Jobs.Len(), len(c.Children), int(c.Marking[0]), c.Tasks[0].Created)
	})
	return s
}

// What follows a mark is undone alone, or becomes a part of the command: as if the rest had been all there was.
func TestAMarkIsUndoneAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := byte(0)
		var old []workitem.ID // that were opened before any mark
		some := func(label string) (events []state.Change) {
			for range rapid.IntRange(0, 4).Draw(t, label) {
				n++
				switch rapid.IntRange(0, 3).Draw(t, "event") {
				case 0:
					events = append(events, &state.ItemOpened{Item: &workitem.Item{ID: workitem.ID{n}, Case: caseID,
						Task: "draft", State: workitem.Initialized}})
					if label == "before" {
						old = append(old, workitem.ID{n})
					}
				case 3:
					if len(old) > 0 {
						events = append(events, &state.ItemMoved{Case: caseID, Item: rapid.SampledFrom(old).Draw(t, "item"),
							Action: workitem.Start, To: workitem.Started, By: string('a' + rune(n))})
					}
				case 1:
					events = append(events, &state.JobOpened{Job: &state.Job{ID: workitem.JobID{n}, Case: caseID,
						State: state.JobPending}})
				case 2:
					events = append(events, &state.Produced{Case: caseID, Into: []net.ConditionID{0}})
				}
			}
			return events
		}
		open := func() *state.Tree {
			tree := state.NewTree()
			tree.Begin()
			require.NoError(t, tree.Apply(&state.CaseOpened{Case: &state.Case{ID: caseID, Root: caseID, Net: review}}))
			tree.End(1)
			return tree
		}
		apply := func(tree *state.Tree, lists ...[]state.Change) {
			for _, events := range lists {
				for _, e := range events {
					require.NoError(t, tree.Apply(e))
				}
			}
		}
		before, within, inner, after := some("before"), some("within"), some("inner"), some("after")
		keep := rapid.Bool().Draw(t, "keep")
		got, want := open(), open()
		got.Begin()
		apply(got, before)
		outer := got.Mark()
		apply(got, within)
		m := got.Mark()
		apply(got, inner)
		got.Undo(m)
		if keep {
			got.Keep(outer)
		} else {
			got.Undo(outer)
		}
		apply(got, after)

		want.Begin()
		apply(want, before)
		if keep {
			apply(want, within)
		}
		apply(want, after)
		require.Equal(t, shape(want), shape(got))
		if rapid.Bool().Draw(t, "rollback") {
			got.Rollback()
			require.Equal(t, shape(open()), shape(got), "the whole command is undone, marks and all")
			return
		}
		all, changed := want.End(2), got.End(2)
		require.Equal(t, all.Items, changed.Items)
		require.Equal(t, all.Jobs, changed.Jobs)
		require.Len(t, changed.Cases, len(all.Cases))
	})
}

// A transaction of many commands marks each of them. What one costs does not depend on how many came before.
func TestAMarkCostsWhatIsDoneAfterIt(t *testing.T) {
	allocated := func(commands int) uint64 {
		tree := state.NewTree()
		tree.Begin()
		require.NoError(t, tree.Apply(&state.CaseOpened{Case: &state.Case{ID: caseID, Root: caseID, Net: review}}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range commands {
			m := tree.Mark()
			job := &state.Job{ID: workitem.JobID{byte(i >> 8), byte(i)}, Case: caseID, State: state.JobFailed}
			require.NoError(t, tree.Apply(&state.JobOpened{Job: job}))
			require.NoError(t, tree.Apply(&state.JobMoved{Case: caseID, Job: job.ID, To: state.JobDone}))
			tree.Keep(m)
		}
		runtime.ReadMemStats(&after)
		require.Len(t, tree.End(1).Jobs, commands)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(commands)
	}
	few, many := allocated(500), allocated(8000)
	require.Less(t, many, 3*few, "bytes for each command")
}

func TestOnlyARootCaseThatHasEndedIsRemoved(t *testing.T) {
	tree := state.NewTree()
	tree.Begin()
	require.NoError(t, tree.Apply(&state.CaseOpened{Case: &state.Case{ID: caseID, Root: caseID, Net: review}}))
	require.ErrorContains(t, tree.Apply(&state.CaseRemoved{Case: caseID}), "it is started")
	job := &state.Job{ID: workitem.JobID{1}, Case: caseID, State: state.JobPending, Detached: true}
	require.NoError(t, tree.Apply(&state.JobOpened{Job: job}))
	require.NoError(t, tree.Apply(&state.CaseEnded{Case: caseID, State: state.CaseFailed}))
	require.ErrorContains(t, tree.Apply(&state.CaseRemoved{Case: caseID}), "1 jobs")
	require.NoError(t, tree.Apply(&state.JobMoved{Case: caseID, Job: job.ID, To: state.JobDone}))
	tree.End(1)
	tree.Begin()
	require.NoError(t, tree.Apply(&state.CaseRemoved{Case: caseID}))
	require.True(t, tree.Removed())
	tree.Rollback()
	require.False(t, tree.Removed())
	tree.Begin()
	require.NoError(t, tree.Apply(&state.CaseRemoved{Case: caseID}))
	require.True(t, tree.End(2).Removed)
	require.True(t, tree.Removed())
}
