package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

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

func (tx unlocked) LockCase(ctx context.Context, root workitem.CaseID) (int64, error) {
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
	tx      func(sharedTx) store.Tx
	outcome func(error) error
}

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
	faulty := &sharing{Store: s}
	o.wrap(faulty)
	return faulty, nil
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
	{"expects nothing", "removed", transactions(func(tx sharedTx) store.Tx { return expectsNothing{tx} })},
	{"acknowledges what is stale", "replied-once", acknowledges},
}

// Every fault of a store that several engines have open is reported by the rule that it breaks, and every rule reports one.
func TestEveryFaultOfAFleetIsReported(t *testing.T) {
	reports := make(map[string]bool)
	for _, f := range fleetFaults {
		reports[f.rule] = true
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			t.Parallel()
			open := func(t *testing.T) store.Opener { return sharingOpener{pgtest.Database(t), f.wrap} }
			require.NotEmpty(t, storetest.FleetProblem(t, open, f.rule))
		})
	}
	for _, rule := range storetest.FleetRules() {
		require.True(t, reports[rule], "no fault is reported by the rule %s", rule)
	}
}
