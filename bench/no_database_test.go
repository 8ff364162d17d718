package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// none is a store without a database: it keeps no entry, and of the trees those that have ended, until the caller that waits
// for the end has seen it. So what a case costs on it is what the engine itself costs.
type none struct {
	mu      sync.Mutex
	seq     int64
	ended   sync.Map // trees by the id of their root case
	records *sql.DB  // of collections: empty, in memory
}

func newNone(tb testing.TB) *none {
	tb.Helper()
	records, err := sql.Open("sqlite", "file::memory:")
	require.NoError(tb, err)
	records.SetMaxOpenConns(1)
	tb.Cleanup(func() { require.NoError(tb, records.Close()) })
	_, err = records.ExecContext(context.Background(), domain.Schema)
	require.NoError(tb, err)
	return &none{records: records}
}

var errNone = errors.New("this store keeps nothing")

func (s *none) Open(context.Context, store.Options) (store.Store, error) { return s, nil }

func (s *none) Update(_ context.Context, f func(store.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(noneTx{s})
}

func (s *none) View(_ context.Context, f func(store.Reader) error) error { return f(noneReader{s: s}) }

func (s *none) Register(context.Context, []*store.Definition) error { return nil }
func (s *none) Idle(context.Context) error                          { return nil }
func (s *none) Close() error                                        { return nil }

func (s *none) ReadLimits(context.Context, []store.LimitKey) (store.LimitView, error) {
	return store.LimitView{}, errNone
}

func (s *none) WriteLimits(context.Context, []store.LimitRow, int64) ([]store.LimitKey, error) {
	return nil, errNone
}

type noneTx struct{ s *none }

func (t noneTx) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	return noneReader{s: t.s}.Tree(ctx, root)
}

func (noneTx) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) { return id, nil }

func (noneTx) Item(context.Context, workitem.ID) (*store.ItemRow, error) {
	return nil, store.ErrNotFound
}
func (noneTx) Steps(context.Context, [16]byte) ([]*workitem.Step, error) { return nil, nil }

func (t noneTx) Append(_ context.Context, e *store.Entry, tree *state.Tree) error {
	t.s.seq++
	e.Seq = t.s.seq
	tree.End(e.Seq)
	if tree.Ended() {
		t.s.ended.Store(tree.Root, tree)
	}
	return nil
}

func (noneTx) Answered(context.Context, string) (*store.Entry, error) {
	return nil, store.ErrNotFound
}
func (noneTx) History(context.Context, *state.Tree, int64) ([]*store.Entry, error) {
	return nil, errNone
}
func (noneTx) Savepoint(_ context.Context, f func() error) error { return f() }
func (noneTx) DB() domain.DB                                     { return nil }
func (noneTx) KeyHolders(context.Context, string, string) ([]workitem.CaseID, error) {
	return nil, nil
}
func (noneTx) Successors(context.Context, workitem.CaseID) ([]workitem.CaseID, error) {
	return nil, nil
}
func (noneTx) KeyStarts(context.Context, string, string, time.Time) ([]store.KeyStart, error) {
	return nil, nil
}
func (noneTx) Requests(context.Context, int64, int) ([]store.Request, error) {
	return nil, nil
}
func (noneTx) Reply(context.Context, int64, store.Answer) error { return errNone }

func (noneTx) Set(context.Context, string, json.RawMessage) error { return nil }

func (noneTx) Setting(context.Context, string) (json.RawMessage, error) { return nil, nil }

// noneReader is a view of an empty database.
type noneReader struct {
	store.Reader
	s *none
}

func (r noneReader) DB() domain.DB { return r.s.records }

func (noneReader) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) { return id, nil }

func (r noneReader) Tree(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	tree, ok := r.s.ended.Load(root)
	if !ok {
		return nil, store.ErrNotFound
	}
	return tree.(*state.Tree), nil
}

func (noneReader) Cases(context.Context, store.CaseFilter) ([]*state.Case, error) { return nil, nil }
func (noneReader) Items(context.Context, store.ItemFilter) ([]*store.ItemRow, error) {
	return nil, nil
}
func (noneReader) Jobs(context.Context, store.JobFilter) ([]*state.Job, error)       { return nil, nil }
func (noneReader) Steps(context.Context, store.StepFilter) ([]*workitem.Step, error) { return nil, nil }
func (noneReader) Messages(context.Context, store.MessageFilter) ([]*state.Message, error) {
	return nil, nil
}
func (noneReader) Definitions(context.Context) ([]*store.Definition, error) { return nil, nil }
func (noneReader) Settings(context.Context) ([]store.Setting, error)        { return nil, nil }
func (noneReader) LimitRows(context.Context, store.LimitFilter) (store.LimitView, error) {
	return store.LimitView{}, nil
}
func (noneReader) Counts(context.Context) ([]store.Count, error) { return nil, nil }
func (noneReader) CountsByDefinition(context.Context, bool) ([]store.DefinitionCount, error) {
	return nil, nil
}
func (noneReader) Ended(context.Context, store.RateFilter) ([]store.Ended, error) { return nil, nil }

// BenchmarkEngineWithoutDatabase is a one-item case with its worker and its caller, 64 callers at once. It reports the CPU
// of the whole process a case, which is steadier than its time.
func BenchmarkEngineWithoutDatabase(b *testing.B) {
	s := newNone(b)
	e, err := engine.Config{Workers: 64, Logger: quiet}.Open(noTimeout, s, oneTask)
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	before := used()
	fromCallers(b, func() error {
		id, err := oneTask.Start(noTimeout, e, anOrder)
		if err == nil {
			_, err = e.Wait(noTimeout, id)
		}
		s.ended.Delete(id)
		return err
	})
	b.StopTimer()
	b.ReportMetric(metrics{}.since(before, float64(b.N))["cpu"], "cpu-us/op")
	require.NoError(b, e.Close())
}
