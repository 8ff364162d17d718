package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// faultKinds are the errors by which SQLite says that something outside of a statement failed. Each undoes the transaction.
var faultKinds = []string{"FULL", "IOERR", "BUSY", "NOMEM", "INTERRUPT"}

// faulty opens a store that fails where it is told to: SQL of the user's that begins with FAULT and a kind, and the next times that
// the store begins a transaction, reads a case, appends or commits.
type faulty struct {
	store.Opener
	kind                               string
	sql, begin, load, append_, commits atomic.Int32 // how many times each fails yet
	lost                               sync.Map     // inputs of cases whose start cannot be appended
}

// Open implements store.Opener.
func (f *faulty) Open(ctx context.Context, o store.Options) (store.Store, error) {
	return (&storehook.Opener{Opener: f.Opener,
		Update: func(run func() error) error {
			if err := f.fail(&f.begin); err != nil {
				return err
			}
			return run()
		},
		Tx:     func(tx store.Tx) store.Tx { return &faultyTx{Tx: tx, f: f} },
		Append: f.appends,
		Commit: func() error { return f.fail(&f.commits) },
	}).Open(ctx, o)
}

// appends fails an entry.
func (f *faulty) appends(e *store.Entry, _ *state.Tree) error {
	for _, event := range e.Changes {
		if opened, ok := event.(*state.CaseOpened); ok {
			if _, lost := f.lost.Load(string(opened.Case.Input)); lost {
				return fmt.Errorf("%w: %s", store.ErrUnavailable, f.kind)
			}
		}
	}
	return f.fail(&f.append_)
}

func (f *faulty) fail(left *atomic.Int32) error {
	if left.Load() <= 0 {
		return nil
	}
	left.Add(-1)
	return fmt.Errorf("%w: %s", store.ErrUnavailable, f.kind)
}

type faultyTx struct {
	store.Tx
	f   *faulty
	met error // the fault that undid the transaction
}

// Savepoint implements store.Tx.
func (t *faultyTx) Savepoint(ctx context.Context, f func() error) error {
	return errors.Join(t.Tx.Savepoint(ctx, f), t.met)
}

// Load implements store.Tx.
func (t *faultyTx) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	if err := t.f.fail(&t.f.load); err != nil {
		return nil, err
	}
	return t.Tx.Load(ctx, root)
}

// DB implements store.Tx.
func (t *faultyTx) DB() domain.DB { return faultyDB{t.Tx.DB(), t} }

type faultyDB struct {
	domain.DB
	t *faultyTx
}

// ExecContext implements domain.DB. A fault undoes the transaction, as SQLite does.
func (d faultyDB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	kind, fault := strings.CutPrefix(query, "FAULT ")
	if query == "PERHAPS" {
		kind, fault = d.t.f.kind, d.t.f.fail(&d.t.f.sql) != nil
		query = "SELECT 1"
	}
	if !fault {
		return d.DB.ExecContext(ctx, query, args...)
	}
	_, err := d.DB.ExecContext(ctx, "CREATE TEMP TABLE fault (x PRIMARY KEY); INSERT OR ROLLBACK INTO fault VALUES (1), (1)")
	d.t.met = fmt.Errorf("%w: %s", store.ErrUnavailable, kind)
	return nil, errors.Join(err, d.t.met)
}

// A fault within the SQL of a command is the error of that command. What shares its transaction is done nevertheless, once.
func TestAFaultInTheSQLOfACommandIsItsOwn(t *testing.T) {
	for _, kind := range faultKinds {
		t.Run(kind, func(t *testing.T) {
			ctx := t.Context()
			logs := func(name, query string) *builder.Workflow[int] {
				b := builder.New[int](name)
				b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{
					OnEnabled: func(ctx context.Context, a *activities.Activation) error {
						_, err := a.DB().ExecContext(ctx, query)
						return err
					},
				}), b.End())
				return b.MustBuild()
			}
			good, bad := logs("good", "INSERT INTO log VALUES (1)"), logs("bad", "FAULT "+kind)
			e := enginetest.Open(t, &faulty{Opener: sqlite.Memory()}, engine.Config{}, good, bad)
			withTable(t, e)
			start := func(w *builder.Workflow[int]) func(context.Context) error {
				return func(ctx context.Context) error { _, err := w.Start(ctx, e, 1); return err }
			}
			errs := engine.Together(ctx, e.Engine, start(good), start(bad), start(good), runSQL(e, "INSERT INTO log VALUES (2)"),
				start(good), runSQL(e, "FAULT "+kind), start(good))
			for i, err := range errs {
				if i == 1 || i == 5 {
					require.ErrorIs(t, err, store.ErrUndone, i)
					require.ErrorIs(t, err, store.ErrUnavailable, i)
					require.ErrorContains(t, err, kind)
				} else {
					require.NoError(t, err, i)
				}
			}
			require.Equal(t, 4, count(t, e, "SELECT count(*) FROM log WHERE x = 1"))
			require.Equal(t, 1, count(t, e, "SELECT count(*) FROM log WHERE x = 2"))
			require.Equal(t, 4, cases(t, e))
		})
	}
}

// Wherever a fault meets what is due, that is done when the fault is over, and nothing is counted against it: a timer whose callback
// runs SQL, and the result of a job. A caller that meets it is refused.
func TestEachFaultOfWhatIsDueIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range faultKinds {
		for place, of := range map[string]func(*faulty) *atomic.Int32{
			"sql":    func(f *faulty) *atomic.Int32 { return &f.sql },
			"begin":  func(f *faulty) *atomic.Int32 { return &f.begin },
			"load":   func(f *faulty) *atomic.Int32 { return &f.load },
			"append": func(f *faulty) *atomic.Int32 { return &f.append_ },
			"commit": func(f *faulty) *atomic.Int32 { return &f.commits },
		} {
			t.Run(kind+" "+place, func(t *testing.T) {
				t.Parallel() // the engine waits before it tries again
				testFaultOfWhatIsDue(t, &faulty{Opener: sqlite.Memory(), kind: kind}, of)
			})
		}
	}
}

func testFaultOfWhatIsDue(t *testing.T, f *faulty, of func(*faulty) *atomic.Int32) {
	ctx := t.Context()
	left := of(f)
	perhaps := func(ctx context.Context, a *activities.Activation) error {
		_, err := a.DB().ExecContext(ctx, "PERHAPS")
		return err
	}
	calls := atomic.Int32{}
	var e *enginetest.Engine
	b := builder.New[any]("due")
	job := builder.Task(b, "job", builder.Work[any, any]{Run: func(ctx context.Context, _ any) (any, error) {
		calls.Add(1)
		err := e.Update(ctx, func(*engine.Tx) error { return nil }) // after the claim, which is durable then
		if left != &f.load {
			left.Store(3)
		}
		return nil, err
	}})
	b.Path(b.Start(), job, builder.Task(b, "after", builder.Work[any, any]{OnEnabled: perhaps}), b.End())
	w := b.MustBuild()
	e = enginetest.Open(t, f, engine.Config{CacheCases: 1, Workers: 1}, w)
	_, err := w.Start(ctx, e, nil, workflow.After(time.Hour))
	require.NoError(t, err)
	last, err := w.Start(ctx, e, nil, workflow.After(time.Hour))
	require.NoError(t, err)

	left.Store(3)
	e.Advance(time.Hour)
	e.Drain()
	require.Zero(t, left.Load(), "all faults were met")
	require.EqualValues(t, 2, calls.Load(), "a function whose result was not taken is not called again")
	c, err := e.Case(ctx, last)
	require.NoError(t, err)
	after, _ := c.Net.TaskByName("after")
	require.Equal(t, state.TaskEnabled, c.Tasks[after].State)
	require.Empty(t, e.Overdue())
	noTrace(t, e)

	if left != &f.sql && left != &f.load {
		left.Store(1)
		_, err = w.Start(ctx, e, nil)
		require.ErrorIs(t, err, store.ErrUnavailable, "who asks is refused")
		require.ErrorContains(t, err, f.kind)
		_, err = w.Start(ctx, e, nil)
		require.NoError(t, err)
		e.Drain()
	}
	left.Store(0)
}
