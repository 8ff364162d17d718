package state_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// one is a tree of the root case "holder", with its composite task "cases" (0) and its task "items" (1), in the middle of a command.
func one(t *testing.T) *state.Tree {
	t.Helper()
	tree := state.NewTree()
	tree.Begin()
	apply(t, tree, &state.CaseOpened{Case: &state.Case{ID: caseID, Root: caseID, Net: holder}})
	return tree
}

func apply(t *testing.T, tree *state.Tree, list ...state.Change) {
	t.Helper()
	for _, e := range list {
		require.NoError(t, tree.Apply(e), "%T", e)
	}
}

func enabled(task net.TaskID, generation int) *state.TaskMoved {
	return &state.TaskMoved{Case: caseID, Task: task, To: state.TaskEnabled, Generation: generation}
}

func opened(n byte, generation int) *state.ItemOpened {
	return &state.ItemOpened{Item: &workitem.Item{ID: workitem.ID{n}, Case: caseID, Task: "items", Generation: generation,
		State: workitem.Initialized}}
}

func moved(n byte, to workitem.State, output string) *state.ItemMoved {
	return &state.ItemMoved{Case: caseID, Item: workitem.ID{n}, To: to, By: "ann", At: noon, Output: json.RawMessage(output)}
}

// Tokens are added and taken one by one. A condition never holds less than none.
func TestApplyTokens(t *testing.T) {
	tree := one(t)
	marking := func() net.Marking { return tree.Case(caseID).Marking }
	require.Equal(t, net.Marking{1, 0, 0}, marking()[:3], "a case begins with a token in its start condition")
	apply(t, tree, &state.Produced{Case: caseID, Into: []net.ConditionID{1, 1, 2}})
	require.Equal(t, net.Marking{1, 2, 1}, marking()[:3])
	apply(t, tree, &state.Removed{Case: caseID, From: 1, Tokens: 2},
		&state.TaskMoved{Case: caseID, Task: 0, To: state.TaskStarted, Consumed: []net.ConditionID{0}})
	require.Equal(t, net.Marking{0, 0, 1}, marking()[:3])
	require.ErrorContains(t, tree.Apply(&state.Removed{Case: caseID, From: 2, Tokens: 2}), "would hold less than no token")
	require.ErrorContains(t, tree.Apply(&state.TaskMoved{Case: caseID, Task: 0, To: state.TaskStarted, Consumed: []net.ConditionID{0}}),
		"would hold less than no token")
}

// An enabling begins an activation: nothing is counted in it yet, and the final items of earlier ones leave the memory.
func TestApplyEnabling(t *testing.T) {
	tree := one(t)
	c := func() *state.Case { return tree.Case(caseID) }
	apply(t, tree, enabled(1, 1), opened(1, 1), opened(2, 1), moved(1, workitem.Completed, `7`))
	require.Equal(t, 2, c().Tasks[1].Created)
	apply(t, tree, &state.TaskMoved{Case: caseID, Task: 1, To: state.TaskCompleted, Generation: 1})
	require.JSONEq(t, `7`, string(c().Tasks[1].Output), "an item gave it")
	require.Equal(t, 2, c().Items.Len())
	apply(t, tree, enabled(1, 2))
	require.Equal(t, state.Task{State: state.TaskEnabled, Generation: 2, Output: json.RawMessage(`7`)}, c().Tasks[1])
	require.Nil(t, c().Item(workitem.ID{1}))
	require.NotNil(t, c().Item(workitem.ID{2}), "it is live")
	apply(t, tree, &state.TaskMoved{Case: caseID, Task: 1, To: state.TaskStarted, Generation: 2})
	require.Equal(t, 2, c().Tasks[1].Generation)
	require.JSONEq(t, `7`, string(c().Tasks[1].Output))
	apply(t, tree, &state.TaskMoved{Case: caseID, Task: 1, To: state.TaskCompleted, Generation: 2})
	require.Nil(t, c().Tasks[1].Output, "what an earlier activation gave is not what this one gave")
}

// An item keeps when it started and ended, what it gave and why it failed. A reset takes the start back.
func TestApplyItems(t *testing.T) {
	tree := one(t)
	item := func(n byte) *workitem.Item { return tree.Case(caseID).Item(workitem.ID{n}) }
	apply(t, tree, enabled(1, 1), opened(1, 1), moved(1, workitem.Started, ``))
	require.Equal(t, noon, item(1).Started)
	require.Equal(t, "ann", item(1).By)
	require.Zero(t, item(1).Ended)
	apply(t, tree, moved(1, workitem.Initialized, ``))
	require.Zero(t, item(1).Started)
	apply(t, tree, moved(1, workitem.Started, ``), moved(1, workitem.Completed, ``))
	require.Equal(t, noon, item(1).Ended)
	require.Equal(t, noon, item(1).Started)
	require.JSONEq(t, `null`, string(tree.Case(caseID).Tasks[1].Output), "an output of nothing is not no output")

	failed := moved(2, workitem.Failed, ``)
	failed.Failure = workitem.Failf("bad", "it is")
	apply(t, tree, opened(2, 1), failed)
	require.Equal(t, failed.Failure, item(2).Failure)
	require.JSONEq(t, `null`, string(tree.Case(caseID).Tasks[1].Output), "a failure gives none")
	next := opened(3, 1)
	next.Item.Predecessor = workitem.ID{2}
	apply(t, tree, next)
	require.Equal(t, workitem.ID{3}, item(2).Successor)
	far := opened(4, 1)
	far.Item.Predecessor = workitem.ID{99}
	apply(t, tree, far)
	require.NotNil(t, item(4), "its predecessor may have left the memory")
}

// A live job stays with its case, also by its item; one that ends leaves it, with its end.
func TestApplyJobs(t *testing.T) {
	tree := one(t)
	item, job := workitem.ID{5}, workitem.JobID{6}
	apply(t, tree, &state.JobOpened{Job: &state.Job{ID: job, Case: caseID, Item: item, State: state.JobPending}},
		&state.JobOpened{Job: &state.Job{ID: workitem.JobID{7}, Case: caseID, State: state.JobPending}},
		&state.JobMoved{Case: caseID, Job: job, To: state.JobRunning, Fence: 3, Owner: "w", Attempt: 2, Crashes: 1, Due: noon, Lease: noon, At: noon})
	c, j := tree.Job(job)
	require.Equal(t, caseID, c.ID)
	require.Equal(t, &state.Job{ID: job, Case: caseID, Item: item, State: state.JobRunning, Fence: 3, Owner: "w", Attempt: 2, Crashes: 1,
		Due: noon, Lease: noon}, j)
	require.Equal(t, []*state.Job{j}, c.Jobs.Of(item))
	require.Empty(t, c.Jobs.Of(workitem.ID{4}))
	apply(t, tree, &state.JobMoved{Case: caseID, Job: job, To: state.JobDone, At: noon})
	_, j = tree.Job(job)
	require.Nil(t, j)
	require.Empty(t, tree.Case(caseID).Jobs.Of(item))
	require.Equal(t, 1, tree.Case(caseID).Jobs.Len())
	dirty := tree.End(1)
	require.Equal(t, noon, dirty.Jobs[0].Ended)
	require.Len(t, dirty.Jobs, 2, "the newest of each")
}

// A case holds the steps that wait, and the events that nothing has taken.
func TestApplyStepsAndEvents(t *testing.T) {
	tree := one(t)
	wait, done := workitem.StepID{1}, workitem.StepID{2}
	apply(t, tree,
		&state.StepOpened{Step: &workitem.Step{ID: wait, Case: caseID, State: workitem.StepWaiting, Result: json.RawMessage(`1`)}},
		&state.StepOpened{Step: &workitem.Step{ID: done, Case: caseID, State: workitem.StepDone}},
		&state.StepMoved{Case: caseID, Step: wait, To: workitem.StepWaiting, Attempt: 4, Due: noon, At: noon})
	c := tree.Case(caseID)
	require.Nil(t, c.Step(done))
	require.Equal(t, &workitem.Step{ID: wait, Case: caseID, State: workitem.StepWaiting, Result: json.RawMessage(`1`), Attempt: 4, Due: noon},
		c.Step(wait), "what is not said stays")
	apply(t, tree, &state.StepMoved{Case: caseID, Step: wait, To: workitem.StepDone, Result: json.RawMessage(`2`), At: noon})
	require.Nil(t, tree.Case(caseID).Step(wait))

	apply(t, tree, &state.MessageSent{Message: &state.Message{ID: workitem.MessageID{3}, Case: caseID, Name: "go"}})
	require.Equal(t, 1, tree.Case(caseID).Mail.Len())
	taken := &state.MessageTaken{Case: caseID, Message: workitem.MessageID{3}, Step: wait, At: noon}
	apply(t, tree, taken)
	require.Zero(t, tree.Case(caseID).Mail.Len())
	require.ErrorContains(t, tree.Apply(taken), "was taken before, or never sent")
	dirty := tree.End(1)
	require.Equal(t, noon, dirty.Steps[0].Ended)
	require.JSONEq(t, `2`, string(dirty.Steps[0].Result))
	require.Equal(t, noon, dirty.Messages[0].Taken)
	require.Equal(t, wait, dirty.Messages[0].Step)
}

// A child case is counted in its activation, and by where it stands. One that a step runs is in none.
func TestApplyChildCases(t *testing.T) {
	tree := one(t)
	apply(t, tree, enabled(0, 2))
	open := func(n byte, caller workitem.JobID) workitem.CaseID {
		id := workitem.CaseID{9, n}
		c := &state.Case{ID: id, Root: caseID, Parent: caseID, Net: holder, Caller: caller}
		if caller.IsZero() {
			c.ParentTask, c.Generation = "cases", 2
		}
		apply(t, tree, &state.CaseOpened{Case: c})
		return id
	}
	tally := func() workitem.Tally { return tree.ChildTally(caseID, "cases", 2) }
	a, b := open(1, workitem.JobID{}), open(2, workitem.JobID{})
	open(3, workitem.JobID{8})
	require.Equal(t, 2, tree.Case(caseID).Tasks[0].Created)
	require.Len(t, tree.Case(caseID).Children, 3)
	require.Equal(t, workitem.Tally{Initialized: 2}, tally())
	apply(t, tree, &state.CaseBegun{Case: a}, &state.CaseBegun{Case: b}, &state.CaseEnded{Case: b, State: state.CaseFailed, At: noon, KeepUntil: noon,
		Failure: workitem.Failf("bad", ""), Output: json.RawMessage(`1`)})
	require.Equal(t, workitem.Tally{Started: 1, Failed: 1}, tally())
	require.Equal(t, noon, tree.Case(b).Ended)
	require.Equal(t, noon, tree.Case(b).KeepUntil)
	require.JSONEq(t, `1`, string(tree.Case(b).Output))
	require.Equal(t, workitem.Tally{}, tree.ChildTally(caseID, "cases", 1))
	apply(t, tree, &state.CaseResumed{Case: b})
	require.Equal(t, workitem.Tally{Started: 2}, tally())
	require.Zero(t, tree.Case(b).Ended)
	require.Nil(t, tree.Case(b).Failure)
	require.ErrorContains(t, tree.Apply(&state.CaseResumed{Case: b}), "is resumed, and it is started")
	apply(t, tree, &state.CaseEnded{Case: b, State: state.CaseCompleted}, &state.CaseEnded{Case: a, State: state.CaseCanceled})
	require.Equal(t, workitem.Tally{Completed: 1, Canceled: 1}, tally())
	require.ErrorContains(t, tree.Apply(&state.CaseResumed{Case: b}), "is resumed, and it is completed")
	apply(t, tree, &state.CaseResumed{Case: a})
}

// An activation continues only if it failed, or was lost with its case, and is the latest.
func TestApplyAResumedTask(t *testing.T) {
	tree := one(t)
	task := func() state.Task { return tree.Case(caseID).Tasks[1] }
	move := func(to state.TaskState, lost bool) *state.TaskMoved {
		return &state.TaskMoved{Case: caseID, Task: 1, To: to, Generation: 3, Lost: lost}
	}
	resumed := &state.TaskResumed{Case: caseID, Task: 1, Generation: 3}
	apply(t, tree, enabled(1, 3), move(state.TaskStarted, false))
	require.ErrorContains(t, tree.Apply(resumed), "the task is started in activation 3")
	apply(t, tree, move(state.TaskFailed, false))
	require.ErrorContains(t, tree.Apply(&state.TaskResumed{Case: caseID, Task: 1, Generation: 2}), "activation 2")
	apply(t, tree, resumed)
	require.Equal(t, state.TaskStarted, task().State)
	apply(t, tree, move(state.TaskCanceled, true), resumed)
	require.Equal(t, state.Task{State: state.TaskStarted, Generation: 3}, task())
	apply(t, tree, move(state.TaskCanceled, false))
	require.Error(t, tree.Apply(resumed), "it was canceled by itself")
}

// A change that names what is not there is refused, as it cannot follow from the state.
func TestApplyRefusesWhatDoesNotFollow(t *testing.T) {
	other := workitem.CaseID{77}
	for _, e := range []state.Change{
		&state.CaseBegun{Case: other},
		&state.CaseOpened{Case: &state.Case{ID: other, Parent: workitem.CaseID{78}, ParentTask: "cases", Net: holder}},
		&state.CaseOpened{Case: &state.Case{ID: other, Parent: caseID, ParentTask: "nothing", Net: holder}},
		&state.ItemOpened{Item: &workitem.Item{ID: workitem.ID{1}, Case: caseID, Task: "nothing"}},
		moved(1, workitem.Started, ``),
		&state.JobMoved{Case: caseID, Job: workitem.JobID{1}},
		&state.StepMoved{Case: caseID, Step: workitem.StepID{1}},
		&state.MessageTaken{Case: caseID, Message: workitem.MessageID{1}},
	} {
		require.Error(t, one(t).Apply(e), "%T", e)
	}
}

// A rollback undoes a command of many cases, and so does one after it.
func TestARollbackOfManyCases(t *testing.T) {
	tree := one(t)
	var ids []workitem.CaseID
	for n := range byte(100) {
		ids = append(ids, workitem.CaseID{9, n})
		apply(t, tree, &state.CaseOpened{Case: &state.Case{ID: ids[n], Root: caseID, Parent: caseID, ParentTask: "cases", Net: holder}})
	}
	require.Len(t, tree.End(7).Cases, 101)
	require.Equal(t, int64(7), tree.Case(caseID).LastSeq)
	require.Equal(t, 101, tree.Len())
	for range 2 {
		tree.Begin()
		for _, id := range ids {
			apply(t, tree, &state.CaseBegun{Case: id}, &state.CaseEnded{Case: id, State: state.CaseCompleted})
		}
		tree.Rollback()
		for _, id := range ids {
			require.Equal(t, workitem.Initialized, tree.Case(id).ItemState())
		}
	}
	require.Empty(t, tree.End(8).Items)
	require.Nil(t, state.NewTree().Case(caseID))
	require.Zero(t, state.NewTree().Len())
}

// A command gives the newest value of each item once, in the order of the first change, however many there are.
func TestACommandGivesTheNewestOfEach(t *testing.T) {
	for _, n := range []byte{1, 63, 64, 65, 200} {
		tree := one(t)
		apply(t, tree, enabled(1, 1))
		for i := range n {
			apply(t, tree, opened(n-i, 1))
		}
		for i := range n {
			apply(t, tree, moved(i+1, workitem.Started, ``))
		}
		dirty := tree.End(1)
		require.Len(t, dirty.Items, int(n))
		for i, it := range dirty.Items {
			require.Equal(t, workitem.ID{n - byte(i)}, it.ID)
			require.Equal(t, workitem.Started, it.State)
		}
		require.Equal(t, workitem.Tally{Started: int(n)}, tree.Case(caseID).Items.Tally("items", 1))
		require.Equal(t, workitem.Tally{}, tree.Case(caseID).Items.Tally("items", 2))
	}
}

// The states have words, by which they are stored and read.
func TestTheWordsOfStates(t *testing.T) {
	for s := state.CaseStarted; s <= state.CaseCanceled; s++ {
		got, err := state.ParseCaseState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.Equal(t, s != state.CaseStarted, s.Final())
	}
	for s := state.JobPending; s <= state.JobFailed; s++ {
		got, err := state.ParseJobState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.Equal(t, s <= state.JobWaiting, s.Live())
	}
	require.False(t, state.JobNone.Live())
	var words []string
	for s := state.TaskDisabled; s <= state.TaskCanceled+1; s++ {
		words = append(words, s.String())
		require.Equal(t, s == state.TaskEnabled || s == state.TaskStarted, s.Active())
	}
	require.Equal(t, []string{"disabled", "enabled", "started", "completed", "failed", "canceled", "state(6)"}, words)
	for _, word := range []string{"none", "nothing"} {
		_, err := state.ParseCaseState(word)
		require.ErrorContains(t, err, "use one of started, completed, failed, canceled")
		_, err = state.ParseJobState(word)
		require.Error(t, err)
	}
}

// Busy tasks are those that are started; a case stands as an item would.
func TestBusyTasksAndItemStateOfACase(t *testing.T) {
	tree := one(t)
	c := func() *state.Case { return tree.Case(caseID) }
	require.Equal(t, workitem.Initialized, c().ItemState())
	apply(t, tree, enabled(0, 1), enabled(1, 1), &state.TaskMoved{Case: caseID, Task: 1, To: state.TaskStarted, Generation: 1}, &state.CaseBegun{Case: caseID})
	require.Equal(t, []bool{false, true}, []bool{c().Busy().Has(0), c().Busy().Has(1)})
	require.Equal(t, workitem.Started, c().ItemState())
	require.False(t, tree.Ended())
	for to, want := range map[state.CaseState]workitem.State{state.CaseCompleted: workitem.Completed, state.CaseFailed: workitem.Failed,
		state.CaseCanceled: workitem.Canceled} {
		apply(t, tree, &state.CaseEnded{Case: caseID, State: to})
		require.Equal(t, want, c().ItemState())
		require.True(t, tree.Ended())
	}
}

// Items and jobs are found wherever in the tree they are, in a small tree and in a large one.
func TestItemsAndJobsAreFound(t *testing.T) {
	tree := one(t)
	apply(t, tree, enabled(1, 1), opened(1, 1))
	for n := byte(1); n <= 40; n++ {
		child := workitem.CaseID{9, n}
		apply(t, tree, &state.CaseOpened{Case: &state.Case{ID: child, Root: caseID, Parent: caseID, ParentTask: "cases", Net: holder}},
			&state.ItemOpened{Item: &workitem.Item{ID: workitem.ID{8, n}, Case: child, Task: "items"}},
			&state.JobOpened{Job: &state.Job{ID: workitem.JobID{7, n}, Case: child, State: state.JobPending}})
		for i := byte(1); i <= n; i++ {
			c, it := tree.Item(workitem.ID{8, i})
			require.Equal(t, workitem.ID{8, i}, it.ID)
			require.Equal(t, workitem.CaseID{9, i}, c.ID)
			c, j := tree.Job(workitem.JobID{7, i})
			require.Equal(t, workitem.JobID{7, i}, j.ID)
			require.Equal(t, workitem.CaseID{9, i}, c.ID)
		}
		c, it := tree.Item(workitem.ID{99})
		require.True(t, c == nil && it == nil)
		c, j := tree.Job(workitem.JobID{99})
		require.True(t, c == nil && j == nil)
		c, _ = tree.Item(workitem.ID{1})
		require.Equal(t, caseID, c.ID)
	}
	_, it := state.NewTree().Item(workitem.ID{1})
	require.Nil(t, it)
	_, j := state.NewTree().Job(workitem.JobID{1})
	require.Nil(t, j)
}

// The child cases of an activation are counted alone, of the present one and of one before, however many they are.
func TestChildCasesAreCountedByActivation(t *testing.T) {
	tree := one(t)
	open := func(n byte, generation int) {
		apply(t, tree, &state.CaseOpened{Case: &state.Case{ID: workitem.CaseID{9, n}, Root: caseID, Parent: caseID, ParentTask: "cases",
			Generation: generation, Net: holder}})
	}
	apply(t, tree, enabled(0, 1))
	for n := range byte(100) {
		open(n, 1)
	}
	apply(t, tree, enabled(0, 2))
	open(200, 2)
	require.Equal(t, workitem.Tally{Initialized: 100}, tree.ChildTally(caseID, "cases", 1))
	require.Equal(t, workitem.Tally{Initialized: 1}, tree.ChildTally(caseID, "cases", 2))
	apply(t, tree, &state.CaseBegun{Case: workitem.CaseID{9, 1}})
	require.Equal(t, workitem.Tally{Initialized: 99, Started: 1}, tree.ChildTally(caseID, "cases", 1))
	for range tree.Children(caseID, "nothing", 1) {
		require.Fail(t, "there is no such task")
	}
}

// A list of many parts keeps its order as elements leave it from any place.
func TestManyItemsLeave(t *testing.T) {
	for _, order := range []func(i, n int) int{func(i, _ int) int { return i }, func(i, n int) int { return n - 1 - i },
		func(i, n int) int { return (i*7 + 300) % n }} {
		const n = 1000
		tree := one(t)
		id := func(i int) workitem.JobID { return workitem.JobID{byte(i >> 8), byte(i)} }
		for i := range n {
			apply(t, tree, &state.JobOpened{Job: &state.Job{ID: id(i), Case: caseID, State: state.JobPending}})
		}
		for i := range n {
			apply(t, tree, &state.JobMoved{Case: caseID, Job: id(order(i, n)), To: state.JobDone})
			jobs := tree.Case(caseID).Jobs
			require.Equal(t, n-1-i, jobs.Len())
			if i%50 == 0 {
				require.Len(t, jobs.Slice(), n-1-i)
			}
		}
	}
}

// A job belongs to one activation of one task.
func TestAJobIsOwned(t *testing.T) {
	j := &state.Job{Task: "a", Generation: 2}
	require.True(t, j.Owned("a", 2))
	require.False(t, j.Owned("a", 1))
	require.False(t, j.Owned("b", 2))
}

// Each goes down the tree, parents first; InOrder sorts some cases in the same way. What the tree does not hold is left out.
func TestTheOrderOfCases(t *testing.T) {
	tree := one(t)
	add := func(n byte, parent workitem.CaseID) workitem.CaseID {
		id := workitem.CaseID{9, n}
		apply(t, tree, &state.CaseOpened{Case: &state.Case{ID: id, Root: caseID, Parent: parent, ParentTask: "cases", Net: holder}})
		return id
	}
	a, b := add(1, caseID), add(2, caseID)
	c := add(3, a)
	var order []workitem.CaseID
	tree.Each(func(c *state.Case) { order = append(order, c.ID) })
	require.Equal(t, []workitem.CaseID{caseID, a, c, b}, order)
	var sorted []workitem.CaseID
	for _, c := range tree.InOrder(slices.Values([]workitem.CaseID{b, c, {77}, a, caseID})) {
		sorted = append(sorted, c.ID)
	}
	require.Equal(t, order, sorted)

	root := *tree.Case(caseID)
	part := state.NewTree(&root) // its children are not loaded
	order = nil
	part.Each(func(c *state.Case) { order = append(order, c.ID) })
	require.Equal(t, []workitem.CaseID{caseID}, order)
	require.Equal(t, 1, part.Len())
	state.NewTree().Each(func(*state.Case) { require.Fail(t, "it is empty") })
}

// The opening of a root case is undone too: the tree is empty again, and a later command finds it so.
func TestTheOpeningOfARootIsUndone(t *testing.T) {
	tree := one(t)
	tree.Rollback()
	require.Nil(t, tree.Case(caseID))
	require.Zero(t, tree.Len())
	tree.Each(func(*state.Case) { require.Fail(t, "it is empty") })
}
