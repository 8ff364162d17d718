package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// sharedTx is a transaction of a store that several engines have open.
type sharedTx struct {
	store.Tx
	store.SharedTx
}

// expectsNothing does not check what is only read.
type expectsNothing struct{ sharedTx }

func (expectsNothing) Expect(*state.Tree) {}

// unlocked locks nothing.
type unlocked struct{ sharedTx }

func (tx unlocked) LockCase(ctx context.Context, root workitem.CaseID, _ bool) (int64, error) {
	tree, err := tx.Load(ctx, root)
	if err != nil {
		return 0, err
	}
	return tree.Case(root).LastSeq, nil
}

// remembering loads each tree once.
type remembering struct {
	sharedTx
	last map[workitem.CaseID]*state.Tree
}

func (tx remembering) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	if t := tx.last[root]; t != nil {
		return t, nil
	}
	t, err := tx.Tx.Load(ctx, root)
	tx.last[root] = t
	return t, err
}

// sharing is a store on a server whose transactions, or outcomes, are faulty.
type sharing struct {
	store.Store
	store.Fleet
	dsn       string
	tx        func(sharedTx) store.Tx
	view      func(store.Reader) store.Reader
	outcome   func(error) error
	take      func([]*state.Job) []*state.Job
	agelessly bool // it takes jobs by priority alone
	overdue   func([]*state.Job) []*state.Job
	waiting   func(n int) int
	tick      func(store.News, error) (store.News, error)
	close     func(store.Store) error
}

// View implements store.Store.
func (s *sharing) View(ctx context.Context, f func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error {
		if s.view != nil {
			r = s.view(r)
		}
		return f(r)
	})
}

// Take implements store.Fleet.
func (s *sharing) Take(ctx context.Context, f store.TakeFilter) ([]*state.Job, error) {
	if s.agelessly {
		f.Aging = 0
	}
	jobs, err := s.Fleet.Take(ctx, f)
	if s.take != nil {
		jobs = s.take(jobs)
	}
	return jobs, err
}

// Overdue implements store.Fleet.
func (s *sharing) Overdue(ctx context.Context, due time.Time, most int) ([]*state.Job, error) {
	jobs, err := s.Fleet.Overdue(ctx, due, most)
	if s.overdue != nil {
		jobs = s.overdue(jobs)
	}
	return jobs, err
}

// Waiting implements store.Fleet.
func (s *sharing) Waiting(ctx context.Context, most map[string]int) (map[string]int, error) {
	found, err := s.Fleet.Waiting(ctx, most)
	if s.waiting != nil {
		for queue, n := range found {
			found[queue] = s.waiting(n)
		}
	}
	return found, err
}

// Tick implements store.Fleet.
func (s *sharing) Tick(ctx context.Context, on store.EngineState) (store.News, error) {
	news, err := s.Fleet.Tick(ctx, on)
	if s.tick != nil {
		return s.tick(news, err)
	}
	return news, err
}

// Close implements store.Store.
func (s *sharing) Close() error {
	if s.close != nil {
		return s.close(s.Store)
	}
	return s.Store.Close()
}

// Kill implements store.Killer.
func (s *sharing) Kill() error { return s.Store.(store.Killer).Kill() }

// Update implements store.Store.
func (s *sharing) Update(ctx context.Context, f func(store.Tx) error) error {
	err := s.Store.Update(ctx, func(tx store.Tx) error {
		if s.tx == nil {
			return f(tx)
		}
		return f(s.tx(sharedTx{tx, tx.(store.SharedTx)}))
	})
	if s.outcome != nil {
		err = s.outcome(err)
	}
	return err
}

type sharingOpener struct {
	dsn  string
	wrap func(*sharing)
}

// Open implements store.Opener.
func (o sharingOpener) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := postgres.Open(o.dsn).Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	faulty := &sharing{Store: s, Fleet: s.(store.Fleet), dsn: o.dsn}
	o.wrap(faulty)
	return faulty, nil
}

// Fence declares all engines dead.
func (o sharingOpener) Fence(ctx context.Context) error {
	c, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "UPDATE tasq.processes SET state = 'dead'")
	return errors.Join(err, c.Close(ctx))
}

// Leave lets another process leave a command.
func (o sharingOpener) Leave(ctx context.Context, command json.RawMessage) error {
	return postgres.Leave(ctx, o.dsn, command)
}

func transactions(wrap func(sharedTx) store.Tx) func(*sharing) {
	return func(s *sharing) { s.tx = wrap }
}

// acknowledges says that what was stale has happened.
func acknowledges(s *sharing) {
	s.outcome = func(err error) error {
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return err
	}
}

var fleetFaults = []struct {
	name, rule string
	wrap       func(*sharing)
}{
	{"loads each tree once", "tail", func(s *sharing) {
		last := make(map[workitem.CaseID]*state.Tree)
		s.tx = func(tx sharedTx) store.Tx { return remembering{tx, last} }
	}},
	{"acknowledges what is stale", "expected", acknowledges},
	{"does not name what is stale", "expected", func(s *sharing) {
		s.outcome = func(err error) error {
			if errors.Is(err, store.ErrConflict) {
				return &store.StaleError{}
			}
			return err
		}
	}},
	{"expects nothing", "refused-is-checked", transactions(func(tx sharedTx) store.Tx { return expectsNothing{tx} })},
	{"acknowledges what is stale", "late", acknowledges},
	{"acknowledges what is stale", "keys-race", acknowledges},
	{"locks nothing", "lock", transactions(func(tx sharedTx) store.Tx { return unlocked{tx} })},
	{"does not say that a case is locked", "lock", func(s *sharing) {
		s.outcome = func(err error) error {
			if stale := (*store.StaleError)(nil); errors.As(err, &stale) {
				stale.Locked = false
			}
			return err
		}
	}},
	{"expects nothing", "removed", transactions(func(tx sharedTx) store.Tx { return expectsNothing{tx} })},
	{"acknowledges what is stale", "replied-once", acknowledges},
	{"gives a job out twice", "take", func(s *sharing) {
		var all []*state.Job
		s.take = func(jobs []*state.Job) []*state.Job {
			all = append(all, jobs...)
			return all
		}
	}},
	{"takes jobs by priority alone", "aging", func(s *sharing) { s.agelessly = true }},
	{"counts nothing that waits elsewhere", "waiting", func(s *sharing) { s.waiting = func(int) int { return 0 } }},
	{"counts more than it was asked for", "waiting", func(s *sharing) { s.waiting = func(n int) int { return 2 * n } }},
	{"names no job that it holds", "overdue", func(s *sharing) {
		s.overdue = func([]*state.Job) []*state.Job { return nil }
	}},
	{"names the latest first", "overdue", func(s *sharing) {
		s.overdue = func(jobs []*state.Job) []*state.Job {
			slices.Reverse(jobs)
			return jobs
		}
	}},
	{"ends as if it were killed", "leave", func(s *sharing) {
		s.close = func(s store.Store) error { return s.(store.Killer).Kill() }
	}},
	{"does not say that it was fenced", "fenced", func(s *sharing) {
		s.tick = func(n store.News, err error) (store.News, error) {
			if errors.Is(err, store.ErrFenced) {
				err = nil
			}
			return n, err
		}
	}},
	{"says each time that it was fenced", "fenced", func(s *sharing) {
		fenced := false
		s.tick = func(n store.News, err error) (store.News, error) {
			if fenced = fenced || errors.Is(err, store.ErrFenced); fenced {
				err = store.ErrFenced
			}
			return n, err
		}
	}},
	{"frees jobs without their state", "adopt", func(s *sharing) {
		s.take = func(jobs []*state.Job) []*state.Job {
			for _, j := range jobs {
				j.State = state.JobPending
			}
			return jobs
		}
	}},
	{"takes its time with one that is missed", "adopt", func(s *sharing) {
		s.tick = func(n store.News, err error) (store.News, error) {
			n.Next = time.Minute
			return n, err
		}
	}},
	{"shows entries before which others appear", "settled", func(s *sharing) {
		field, _ := reflect.TypeFor[store.JournalFilter]().FieldByName("Settled")
		s.view = ignoring("JournalFilter", field.Index...)
	}},
	{"says that no entry can appear", "settled", func(s *sharing) {
		s.tick = func(n store.News, err error) (store.News, error) {
			n.Settled = true
			return n, err
		}
	}},
	{"does not name what has changed", "news", func(s *sharing) {
		s.tick = func(n store.News, err error) (store.News, error) {
			n.Changed = nil
			return n, err
		}
	}},
	{"does not say that settings have changed", "news", func(s *sharing) {
		s.tick = func(n store.News, err error) (store.News, error) {
			n.Settings = store.SettingsDigest(nil)
			return n, err
		}
	}},
}

// prepared are databases whose tables are there.
var prepared = pgtest.Pool{Schema: postgres.DefaultSchema, Make: func(dsn string) error {
	s, err := postgres.Open(dsn).Open(context.Background(), store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}}

// Every fault of a store that several engines have open is reported by the rule that it breaks, and every rule reports one.
func TestEveryFaultOfAFleetIsReported(t *testing.T) {
	reports := make(map[string]bool)
	for _, f := range fleetFaults {
		reports[f.rule] = true
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			t.Parallel()
			dsn := prepared.Database(t) // before the recorded check, which a skipped test would end like one without a problem
			open := func(*testing.T) store.Opener { return sharingOpener{dsn, f.wrap} }
			require.NotEmpty(t, storetest.FleetProblem(t, open, f.rule))
		})
	}
	for _, rule := range storetest.FleetRules() {
		require.True(t, reports[rule], "no fault is reported by the rule %s", rule)
	}
}
