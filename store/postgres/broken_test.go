package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// sharedOpener opens stores as engines of a fleet do.
type sharedOpener struct{ store.Opener }

func (s sharedOpener) Open(ctx context.Context, o store.Options) (store.Store, error) {
	o.Shared = true
	return s.Opener.Open(ctx, o)
}

// statement is one of a commit, by a text that it has, in a command with SQL of the user's or without.
type statement struct {
	text string
	sql  bool
}

// commits are the statements of a commit that connections break at, by texts of theirs; the first are of one without SQL of the user's.
var commits = []statement{
	{"pg_current_xact_id", false},
	{"event paid", false}, // the name of the command: the fence, the check and the entry
	{"SAVEPOINT tasq", true},
	{"INSERT INTO effects", true},
	{"SET CONSTRAINTS", true},
	{"event paid", true}, // all but the end
	{"COMMIT", true},
	{"UPDATE tasq.cases", false}, // the rest, with the end
}

// change is a command on the one case of a world, in a savepoint as those of an engine, with SQL of the user's or without.
func change(w *storetest.World, id workitem.CaseID, sql bool) error {
	return w.TryUpdate(func(b *storetest.Batch) error {
		return b.Tx.Savepoint(context.Background(), func() error {
			if sql {
				if _, err := b.Tx.DB().ExecContext(context.Background(), "INSERT INTO effects DEFAULT VALUES"); err != nil {
					return err
				}
			}
			b.Send(id, id, `1`, nil)
			return nil
		})
	})
}

// faults are those of a connection; the first ones take as long as the store waits for an answer.
var faults = []pgproxy.Fault{pgproxy.HalfOpen, pgproxy.Silence, pgproxy.Request, pgproxy.Reply, pgproxy.Late, pgproxy.Delay}

func isSlow(f pgproxy.Fault) bool { return f == pgproxy.HalfOpen || f == pgproxy.Silence }

// answers is longer than any answer takes, and shorter than users would want.
const answers = 4 * time.Second

// However a connection breaks at a statement of a commit: an Update that is acknowledged has happened, one that fails has not, what arrives
// late changes nothing, and the next one continues.
func TestConnectionsThatBreakInACommit(t *testing.T) {
	t.Parallel()
	for _, fault := range faults {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			if !isSlow(fault) {
				breakCommits(t, fault, commits)
				return
			}
			if testsize.Nightly() {
				breakCommits(t, fault, commits)
			} else if fault == pgproxy.HalfOpen {
				breakCommits(t, fault, commits[3:4])
			} else {
				breakCommits(t, fault, commits[5:6])
			}
		})
	}
}

func breakCommits(t *testing.T, fault pgproxy.Fault, at []statement) {
	p, dsn := pgproxy.New(t, prepared.Database(t))
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, postgres.Patience(answers, time.Minute))}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		id = b.Start(`1`)
		_, err := b.Tx.DB().ExecContext(t.Context(), "CREATE TABLE effects (at timestamptz DEFAULT now())")
		require.NoError(t, err)
	})
	want := 0
	for _, at := range at {
		require.NoError(t, change(w, id, at.sql), "prepares the statements of a new connection")
		met := p.Met()
		p.Break(fault, at.text)
		err := change(w, id, at.sql)
		require.Equal(t, met+1, p.Met(), "no statement has %q", at.text)
		if err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.NotContains(t, err.Error(), "could not be found out")
		}
		t.Logf("%s at %q: %v", fault, at.text, err)
		p.Deliver()
		w.Check()
		require.NoError(t, change(w, id, at.sql), "it goes on")
		w.Check()
		if at.sql {
			want += 2
			if err == nil {
				want++
			}
		}
	}
	require.Equal(t, want, effects(t, w))
	w.Reopen()
	w.Check()
}

// Signs of life and taking jobs continue after each fault of their connection, and the engine is not forgotten.
func TestConnectionsThatBreakInATick(t *testing.T) {
	t.Parallel()
	texts := []string{"UPDATE tasq.pulses", "SKIP LOCKED", "IS DISTINCT FROM"}
	for _, fault := range faults {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			n := len(texts)
			if isSlow(fault) {
				n = 1
			}
			breakTicks(t, fault, texts[:n])
		})
	}
}

func breakTicks(t *testing.T, fault pgproxy.Fault, texts []string) {
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, postgres.Patience(answers, time.Minute))}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	fleet := w.Store.(store.Fleet)
	require.NoError(t, fleet.Announce(t.Context(), []string{"fp-article"}))
	exchange := func() error {
		_, err := fleet.Tick(t.Context(), store.EngineState{Busy: true, Clock: time.Now(), Roots: map[workitem.CaseID]int64{id: 1}})
		_, taken := fleet.Take(t.Context(), store.TakeFilter{Max: 1})
		return errors.Join(err, taken)
	}
	for _, text := range texts {
		require.NoError(t, exchange())
		met := p.Met()
		p.Break(fault, text)
		if err := exchange(); err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
		require.Equal(t, met+1, p.Met(), "no statement has %q", text)
		p.Deliver()
		require.NoError(t, exchange(), "it goes on")
		require.NoError(t, step(w, id, false))
		require.Equal(t, int64(1), number(t, direct, "SELECT count(*) FROM tasq.processes WHERE state = 'live'"))
	}
	w.Check()
}

// number is what a query returns, on a connection of its own.
func number(t *testing.T, dsn, query string, args ...any) (n int64) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	require.NoError(t, c.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// The outcome of a commit is asked for until the server is back.
func TestTheOutcomeOfACommitIsAwaited(t *testing.T) {
	t.Parallel()
	p, dsn := pgproxy.New(t, prepared.Database(t))
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	require.NoError(t, step(w, id, false))
	p.Decide(func(statement string) pgproxy.Fault {
		if !strings.HasPrefix(statement, "COMMIT") {
			return ""
		}
		p.Refuse()
		return pgproxy.Reply
	})
	done := make(chan error)
	go func() { done <- step(w, id, false) }()
	require.Eventually(t, func() bool { return p.Refused() > 3 }, 30*time.Second, time.Millisecond)
	p.Decide(nil)
	p.Open()
	require.NoError(t, <-done)
	w.Check()
}

// An engine that cannot find out what became of a commit says so, and leaves what it held: it may hold jobs that it does not know of.
func TestACommitOfUnknownOutcomeFreesItsJobs(t *testing.T) {
	t.Parallel()
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, postgres.Patience(answers, time.Second))}, 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	fleet := w.Store.(store.Fleet)
	require.NoError(t, fleet.Announce(t.Context(), []string{"fp-article", "fp-issue"}))
	tick := func() error {
		_, err := fleet.Tick(t.Context(), store.EngineState{Clock: time.Now()})
		return err
	}
	require.NoError(t, tick())
	p.Decide(func(statement string) pgproxy.Fault {
		if !strings.HasPrefix(statement, "COMMIT") {
			return ""
		}
		p.Refuse()
		return pgproxy.Reply
	})
	err := w.TryUpdate(func(b *storetest.Batch) error {
		b.Start(`2`)
		return nil
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "look before you repeat it")
	p.Decide(nil)
	p.Open()
	require.Equal(t, int64(2), number(t, direct, "SELECT count(*) FROM tasq.journal"), "it happened")
	nothing := func(*storetest.Batch) error { return nil }
	require.ErrorIs(t, w.TryUpdate(nothing), store.ErrFenced, "it joined anew, and says so before it commits anything")
	require.NoError(t, w.TryUpdate(nothing))
	require.ErrorIs(t, tick(), store.ErrFenced)
	var jobs []*state.Job
	require.Eventually(t, func() bool { // the connection for this was lost, too
		jobs, err = fleet.Take(t.Context(), store.TakeFilter{Max: 10})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.Len(t, jobs, 2, "those of both cases")
	w.Resume()
	w.Check()
}
