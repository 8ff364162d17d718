package why_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The explanation is a function of a tree and of what the process knows, so most of it is tested without an engine.
var (
	now  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	root = workitem.CaseID{1}
	work = net.MustCompile(&net.Definition{Name: "w", // two tasks in a row, the second of which joins both outputs of the first
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "e", Role: net.End}, {Name: "p"}, {Name: "q"}},
		Tasks:      []net.Task{{Name: "a", Split: net.Or}, {Name: "j"}},
		Flows:      []net.Flow{{From: "i", To: "a"}, {From: "a", To: "p"}, {From: "a", To: "q"}, {From: "p", To: "j"}, {From: "q", To: "j"}, {From: "j", To: "e"}},
	})
)

// treeOf is a case that began an hour ago and whose task a is enabled, with what the events add.
func treeOf(t *testing.T, events ...state.Change) *state.Tree {
	t.Helper()
	tree := state.NewTree()
	tree.Root = root
	tree.Begin()
	opened := &state.Case{ID: root, Root: root, Number: 1, Workflow: "w", Fingerprint: "fp", Net: work, State: state.CaseStarted,
		Created: now.Add(-time.Hour)}
	first := []state.Change{&state.CaseOpened{Case: opened}, &state.TaskMoved{Case: root, Task: 0, To: state.TaskEnabled, Generation: 1}}
	for _, e := range append(first, events...) {
		require.NoError(t, tree.Apply(e))
	}
	tree.End(1)
	return tree
}

// explain explains the case of a tree.
func explain(in why.Input) *why.Answer {
	in.Case, in.Now = root, now
	return why.Explain(in)
}

// itemOf is an item of task a.
func itemOf(id byte) *workitem.Item {
	return &workitem.Item{ID: workitem.ID{id}, Case: root, Task: "a", Generation: 1, Number: int(id), State: workitem.Initialized,
		Attempt: 1, Created: now.Add(-time.Hour)}
}

// jobOf is a pending job of an item.
func jobOf(id byte, item byte) *state.Job {
	return &state.Job{ID: workitem.JobID{id}, Case: root, Root: root, Task: "a", Generation: 1, Item: workitem.ID{item},
		Kind: state.JobRun, State: state.JobPending, Due: now.Add(-time.Minute), Created: now.Add(-time.Hour)}
}

// running are the events of an item that a worker has since half an hour, and of its job.
func running(lease time.Time) []state.Change {
	return []state.Change{&state.ItemOpened{Item: itemOf(1)}, &state.JobOpened{Job: jobOf(1, 1)},
		&state.TaskMoved{Case: root, Task: 0, To: state.TaskStarted, Generation: 1, Consumed: []net.ConditionID{0}},
		&state.ItemMoved{Case: root, Item: workitem.ID{1}, Action: workitem.Start, To: workitem.Started, At: now.Add(-30 * time.Minute)},
		&state.JobMoved{Case: root, Job: workitem.JobID{1}, To: state.JobRunning, Attempt: 1, Fence: 1, Owner: "host/1", Lease: lease,
			At: now.Add(-30 * time.Minute)}}
}

func TestALeaseThatRanOut(t *testing.T) {
	w := only(t, explain(why.Input{Tree: treeOf(t, running(now.Add(time.Minute))...)}))
	require.Equal(t, why.Running, w.Kind)
	require.Equal(t, "host/1", w.By)
	require.Equal(t, now.Add(-30*time.Minute), w.Since)
	require.Empty(t, w.Blocked)
	w = only(t, explain(why.Input{Tree: treeOf(t, running(now.Add(-time.Minute))...)}))
	require.Equal(t, why.Lapsed, w.Blocked)
	require.True(t, w.Overdue)
	require.Contains(t, w.Text, "its lease ran out 1m ago")
}

func TestBlocksOfDueJob(t *testing.T) {
	tree := treeOf(t, &state.ItemOpened{Item: itemOf(1)}, &state.JobOpened{Job: jobOf(1, 1)})
	at := func(n int) func(string) int { return func(string) int { return n } }
	for _, c := range []struct {
		here why.Here
		want why.Block
	}{
		{why.Here{}, ""},
		{why.Here{Workers: at(2), Running: at(1)}, ""},
		{why.Here{Workers: at(2), Running: at(2)}, why.Busy},
		{why.Here{Workers: at(0)}, why.Stopped},
		{why.Here{Workers: at(-1)}, why.NoWorkers},
		{why.Here{Failing: func(workitem.JobID) time.Time { return time.Time{} }}, ""},
		{why.Here{Failing: func(workitem.JobID) time.Time { return now.Add(-time.Minute) }}, why.Failing},
		{why.Here{Definition: func(string) *workflow.Definition { return nil }}, why.NotLoaded},
	} {
		w := only(t, explain(why.Input{Here: c.here, Tree: tree}))
		require.Equal(t, why.Worker, w.Kind)
		require.Equal(t, c.want, w.Blocked)
		require.Equal(t, now.Add(-time.Minute), w.Since, "it waits for a worker since it is due")
	}
}

// Jobs of a queue go by priority, then by the time at which they are due, then by their creation.
func TestWhichJobsGoFirst(t *testing.T) {
	j := jobOf(5, 1)
	other := func(id byte, priority int, due time.Duration) *state.Job {
		o := jobOf(id, 9)
		o.Priority, o.Due = priority, j.Due.Add(due)
		return o
	}
	tree := treeOf(t, &state.ItemOpened{Item: itemOf(1)}, &state.JobOpened{Job: j})
	for _, c := range []struct {
		other *state.Job
		first bool
	}{
		{other(9, 1, time.Second), true}, {other(1, -1, -time.Second), false}, {other(9, 0, -time.Second), true},
		{other(1, 0, time.Second), false}, {other(1, 0, 0), true}, {other(9, 0, 0), false},
	} {
		w := only(t, explain(why.Input{Tree: tree, Due: map[string][]*state.Job{"": {j, c.other}}}))
		require.Equal(t, c.first, w.Ahead == 1, "%+v", c.other)
		require.Equal(t, c.first, w.Blocked == why.Behind)
	}
}

func TestTheWaitsOfSteps(t *testing.T) {
	failure := &workitem.Failure{Code: "busy"}
	step := func(id byte, kind workitem.StepKind, topic bool) state.Change {
		return &state.StepOpened{Step: &workitem.Step{ID: workitem.StepID{id}, Job: workitem.JobID{1}, Item: workitem.ID{1}, Case: root,
			Name: string(kind), Kind: kind, Target: "paid", Topic: topic, State: workitem.StepWaiting, Attempt: 2, Failure: failure,
			Created: now, Due: now.Add(time.Hour)}}
	}
	events := append(running(now), step(1, workitem.StepEvent, false), step(2, workitem.StepEvent, true), step(3, workitem.StepDo, false),
		step(4, workitem.StepSleep, false), step(5, workitem.StepToken, false),
		&state.JobMoved{Case: root, Job: workitem.JobID{1}, To: state.JobWaiting, Fence: 1, At: now})
	waits := explain(why.Input{Tree: treeOf(t, events...)}).Waits
	require.Len(t, waits, 4)
	require.Equal(t, []why.Kind{why.Event, why.Topic, why.Retry, why.Delay}, []why.Kind{waits[0].Kind, waits[1].Kind, waits[2].Kind, waits[3].Kind})
	require.Zero(t, waits[0].Attempt)
	require.Nil(t, waits[0].Failure)
	require.Equal(t, 3, waits[2].Attempt)
	require.Equal(t, failure, waits[2].Failure)
	for _, w := range explain(why.Input{Tree: treeOf(t, events...),
		Here: why.Here{Definition: func(string) *workflow.Definition { return nil }}}).Waits {
		require.Equal(t, why.NotLoaded, w.Blocked)
	}
}

func TestTriesOfTimersAndFunctions(t *testing.T) {
	timer := jobOf(1, 1)
	timer.Kind, timer.Name, timer.Failure, timer.Attempt, timer.Due = state.JobTimer, "late", &workitem.Failure{Code: "busy"}, 1, now.Add(time.Hour)
	w := explain(why.Input{Tree: treeOf(t, &state.ItemOpened{Item: itemOf(1)}, &state.JobOpened{Job: timer})}).Waits[1]
	require.Equal(t, why.Timer, w.Kind)
	require.Equal(t, 2, w.Attempt, "of the timer, and not of its item")
	require.Contains(t, w.Text, "attempt 2: the last one failed with busy")

	call := jobOf(2, 0)
	call.Kind, call.Name, call.Task, call.Input = state.JobCall, "notify", "", json.RawMessage(`1`)
	d := &workflow.Definition{Tasks: make([]workflow.Task, 2), Calls: map[string]*workflow.Call{"notify": {Retry: retry.Constant(4, 0)}}}
	w = explain(why.Input{Tree: treeOf(t, &state.JobOpened{Job: call}),
		Here: why.Here{Definition: func(string) *workflow.Definition { return d }}}).Waits[0]
	require.Equal(t, why.Worker, w.Kind)
	require.Equal(t, 4, w.Attempts)
}

// A job that was given up is an incident for as long as the tree has it, and names what was given up.
func TestIncidentNamesGivenUpJob(t *testing.T) {
	open := &state.ItemOpened{Item: itemOf(1)}
	ended := &state.CaseEnded{Case: root, State: state.CaseCanceled, At: now}
	for name, c := range map[string]struct {
		kind, incident, task string
		item                 int
		more                 state.Change
		want                 string
		person               bool
	}{
		"the run of an item":     {state.JobRun, state.IncidentCrash, "a", 1, nil, "was given up: crash; a person decides: retry it, skip it or give it up", false},
		"a function of an item":  {state.JobCall, state.IncidentCrash, "a", 1, nil, "function x of a.1.1 was given up: crash; a person decides: once", true},
		"a timer of an item":     {state.JobTimer, state.IncidentTimer, "a", 1, nil, "timer x of a.1.1 was given up", true},
		"a timer of a task":      {state.JobTimer, state.IncidentTimer, "a", 0, nil, "timer x of a was given up", true},
		"a function of the case": {state.JobCall, state.IncidentFunction, "", 0, nil, "function x of the case was given up", true},
		"a handler":              {state.JobHandler, state.IncidentHandler, "", 0, ended, "completion handler x was given up", false},
	} {
		about, err := state.Subject{Job: &state.GivenUp{ID: workitem.JobID{7}, Kind: c.kind, Name: "x", Attempt: 3}}.Encode()
		require.NoError(t, err)
		j := jobOf(8, 1)
		j.Kind, j.State, j.Name, j.Input, j.Failure, j.Task = state.JobIncident, state.JobWaiting, c.incident, about, &workitem.Failure{Code: "crash"}, c.task
		if c.item == 0 {
			j.Item = workitem.ID{}
		}
		changes := []state.Change{open, &state.JobOpened{Job: j}}
		if c.more != nil {
			j.Detached = true
			changes = []state.Change{c.more, &state.JobOpened{Job: j}}
		}
		var found []why.Wait
		person := false
		for _, w := range explain(why.Input{Tree: treeOf(t, changes...)}).Waits {
			person = person || w.Kind == why.Person
			if w.Kind == why.Incident {
				found = append(found, w)
			}
		}
		require.Len(t, found, 1, name)
		require.Contains(t, found[0].Text, c.want, name)
		require.NotContains(t, found[0].Text, "tasq ", name)
		first := "tasq incident retry " + workitem.JobID{8}.String()
		if c.kind == state.JobRun {
			first = "tasq item retry " + itemOf(1).ID.String()
		}
		require.Equal(t, first, found[0].Commands[0], name)
		require.Equal(t, workitem.JobID{8}, found[0].Incident, name)
		require.Equal(t, workitem.JobID{7}, found[0].Job, name)
		require.Equal(t, c.person, person, name)
	}
}

// A task that is under way waits for no tokens, and each task says what it is.
func TestTaskTexts(t *testing.T) {
	produced := []state.Change{
		&state.TaskMoved{Case: root, Task: 0, To: state.TaskStarted, Generation: 1, Consumed: []net.ConditionID{0}},
		&state.TaskMoved{Case: root, Task: 0, To: state.TaskCompleted, Generation: 1},
		&state.Produced{Case: root, Task: 0, Into: []net.ConditionID{2}},
	}
	answer := explain(why.Input{Tree: treeOf(t, produced...)})
	require.Equal(t, []why.Kind{why.Join, why.Stuck}, []why.Kind{answer.Waits[0].Kind, answer.Waits[1].Kind})

	busy := explain(why.Input{Tree: treeOf(t, append(produced, &state.TaskMoved{Case: root, Task: 1, To: state.TaskEnabled, Generation: 1})...)})
	for _, w := range busy.Waits {
		require.NotEqual(t, why.Join, w.Kind)
	}
	task, ok := busy.Task("j")
	require.True(t, ok)
	require.Equal(t, "it is under way", task.Text)
	over := explain(why.Input{Tree: treeOf(t, &state.CaseEnded{Case: root, State: state.CaseCanceled, At: now})})
	task, ok = over.Task("j")
	require.True(t, ok)
	require.Equal(t, "the case is canceled", task.Text)
}
