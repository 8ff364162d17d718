package storetest

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func exec(w *World, db domain.DB, query string, args ...any) {
	w.T.Helper()
	_, err := db.ExecContext(context.Background(), query, args...)
	require.NoError(w.T, err)
}

func orders(w *World, db domain.DB) []string {
	w.T.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT name FROM orders ORDER BY name")
	require.NoError(w.T, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		require.NoError(w.T, rows.Scan(&name))
		all = append(all, name)
	}
	require.NoError(w.T, rows.Err())
	return all
}

const createOrders = "CREATE TABLE orders (name TEXT PRIMARY KEY)"

func savepoint(w *World) {
	w.Update(func(b *Batch) { exec(w, b.Tx.DB(), createOrders) })
	var third workitem.CaseID
	w.Update(func(b *Batch) {
		first := b.Start(`1`)
		exec(w, b.Tx.DB(), "INSERT INTO orders VALUES ('before')")
		b.undone(first)
		b.undoneAround()
		third = b.undoneWithin()
	})
	require.NotZero(w.T, third)
	w.Check()
	w.Crash()
	w.Check()
	w.View(func(_ context.Context, r store.Reader) {
		require.Equal(w.T, []string{"after", "before"}, orders(w, r.DB()))
	})
	w.Update(func(b *Batch) { // also when the function panics
		require.Panics(w.T, func() {
			_ = b.Tx.Savepoint(context.Background(), func() error {
				exec(w, b.Tx.DB(), "INSERT INTO orders VALUES ('panic')")
				panic("the function's own fault")
			})
		})
		require.Equal(w.T, []string{"after", "before"}, orders(w, b.Tx.DB()))
	})
}

// undone undoes a savepoint that changed a case, started another one with a key, and wrote rows, in a savepoint of its
// own among them.
func (b *Batch) undone(first workitem.CaseID) {
	b.T.Helper()
	ctx, entries := context.Background(), len(b.entries)
	err := b.Tx.Savepoint(ctx, func() error {
		b.Claim(first, first)
		b.Key = "second"
		b.Start(`2`)
		exec(b.World, b.Tx.DB(), "INSERT INTO orders VALUES ('undone')")
		err := b.Tx.Savepoint(ctx, func() error {
			exec(b.World, b.Tx.DB(), "INSERT INTO orders VALUES ('kept within')")
			return nil
		})
		require.NoError(b.T, err)
		require.Len(b.T, orders(b.World, b.Tx.DB()), 3)
		return errUndo
	})
	require.ErrorIs(b.T, err, errUndo)
	b.entries = b.entries[:entries] // an engine forgets the trees, too
	clear(b.trees)
	_, err = b.Tx.Answered(ctx, "second")
	require.ErrorIs(b.T, err, store.ErrNotFound)
	tree, err := b.Tx.Load(ctx, first)
	require.NoError(b.T, err)
	require.Equal(b.T, workitem.Initialized, tree.Case(first).Items.Slice()[0].State)
	require.Equal(b.T, []string{"before"}, orders(b.World, b.Tx.DB()))
}

// undoneAround undoes a savepoint that does nothing itself but keep another one.
func (b *Batch) undoneAround() {
	b.T.Helper()
	err := b.Tx.Savepoint(context.Background(), func() error {
		require.NoError(b.T, b.Tx.Savepoint(context.Background(), func() error {
			exec(b.World, b.Tx.DB(), "INSERT INTO orders VALUES ('undone around')")
			return nil
		}))
		return errUndo
	})
	require.ErrorIs(b.T, err, errUndo)
	require.Equal(b.T, []string{"before"}, orders(b.World, b.Tx.DB()))
}

// undoneWithin keeps a savepoint in which another one was undone, and returns the case that it started.
func (b *Batch) undoneWithin() (kept workitem.CaseID) {
	b.T.Helper()
	require.NoError(b.T, b.Tx.Savepoint(context.Background(), func() error {
		kept = b.Start(`3`)
		exec(b.World, b.Tx.DB(), "INSERT INTO orders VALUES ('after')")
		err := b.Tx.Savepoint(context.Background(), func() error {
			exec(b.World, b.Tx.DB(), "INSERT INTO orders VALUES ('undone within')")
			return errUndo
		})
		require.ErrorIs(b.T, err, errUndo)
		return nil
	}))
	return kept
}

func userSQL(w *World) {
	ctx := context.Background()
	w.Update(func(b *Batch) {
		exec(w, b.Tx.DB(), createOrders)
		b.Start(`1`)
	})
	err := w.TryUpdate(func(b *Batch) error {
		exec(w, b.Tx.DB(), "INSERT INTO orders VALUES ('lost')")
		b.Start(`2`)
		return errUndo
	})
	require.ErrorIs(w.T, err, errUndo)
	w.Update(func(b *Batch) {
		db := b.Tx.DB()
		require.Empty(w.T, orders(w, db))
		insert, err := db.PrepareContext(ctx, "INSERT INTO orders VALUES ($1)")
		require.NoError(w.T, err)
		for _, name := range []string{"a", "b", "c"} {
			_, err := insert.ExecContext(ctx, name)
			require.NoError(w.T, err)
		}
		b.failing()
		rows, err := db.QueryContext(ctx, "SELECT name FROM orders")
		require.NoError(w.T, err)
		require.True(w.T, rows.Next())
		var n int // a second query while the first is open, as code with cursors does
		require.NoError(w.T, db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&n))
		require.Equal(w.T, 3, n)
		b.Start(`3`) // the rows are left open
		require.NoError(w.T, insert.Close())
	})
	w.Check()
	w.Crash()
	w.Check()
	w.View(func(_ context.Context, r store.Reader) {
		require.Equal(w.T, []string{"a", "b", "c"}, orders(w, r.DB()))
	})

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	w.Update(func(b *Batch) { // a context that has ended fails the statement, not the others of the transaction
		exec(w, b.Tx.DB(), "INSERT INTO orders VALUES ('d')")
		_, err := b.Tx.DB().ExecContext(canceled, "INSERT INTO orders VALUES ('e')")
		require.ErrorIs(w.T, err, context.Canceled)
	})
	w.View(func(_ context.Context, r store.Reader) {
		require.Equal(w.T, []string{"a", "b", "c", "d"}, orders(w, r.DB()))
	})
}

// failing runs a statement that fails. Its savepoint is undone alone if the function returns the error. If it does not, the
// savepoint continues where one statement can fail alone, and returns the error itself where it cannot.
func (b *Batch) failing() {
	b.T.Helper()
	for _, returned := range []bool{true, false} {
		dialect := domain.Dialect("")
		err := b.Tx.Savepoint(context.Background(), func() error {
			db := b.Tx.DB()
			dialect = domain.DialectOf(db)
			_, err := db.ExecContext(context.Background(), "INSERT INTO orders VALUES ('a')")
			require.Error(b.T, err)
			_, after := db.ExecContext(context.Background(), "DELETE FROM orders WHERE name = 'x'")
			require.Equal(b.T, dialect == domain.Postgres, after != nil, "a statement after one that failed")
			if returned {
				return err
			}
			return nil
		})
		require.Equal(b.T, returned || dialect == domain.Postgres, err != nil, "the error of the savepoint: %v", err)
		require.NotErrorIs(b.T, err, store.ErrUndone)
	}
}

func userGuard(w *World) {
	ctx := context.Background()
	var kept domain.DB
	var stmt *sql.Stmt
	w.Update(func(b *Batch) {
		kept = b.Tx.DB()
		exec(w, kept, createOrders)
		for _, query := range []string{"COMMIT", " /* x */ commit;", "ROLLBACK",
			"SELECT 1; COMMIT",
			"SAVEPOINT a", "RELEASE a", "BEGIN", "END"} {
			_, err := kept.ExecContext(ctx, query)
			require.Error(w.T, err, query)
			require.Error(w.T, kept.QueryRowContext(ctx, query).Scan(new(int)), query)
		}
		require.Empty(w.T, orders(w, kept))
		if beginner, ok := kept.(interface{ Begin() (*sql.Tx, error) }); ok {
			_, err := beginner.Begin()
			require.Error(w.T, err)
		}
		exec(w, kept, "INSERT INTO orders VALUES ('commit; rollback')")
		var err error
		stmt, err = kept.PrepareContext(ctx, "INSERT INTO orders VALUES ('late')")
		require.NoError(w.T, err)
		b.Start(`1`)
	})
	w.Update(func(b *Batch) { // a handle from within a savepoint ends with it
		var inner domain.DB
		require.NoError(w.T, b.Tx.Savepoint(ctx, func() error {
			inner = b.Tx.DB()
			exec(w, inner, "INSERT INTO orders VALUES ('inner')")
			return nil
		}))
		_, err := inner.ExecContext(ctx, "DELETE FROM orders")
		require.Error(w.T, err)
		exec(w, b.Tx.DB(), "DELETE FROM orders WHERE name = 'inner'")
	})
	late := func() {
		_, err := kept.ExecContext(ctx, "INSERT INTO orders VALUES ('late')")
		require.Error(w.T, err)
		require.Error(w.T, kept.QueryRowContext(ctx, "SELECT 1").Scan(new(int)))
		_, err = stmt.ExecContext(ctx)
		require.Error(w.T, err)
	}
	late()
	w.Update(func(b *Batch) { late() }) // nor in the next one
	w.View(func(_ context.Context, r store.Reader) {
		require.Equal(w.T, []string{"commit; rollback"}, orders(w, r.DB()))
		kept = r.DB()
	})
	require.Error(w.T, kept.QueryRowContext(ctx, "SELECT 1").Scan(new(int)))
	w.Check()
}

func userView(w *World) {
	w.Update(func(b *Batch) {
		exec(w, b.Tx.DB(), createOrders+"; INSERT INTO orders VALUES ('a')")
		b.Start(`1`)
	})
	w.View(func(ctx context.Context, r store.Reader) {
		require.Equal(w.T, []string{"a"}, orders(w, r.DB()))
		_, err := r.DB().ExecContext(ctx, "INSERT INTO orders VALUES ('b')")
		require.Error(w.T, err)
		require.False(w.T, errors.Is(err, sql.ErrNoRows))
		cases, err := r.Cases(ctx, store.CaseFilter{})
		require.NoError(w.T, err)
		require.Len(w.T, cases, 1)
	})
	w.Update(func(b *Batch) { exec(w, b.Tx.DB(), "INSERT INTO orders VALUES ('b')") })
	w.View(func(_ context.Context, r store.Reader) { require.Equal(w.T, []string{"a", "b"}, orders(w, r.DB())) })
}
