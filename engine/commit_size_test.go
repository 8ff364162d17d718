package engine_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// sizes adds up commits.
type sizes struct {
	mu  sync.Mutex
	n   int
	sum engine.Commit
}

func (s *sizes) add(c engine.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.sum = engine.Commit{Commands: s.sum.Commands + c.Commands, Entries: s.sum.Entries + c.Entries, Changes: s.sum.Changes + c.Changes, Bytes: s.sum.Bytes + c.Bytes}
}

func (s *sizes) take() (int, engine.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.sum
}

// All middleware gets the size of each commit: together they are what the journal has. What was refused or only read is
// no part of it.
func TestTheSizeOfEachCommit(t *testing.T) {
	t.Parallel()
	var a, b sizes
	w := callsChild(t, new(book))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{{Commit: a.add}, {}, {Commit: b.add}}}, w)
	_, err := w.Start(t.Context(), e, "good")
	require.NoError(t, err)
	e.Drain()
	var entries, changes int
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{}) {
		require.NoError(t, err)
		entries++
		changes += len(entry.Changes)
	}
	n, sum := a.take()
	require.Equal(t, entries, sum.Entries)
	require.Equal(t, changes, sum.Changes)
	require.Greater(t, sum.Bytes, sum.Changes)
	require.GreaterOrEqual(t, sum.Commands, n)
	require.Less(t, 1, n)
	others, same := b.take()
	require.Equal(t, n, others)
	require.Equal(t, sum, same)
	_, err = e.Do(t.Context(), workflow.Cancel(workitem.CaseID{1}, nil))
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = e.Do(t.Context(), workflow.Queues())
	require.NoError(t, err)
	after, _ := a.take()
	require.Equal(t, n, after)
}
