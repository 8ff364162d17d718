package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Incident opens an incident of a case that no engine has to do anything about.
func (b *Batch) Incident(root, id workitem.CaseID, task string, f *workitem.Failure) *state.Job {
	b.T.Helper()
	now := b.Now()
	j := &state.Job{ID: b.ids.NewJobID(now), Case: id, Root: root, Task: task, Kind: state.JobIncident, Name: state.IncidentAttempts,
		State: state.JobWaiting, Failure: f, Created: now}
	b.do(root, "give up", &state.JobOpened{Job: j})
	return j
}

// Resolve ends an incident.
func (b *Batch) Resolve(j *state.Job) {
	b.T.Helper()
	b.do(j.Root, "retry", &state.JobMoved{Case: j.Case, Job: j.ID, To: state.JobDone, At: b.Now()})
}

func incidents(w *World) {
	check := func() {
		w.T.Helper()
		w.View(func(ctx context.Context, r store.Reader) { w.Want.checkIncidents(ctx, w.T, r) })
	}
	check() // none at all
	w.history()
	check()
	var first *state.Job
	w.Update(func(b *Batch) {
		root := b.Start(`1`)
		first = b.Incident(root, root, "", nil)
		b.Incident(root, root, "draft", &workitem.Failure{Code: "a \"code\"\n", Message: "a\x00message of \U0001F600"})
		whole, parts := b.StartIssue()
		b.Incident(whole, parts[1], "draft", &workitem.Failure{Message: "in a child case"})
	})
	check()
	w.Crash()
	check()
	w.Update(func(b *Batch) {
		b.Resolve(first)
		root := b.Start(`2`)
		b.Incident(root, root, "", &workitem.Failure{Code: "late"})
	})
	require.Len(w.T, w.Want.incidents(), 3)
	check()
}

// incidentFilter has incidents of a case with a key and labels, of a child case whose root case has them, and of a case without.
func incidentFilter(w *World) {
	labels := map[string]string{"buyer": "eve", "land": "ü"}
	var with []workitem.JobID
	w.Update(func(b *Batch) {
		whole, parts := b.startIssue(state.Case{Key: "I-7", Labels: labels})
		with = append(with, b.Incident(whole, whole, "", nil).ID, b.Incident(whole, parts[1], "draft", &workitem.Failure{Code: "in a child case"}).ID)
		other, parts := b.startIssue(state.Case{Key: "I-70", Labels: map[string]string{"buyer": "eve"}})
		b.Incident(other, parts[0], "draft", nil)
		root := b.Start(`1`)
		b.Incident(root, root, "", nil)
	})
	list := func(f store.IncidentFilter) (ids []workitem.JobID) {
		w.View(func(ctx context.Context, r store.Reader) {
			for i, err := range store.Incidents(ctx, store.ViewerOf(r), f) {
				require.NoError(w.T, err)
				ids = append(ids, i.ID)
			}
		})
		return ids
	}
	child := "in a child case"
	require.Len(w.T, list(store.IncidentFilter{}), 4)
	require.ElementsMatch(w.T, with, list(store.IncidentFilter{Key: "I-7"}), "also of child cases")
	require.ElementsMatch(w.T, with, list(store.IncidentFilter{Labels: labels}), "all labels")
	require.Len(w.T, list(store.IncidentFilter{Labels: map[string]string{"buyer": "eve"}}), 3)
	require.Equal(w.T, with[1:], list(store.IncidentFilter{Key: "I-7", Labels: labels, Code: &child}))
	require.Len(w.T, list(store.IncidentFilter{Key: "I-7", Page: store.Page{Limit: 1}}), 1)
	require.Empty(w.T, list(store.IncidentFilter{Key: "I-70", Labels: labels}))
	require.Empty(w.T, list(store.IncidentFilter{Key: "I-"}))
}

func (m *Model) checkIncidents(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	want := m.incidents()
	ids, whole, err := r.OpenIncidents(ctx, len(want))
	require.NoError(t, err)
	require.True(t, whole)
	require.Len(t, ids, len(want))
	for i, h := range want {
		require.Equal(t, h.ID, ids[i])
	}
	if len(want) > 1 {
		some, whole, err := r.OpenIncidents(ctx, len(want)-1)
		require.NoError(t, err)
		require.False(t, whole)
		require.Equal(t, ids[:len(want)-1], some)
	}
	got, err := r.IncidentHeads(ctx, append(ids, workitem.JobID{1}))
	require.NoError(t, err)
	for i := range got {
		got[i].Since = got[i].Since.UTC()
	}
	require.ElementsMatch(t, want, got)
	none, err := r.IncidentHeads(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// incidents is what a store should list, in the order in which they arose.
func (m *Model) incidents() []store.IncidentHead {
	list := []store.IncidentHead{}
	for _, j := range byID(m.Jobs) {
		if j.Kind != state.JobIncident || !j.State.Live() {
			continue
		}
		c := m.Cases[j.Case]
		h := store.IncidentHead{ID: j.ID, Workflow: c.Workflow, Fingerprint: c.Fingerprint, Task: j.Task, Kind: j.Name, Since: j.Created.UTC().Truncate(time.Microsecond)}
		if j.Failure != nil {
			h.Code, h.Message = j.Failure.Code, j.Failure.Message
		}
		list = append(list, h)
	}
	slices.SortStableFunc(list, func(a, b store.IncidentHead) int { return a.Since.Compare(b.Since) })
	return list
}
