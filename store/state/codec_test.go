package state_test

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var review = net.MustCompile(&net.Definition{
	Name:       "review",
	Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}, {Name: "hä \"?\""}},
	Tasks:      []net.Task{{Name: "draft", Split: net.Or}, {Name: "prüfen", Join: net.Or}},
	Flows: []net.Flow{{From: "start", To: "draft"}, {From: "draft", To: "prüfen"}, {From: "draft", To: "hä \"?\""},
		{From: "hä \"?\"", To: "prüfen"}, {From: "prüfen", To: "end"}},
})

var nets = state.Nets{
	Definition: func(fingerprint string) *net.Net {
		if fingerprint == "f" {
			return review
		}
		return nil
	},
	Case: func(id workitem.CaseID) *net.Net {
		if id == caseID {
			return review
		}
		return nil
	},
}

var (
	caseID = workitem.CaseID{1, 2, 3}
	tree   = state.NewTree(&state.Case{ID: caseID, Root: caseID, Net: review})
)

func TestEventsAreReadable(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 1000, time.UTC)
	got := string(state.AppendChanges(nil, []state.Change{
		&state.TaskMoved{Case: caseID, Task: 0, To: state.TaskStarted, Generation: 1, Consumed: []net.ConditionID{0}},
		&state.ItemMoved{Case: caseID, Item: workitem.ID{9}, Action: workitem.Fail, To: workitem.Failed, At: at,
			By:      "ann",
			Failure: &workitem.Failure{Code: "timeout", Message: "it took \"too\" long", Retryable: true, Filtered: true}},
		&state.Removed{Case: caseID, Task: 1, From: 2, Tokens: 2},
	}, tree))
	require.Equal(t, `[{"e":"task","task":"draft","to":"started","gen":1,"from":["start"]},`+
		`{"e":"item","item":"09000000-0000-0000-0000-000000000000","action":"fail",`+
		`"to":"failed","failure":{"retryable":true,"code":"timeout","message":"it took \"too\" long","filtered":true},`+
		`"by":"ann","at":1795262400000001},`+
		`{"e":"removed","task":"prüfen","condition":"hä \"?\"","n":2}]`, got)
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(anEvent), 1, 6).Draw(t, "events")
		data := state.AppendChanges(nil, events, tree)
		require.True(t, json.Valid(data), "%s", data)
		got, err := state.DecodeChanges(data, caseID, nets)
		require.NoError(t, err)
		require.Equal(t, events, got)
	})
}

// A child case that a command opens gives the names of the command's later events their meaning.
func TestACommandNamesTheCasesThatItOpens(t *testing.T) {
	child := workitem.CaseID{7}
	with := state.NewTree(tree.Case(caseID), &state.Case{ID: child, Net: review})
	events := []state.Change{
		&state.CaseOpened{Case: &state.Case{ID: child, Root: caseID, Parent: caseID, ParentTask: "x", Fingerprint: "f",
			Net:   review,
			State: state.CaseStarted}},
		&state.TaskMoved{Case: child, Task: 1, To: state.TaskEnabled, Generation: 1},
	}
	got, err := state.DecodeChanges(state.AppendChanges(nil, events, with), caseID, nets)
	require.NoError(t, err)
	require.Equal(t, events, got)
}

var (
	aText = rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z]{1,8}`),
		rapid.StringN(0, 8, -1).Filter(utf8.ValidString))
	aPayload = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`null`),
		json.RawMessage(`{"a": [1, "\u0000 ü"]}`),
		json.RawMessage(`""`), json.RawMessage(`12345678901234567890`)})
	aNumber = rapid.IntRange(0, 1<<40)
)

func aTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return state.FromMicros(rapid.Int64Range(-5e15, 5e15).Draw(t, "time"))
}

func anID[K ~[16]byte](t *rapid.T) K {
	var k K
	copy(k[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	return k
}

func aFailure(t *rapid.T) *workitem.Failure {
	if rapid.Bool().Draw(t, "none") {
		return nil
	}
	return &workitem.Failure{Code: aText.Draw(t, "code"), Message: aText.Draw(t, "message"), Details: aPayload.Draw(t,
		"details"), Filtered: rapid.Bool().Draw(t, "filtered"),
		Retryable: rapid.Bool().Draw(t, "retryable"), After: time.Duration(aNumber.Draw(t, "after"))}
}

func someConditions(t *rapid.T) []net.ConditionID {
	ids := rapid.SliceOfN(rapid.Int32Range(0, int32(review.NumConditions()-1)), 0, 3).Draw(t, "conditions")
	var list []net.ConditionID
	for _, id := range ids {
		list = append(list, net.ConditionID(id))
	}
	return list
}

func anEvent(t *rapid.T) state.Change {
	task := net.TaskID(rapid.IntRange(0, review.NumTasks()-1).Draw(t, "task"))
	switch rapid.IntRange(0, 20).Draw(t, "kind") {
	case 0:
		return &state.CaseOpened{Case: &state.Case{ID: caseID, Root: anID[workitem.CaseID](t),
			Parent:     anID[workitem.CaseID](t),
			ParentTask: aText.Draw(t, "parent task"), Generation: aNumber.Draw(t, "gen"), Number: aNumber.Draw(t, "n"),
			Workflow: aText.Draw(t, "workflow"), Version: aText.Draw(t, "version"), Fingerprint: "f", Net: review,
			State: state.CaseStarted, Input: aPayload.Draw(t, "input"), Created: aTime(t),
			Options: aPayload.Draw(t, "options"), Priority: aNumber.Draw(t, "priority"),
			Predecessor: anID[workitem.CaseID](t)}}
	case 1:
		return &state.CaseBegun{Case: caseID}
	case 11:
		return &state.CaseRemoved{Case: caseID}
	case 12:
		return &state.CaseResumed{Case: caseID, At: aTime(t)}
	case 20:
		return &state.TokensMoved{Case: caseID, From: someConditions(t), Into: someConditions(t)}
	case 18:
		return &state.CaseSuspended{Case: caseID, Suspension: state.Suspension{At: aTime(t), By: aText.Draw(t, "by"), Reason: aText.Draw(t, "reason")}}
	case 19:
		return &state.CaseContinued{Case: caseID, At: aTime(t)}
	case 13:
		return &state.TaskResumed{Case: caseID, Task: task, Generation: aNumber.Draw(t, "gen")}
	case 2:
		return &state.CaseEnded{Case: caseID, State: state.CaseState(rapid.IntRange(1, 4).Draw(t, "to")),
			Output: aPayload.Draw(t, "output"), Failure: aFailure(t), Leftover: someConditions(t), At: aTime(t),
			KeepUntil: aTime(t), FreesKey: rapid.Bool().Draw(t, "frees")}
	case 3:
		return &state.TaskMoved{Case: caseID, Task: task, To: state.TaskState(rapid.IntRange(0, 5).Draw(t, "to")),
			Generation: aNumber.Draw(t, "gen"), Consumed: someConditions(t), Lost: rapid.Bool().Draw(t, "lost")}
	case 4:
		return &state.Produced{Case: caseID, Task: task, Into: someConditions(t)}
	case 5:
		return &state.Removed{Case: caseID, Task: task, From: 2, Tokens: rapid.Int32Range(0, 1<<30).Draw(t, "tokens")}
	case 6:
		return &state.ItemOpened{Item: &workitem.Item{ID: anID[workitem.ID](t), Case: caseID, Task: aText.Draw(t,
			"name"),
			Generation: aNumber.Draw(t, "gen"), Number: aNumber.Draw(t, "n"), State: aState(t), Attempt: aNumber.Draw(t,
				"attempt"),
			Predecessor: anID[workitem.ID](t), Successor: anID[workitem.ID](t), Input: aPayload.Draw(t, "input"),
			Output: aPayload.Draw(t, "output"), Failure: aFailure(t), Queue: aText.Draw(t, "queue"),
			Priority: rapid.IntRange(-9, 9).Draw(t, "priority"), By: aText.Draw(t, "by"), Created: aTime(t),
			Due:     aTime(t),
			Started: aTime(t), Ended: aTime(t), Retry: aPayload.Draw(t, "retry")}}
	case 7:
		if rapid.Bool().Draw(t, "retry") {
			return &state.RetryChanged{Case: caseID, Item: anID[workitem.ID](t), Retry: aPayload.Draw(t, "policy")}
		}
		return &state.ItemMoved{Case: caseID, Item: anID[workitem.ID](t), Action: workitem.Action(rapid.IntRange(1,
			6).Draw(t, "action")),
			To: aState(t), Output: aPayload.Draw(t, "output"), Failure: aFailure(t), By: aText.Draw(t, "by"),
			At: aTime(t)}
	case 8:
		return &state.JobOpened{Job: aJob(t)}
	case 9:
		j := aJob(t)
		return &state.JobMoved{Case: caseID, Job: j.ID, To: j.State, Due: j.Due, Attempt: j.Attempt, Crashes: j.Crashes,
			Fence: j.Fence, Owner: j.Owner, Lease: j.Lease, Failure: j.Failure, At: aTime(t)}
	}
	return aWaitEvent(t)
}

func aWaitEvent(t *rapid.T) state.Change {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return &state.StepOpened{Step: &workitem.Step{ID: anID[workitem.StepID](t), Job: anID[workitem.JobID](t),
			Item: anID[workitem.ID](t), Case: caseID, Name: aText.Draw(t, "name"),
			Kind: workitem.StepKind(aText.Draw(t, "kind")), Target: aText.Draw(t, "target"), Topic: rapid.Bool().Draw(t, "topic"), Input: aPayload.Draw(t, "input"),
			State: aStepState(t), Attempt: aNumber.Draw(t, "attempt"), Run: aNumber.Draw(t, "run"), Due: aTime(t),
			Child: anID[workitem.CaseID](t), Result: aPayload.Draw(t, "result"), Failure: aFailure(t),
			Copied: rapid.Bool().Draw(t, "copied"), Created: aTime(t), Ended: aTime(t)}}
	case 1:
		return &state.StepMoved{Case: caseID, Job: anID[workitem.JobID](t), Step: anID[workitem.StepID](t), To: aStepState(t),
			Attempt: aNumber.Draw(t, "attempt"), Due: aTime(t), Result: aPayload.Draw(t, "result"), Failure: aFailure(t),
			At: aTime(t)}
	case 2:
		return &state.MessageSent{Message: &state.Message{ID: anID[workitem.MessageID](t), Case: caseID,
			Name: aText.Draw(t, "name"), Topic: rapid.Bool().Draw(t, "topic"), Value: aPayload.Draw(t, "value"),
			By: aText.Draw(t, "by"), Sent: aTime(t)}}
	case 3:
		return &state.MessageTaken{Case: caseID, Message: anID[workitem.MessageID](t), Step: anID[workitem.StepID](t),
			At: aTime(t)}
	}
	return &state.Noted{Case: caseID, Task: net.TaskID(rapid.IntRange(-1, review.NumTasks()-1).Draw(t, "task")),
		Code: aText.Draw(t, "code"), Text: aText.Draw(t, "text")}
}

func aStepState(t *rapid.T) workitem.StepState {
	return workitem.StepState(rapid.IntRange(1, 4).Draw(t, "state"))
}

func aState(t *rapid.T) workitem.State { return workitem.State(rapid.IntRange(1, 5).Draw(t, "state")) }

func aJob(t *rapid.T) *state.Job {
	return &state.Job{ID: anID[workitem.JobID](t), Case: caseID, Root: anID[workitem.CaseID](t), Task: aText.Draw(t,
		"task"),
		Generation: aNumber.Draw(t, "gen"), Item: anID[workitem.ID](t), Kind: aText.Draw(t, "kind"), Name: aText.Draw(t,
			"name"),
		Queue: aText.Draw(t, "queue"), Priority: rapid.IntRange(-9, 9).Draw(t, "priority"), Input: aPayload.Draw(t,
			"input"),
		Detached: rapid.Bool().Draw(t, "detached"), State: state.JobState(rapid.IntRange(1, 6).Draw(t, "state")),
		Due:     aTime(t),
		Attempt: aNumber.Draw(t, "attempt"), Crashes: aNumber.Draw(t, "crashes"), Fence: int64(aNumber.Draw(t,
			"fence")),
		Owner: aText.Draw(t, "owner"), Lease: aTime(t), Failure: aFailure(t), Created: aTime(t), Ended: aTime(t)}
}

func TestMarkingsAndTasksComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marking := make(net.Marking, review.NumConditions())
		for i := range marking {
			marking[i] = rapid.Int32Range(0, 3).Draw(t, "tokens")
		}
		gotMarking, err := state.DecodeMarking(state.AppendMarking(nil, review, marking), review)
		require.NoError(t, err)
		require.Equal(t, marking, gotMarking)

		tasks := make([]state.Task, review.NumTasks())
		for i := range tasks {
			tasks[i] = state.Task{State: state.TaskState(rapid.IntRange(0, 5).Draw(t, "state")),
				Generation: aNumber.Draw(t, "gen"), Created: aNumber.Draw(t, "created"), Lost: rapid.Bool().Draw(t, "lost"),
				Output: aPayload.Draw(t, "output")}
		}
		gotTasks, err := state.DecodeTasks(state.AppendTasks(nil, review, tasks), review)
		require.NoError(t, err)
		require.Equal(t, tasks, gotTasks)
	})
}

func TestANetHasOneText(t *testing.T) {
	def := &net.Definition{
		Name: "all",
		Conditions: []net.Condition{{Name: "i", Role: net.Start, Pos: net.Pos{File: "x.go", Line: 3}}, {Name: "c"},
			{Name: "o", Role: net.End}},
		Tasks: []net.Task{{Name: "a", Kind: net.Routing, Split: net.Xor}, {Name: "b", Kind: net.Composite, Join: net.Or,
			Cancels: []string{"a", "c"}, Of: []string{"w1", "w2"}}, {Name: "d"}},
		Flows: []net.Flow{{From: "i", To: "a"}, {From: "a", To: "b"}},
	}
	data, err := state.EncodeNet(def)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"all","conditions":[{"name":"i","role":"start"},{"name":"c"},{"name":"o","role":"end"}],
		"tasks":[{"name":"a","kind":"routing","split":"xor"},{"name":"b","kind":"composite","join":"or",
		"cancels":["a","c"],
		"of":["w1","w2"]},{"name":"d"}],"flows":[["i","a"],["a","b"]]}`, string(data))
	got, err := state.DecodeNet(data)
	require.NoError(t, err)
	again, err := state.EncodeNet(got)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))
	def.Conditions[0].Pos = net.Pos{} // where it was written is no part of it
	require.Equal(t, def, got)

	_, err = state.EncodeNet(&net.Definition{Tasks: []net.Task{{Name: "t", Join: 7}}})
	require.ErrorContains(t, err, "task t")
}

func TestDamageIsCalledByItsName(t *testing.T) {
	for _, data := range []string{``, `{}`, `[1]`, `[{"e":"task"}]`, `[{"e":"what"}]`,
		`[{"e":"case-opened","fingerprint":"?"}]`,
		`[{"e":"task","task":"draft","to":"sleeping"}]`,
		`[{"e":"task","task":"nobody","to":"started"}]`,
		`[{"e":"removed","task":"draft"}]`,
		`[{"e":"removed","task":"draft","condition":"start","n":4294967297}]`,
		`[{"e":"removed","task":"draft","condition":"start","n":-1}]`,
		`[{"e":"item","item":"x"}]`, `[{"e":"item","at":"noon"}]`, `[{"e":"job","to":"none"}]`} {
		_, err := state.DecodeChanges([]byte(data), caseID, nets)
		require.ErrorIs(t, err, store.ErrCorrupt, data)
	}
	_, err := state.DecodeNet([]byte(`{"tasks":[{"name":"a","kind":"odd"}]}`))
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = state.DecodeMarking([]byte(`{"start":-1}`), review)
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = state.DecodeTasks([]byte(`{"draft":{"state":"x"}}`), review)
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = state.DecodeFailure([]byte(`7`))
	require.ErrorIs(t, err, store.ErrCorrupt)
}

// A stored row is never trusted: garbage gives an error, and what can be read can be written and read again.
func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"e":"task","task":"draft","to":"started","from":["start"]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := state.DecodeNet(data)
		isCorrupt(t, err)
		_, err = state.DecodeMarking(data, review)
		isCorrupt(t, err)
		_, err = state.DecodeTasks(data, review)
		isCorrupt(t, err)
		_, err = state.DecodeFailure(data)
		isCorrupt(t, err)
		events, err := state.DecodeChanges(data, caseID, nets)
		isCorrupt(t, err)
		if err != nil || !ours(events) {
			return
		}
		again := state.AppendChanges(nil, events, tree)
		_, err = state.DecodeChanges(again, caseID, nets)
		require.NoError(t, err, "%s\n%s", data, again)
	})
}

// ours reports whether all names can be found in the one case of the test's tree.
func ours(events []state.Change) bool {
	for _, e := range events {
		if o, ok := e.(*state.CaseOpened); ok && o.Case.ID != caseID {
			return false
		}
	}
	return true
}

func isCorrupt(t *testing.T, err error) {
	if err != nil {
		require.ErrorIs(t, err, store.ErrCorrupt)
	}
}

// A command as the engine appends it for every item: a job's result, the item and its task completed, the case ended.
func BenchmarkAppendEvents(b *testing.B) {
	at := state.FromMicros(1795262400000001)
	events := []state.Change{
		&state.ItemMoved{Case: caseID, Item: workitem.ID{9}, Action: workitem.Complete, To: workitem.Completed,
			By: "worker/1", At: at,
			Output: json.RawMessage(`{"text":"0123456789012345678901234567890123456789"}`)},
		&state.TaskMoved{Case: caseID, Task: 0, To: state.TaskCompleted, Generation: 1},
		&state.Produced{Case: caseID, Task: 0, Into: []net.ConditionID{1}},
		&state.CaseEnded{Case: caseID, State: state.CaseCompleted, At: at},
	}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = state.AppendChanges(buf[:0], events, tree)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecodeEvents(b *testing.B) {
	data := state.AppendChanges(nil, []state.Change{
		&state.TaskMoved{Case: caseID, Task: 0, To: state.TaskCompleted, Generation: 1},
		&state.Produced{Case: caseID, Task: 0, Into: []net.ConditionID{1}},
	}, tree)
	for b.Loop() {
		if _, err := state.DecodeChanges(data, caseID, nets); err != nil {
			b.Fatal(err)
		}
	}
}
