package kernel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// counter makes ids that count.
type counter byte

func (n *counter) next() (id [16]byte) {
	*n++
	id[15] = byte(*n)
	return id
}
func (n *counter) NewID(time.Time) workitem.ID               { return n.next() }
func (n *counter) NewCaseID(time.Time) workitem.CaseID       { return n.next() }
func (n *counter) NewJobID(time.Time) workitem.JobID         { return n.next() }
func (n *counter) NewStepID(time.Time) workitem.StepID       { return n.next() }
func (n *counter) NewMessageID(time.Time) workitem.MessageID { return n.next() }

// openRecord returns the record of a command on a tree with one case of one task.
func openRecord(t *testing.T) (*record, *state.Case) {
	t.Helper()
	tree := state.NewTree()
	c := plainCase(t)
	c.ID, c.State = workitem.CaseID{1}, state.CaseStarted
	c.Root, tree.Root = c.ID, c.ID
	r := &record{changes: make([]state.Change, 0, 4)}
	tree.Begin()
	r.prepare(tree, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), "ann", new(counter))
	require.NoError(t, r.emit(&state.CaseOpened{Case: c}))
	return r, tree.Case(c.ID)
}

// A change is in the tree and in the record, or in neither.
func TestRecordAppliesChanges(t *testing.T) {
	r, c := openRecord(t)
	require.Equal(t, state.CaseStarted, c.State)
	require.NoError(t, r.note(c.ID, -1, state.NoteReason, "because"))
	require.Len(t, r.changes, 2)
	require.ErrorIs(t, r.emit(&state.CaseBegun{Case: workitem.CaseID{9}}), store.ErrCorrupt)
	require.Len(t, r.changes, 2)
}

// The record of the next command begins empty, and keeps nothing of the one before alive.
func TestRecordIsReused(t *testing.T) {
	r, _ := openRecord(t)
	before := r.changes
	r.prepare(state.NewTree(), r.now, "bob", r.ids)
	require.Empty(t, r.changes)
	require.Nil(t, before[0])
	require.Equal(t, "bob", r.by)
}

// A step that ended in this command is found in its record, as the tree has only steps that wait.
func TestRecordFindsTheEndOfAStep(t *testing.T) {
	r, c := openRecord(t)
	s := &workitem.Step{ID: workitem.StepID{1}, Case: c.ID, Name: "nap", Kind: workitem.StepSleep, State: workitem.StepWaiting}
	require.NoError(t, r.emit(&state.StepOpened{Step: s}))
	require.Nil(t, r.endOf(s))
	require.NoError(t, r.emit(&state.StepMoved{Case: c.ID, Step: s.ID, To: workitem.StepWaiting, Attempt: 2, At: r.now}))
	require.Nil(t, r.endOf(s), "it waits for its next attempt")
	require.NoError(t, r.emit(&state.StepMoved{Case: c.ID, Step: s.ID, To: workitem.StepDone, Result: []byte("7"), At: r.now}))
	ended := r.endOf(s)
	require.Equal(t, workitem.StepDone, ended.State)
	require.Equal(t, "7", string(ended.Result))
	require.Equal(t, r.now, ended.Ended)
	require.Equal(t, workitem.StepWaiting, s.State, "the given one is not changed")
}
