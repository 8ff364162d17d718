package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

type parcel struct{ Number, Customer string }

// parcels is a workflow whose cases are found by their number, which is unique, and by their customer.
func parcels(t testing.TB) (*builder.Workflow[parcel], *builder.TaskRef[struct{}, struct{}]) {
	t.Helper()
	b := builder.New[parcel]("parcel", builder.UniqueKey(),
		builder.BusinessKey(func(p parcel) string { return p.Number }),
		builder.Label("customer", func(p parcel) string { return p.Customer }))
	pack := builder.Task(b, "pack", builder.Work[struct{}, struct{}]{})
	b.Path(b.Start(), pack, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return w, pack
}

func found(t testing.TB, e store.Viewer, f store.CaseFilter) (ids []workitem.CaseID) {
	t.Helper()
	for c, err := range store.AllCases(t.Context(), e, f) {
		require.NoError(t, err)
		ids = append(ids, c.ID)
	}
	return ids
}

// packItem is the one live work item of a case.
func packItem(t testing.TB, e store.Viewer, id workitem.CaseID) workitem.ID {
	t.Helper()
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id, States: []workitem.State{workitem.Initialized, workitem.Started}}) {
		require.NoError(t, err)
		return it.ID
	}
	t.Fatalf("case %s has no live item", id)
	return workitem.ID{}
}

func TestCasesAreFoundByKeyAndLabels(t *testing.T) {
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "db")), engine.Config{}, w)
	ada, err := w.Start(ctx, e, parcel{"C-1", "ada"}, workflow.Label("region", "north"))
	require.NoError(t, err)
	bob, err := w.Start(ctx, e, parcel{"C-2", "bob"}, workflow.Label("region", "north"), workflow.BusinessKey("X-2"))
	require.NoError(t, err)
	plain, err := w.Start(ctx, e, parcel{Customer: "ada"}, workflow.Label("customer", ""))
	require.NoError(t, err)
	label := func(pairs ...string) store.CaseFilter {
		f := store.CaseFilter{Labels: make(map[string]string)}
		for i := 0; i < len(pairs); i += 2 {
			f.Labels[pairs[i]] = pairs[i+1]
		}
		return f
	}
	check := func() {
		t.Helper()
		require.Equal(t, []workitem.CaseID{ada}, found(t, e, store.CaseFilter{Key: "C-1"}))
		require.Equal(t, []workitem.CaseID{bob}, found(t, e, store.CaseFilter{Key: "X-2"}))
		require.Empty(t, found(t, e, store.CaseFilter{Key: "C-2"}), "the start gave another key")
		require.Equal(t, []workitem.CaseID{ada}, found(t, e, label("customer", "ada")), "a start can leave a label out")
		require.Equal(t, []workitem.CaseID{ada, bob}, found(t, e, label("region", "north")))
		require.Equal(t, []workitem.CaseID{bob}, found(t, e, label("region", "north", "customer", "bob")))
		require.Empty(t, found(t, e, label("region", "bob")))
	}
	check()
	e.Crash()
	check()
	c, err := e.Case(ctx, plain)
	require.NoError(t, err)
	require.Empty(t, c.Key)
	require.Nil(t, c.Labels)

	// What the restarted case was given goes over to the fresh one.
	require.NoError(t, enginetest.Do(ctx, e, workflow.Cancel(bob, nil)))
	again, err := e.Do(ctx, workflow.Restart(bob))
	require.NoError(t, err)
	require.Equal(t, []workitem.CaseID{bob, again.Case}, found(t, e, store.CaseFilter{Key: "X-2"}))
	require.Equal(t, []workitem.CaseID{bob, again.Case}, found(t, e, label("region", "north", "customer", "bob")))
}

func TestAUniqueKeyIsHeldByOneCase(t *testing.T) {
	ctx := t.Context()
	w, pack := parcels(t)
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "db")), engine.Config{}, w)
	taken := func(err error, by workitem.CaseID) {
		t.Helper()
		require.ErrorIs(t, err, workflow.ErrKeyTaken)
		require.Equal(t, "key-taken", engine.Code(err))
		var refused *workflow.KeyTakenError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, workflow.KeyTakenError{Workflow: "parcel", Key: "C-1", Case: by}, *refused)
	}
	first, err := w.Start(ctx, e, parcel{"C-1", "ada"})
	require.NoError(t, err)
	_, err = w.Start(ctx, e, parcel{"C-1", "bob"})
	taken(err, first)
	_, err = w.Start(ctx, e, parcel{"C-2", "bob"}, workflow.BusinessKey("C-1"))
	taken(err, first)
	e.Crash()
	_, err = w.Start(ctx, e, parcel{"C-1", "bob"})
	taken(err, first)

	// One that failed gives the key free, and cannot be resumed while another one holds it.
	item := packItem(t, e, first)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Act(item, workitem.Start, nil)))
	require.NoError(t, enginetest.Do(ctx, e, workflow.Fail(item, nil)))
	second, err := w.Start(ctx, e, parcel{"C-1", "ada"})
	require.NoError(t, err)
	for _, c := range []workflow.Command{workflow.Resume(first, nil), workflow.Retry(item, nil), workflow.Move(first, "pack", "start")} {
		taken(enginetest.Do(ctx, e, c), second)
	}
	require.NoError(t, enginetest.Do(ctx, e, workflow.Cancel(second, nil)))
	require.NoError(t, enginetest.Do(ctx, e, workflow.Resume(first, nil)))

	// One that has completed holds it until it is removed.
	item = packItem(t, e, first)
	require.NoError(t, pack.Start(ctx, e, item))
	require.NoError(t, pack.Complete(ctx, e, item, struct{}{}))
	_, err = e.Do(ctx, workflow.Restart(second))
	taken(err, first)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Remove(first)))
	third, err := e.Do(ctx, workflow.Restart(second))
	require.NoError(t, err)
	_, err = w.Start(ctx, e, parcel{"C-1", "ada"})
	taken(err, third.Case)
}

// Two cases of one transaction are distinguished, too, and what failed in it gives its key free.
func TestAUniqueKeyWithinATransaction(t *testing.T) {
	w, _ := parcels(t)
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "db")), engine.Config{}, w)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		first, err := w.Start(t.Context(), tx, parcel{"C-1", "ada"})
		require.NoError(t, err)
		_, err = w.Start(t.Context(), tx, parcel{"C-1", "bob"})
		require.ErrorIs(t, err, workflow.ErrKeyTaken)
		require.NoError(t, enginetest.Do(t.Context(), tx, workflow.Cancel(first, nil)))
		_, err = w.Start(t.Context(), tx, parcel{"C-1", "bob"})
		return err
	}))
	require.Len(t, found(t, e, store.CaseFilter{Key: "C-1"}), 2)
	require.Len(t, found(t, e, store.CaseFilter{Key: "C-1", States: []state.CaseState{state.CaseStarted}}), 1)
}

func TestAnIdentityThatCannotBeKeptIsRefused(t *testing.T) {
	w, _ := parcels(t)
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "db")), engine.Config{}, w)
	long := string(make([]byte, workflow.MaxKey+1))
	for name, start := range map[string]func() error{
		"long key":    func() error { _, err := w.Start(t.Context(), e, parcel{Number: long}); return err },
		"long label":  func() error { _, err := w.Start(t.Context(), e, parcel{Customer: long}); return err },
		"NUL":         func() error { _, err := w.Start(t.Context(), e, parcel{Customer: "a\x00"}); return err },
		"long option": func() error { _, err := w.Start(t.Context(), e, parcel{}, workflow.BusinessKey(long)); return err },
	} {
		var invalid *domain.InvalidError
		require.ErrorAs(t, start(), &invalid, name)
	}
	_, err := w.Start(t.Context(), e, parcel{}, workflow.Label("no name", "x"))
	require.ErrorContains(t, err, `"no name" cannot be the name of a label`)
	require.Empty(t, found(t, e, store.CaseFilter{}))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Command{Kind: workflow.KindRemove, Case: workitem.CaseID{1}, BusinessKey: "x"}),
		workflow.ErrBadCommand)
}

// Of several engines on one database that start a case of the same key at the same time, one does.
func TestAUniqueKeyInAFleet(t *testing.T) {
	f := newFleet(t)
	w, _ := parcels(t)
	engines := []*engine.Engine{f.open(engine.Config{}, w), f.open(engine.Config{}, w)}
	for _, key := range []string{"C-1", "C-2", "C-3"} {
		var all sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			all.Go(func() {
				input, _ := json.Marshal(parcel{Number: key})
				_, errs[i] = engines[i%2].Do(context.Background(), workflow.Start("parcel", input))
			})
		}
		all.Wait()
		started := 0
		for _, err := range errs {
			if err == nil {
				started++
				continue
			}
			require.ErrorIs(t, err, workflow.ErrKeyTaken)
		}
		require.Equal(t, 1, started)
		require.Len(t, found(t, engines[0], store.CaseFilter{Key: key}), 1)
	}
}
