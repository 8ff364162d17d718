package storetest_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

// fault makes a store that breaks a rule out of one that keeps them all.
type fault struct {
	name string
	rule string // that reports it
	wrap func(*faulty) store.Store
	file bool // it takes a database in a file
}

// faulty is a store of which faults replace some methods. What they do not replace is passed on.
type faulty struct {
	store.Store
	o      store.Options
	opener *faultyOpener
	tx     func(store.Tx) store.Tx         // wraps the transaction of each Update, if it is not nil
	reader func(store.Reader) store.Reader // wraps the reader of each View, if it is not nil
}

// faultyOpener opens a faulty store. It keeps what a fault has to know after the store was opened again.
type faultyOpener struct {
	store.Opener
	path string // of the file; "" in memory
	wrap func(*faulty) store.Store
	keys map[string]*store.Entry // with an idempotency key, by the key
}

// Open implements store.Opener.
func (f *faultyOpener) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := f.Opener.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return f.wrap(&faulty{Store: s, o: o, opener: f}), nil
}

// faultyFile is a faultyOpener that other processes can leave commands with.
type faultyFile struct{ *faultyOpener }

// Post implements storetest.Poster.
func (f faultyFile) Post(ctx context.Context, command json.RawMessage) (store.Answer, error) {
	return f.Opener.(storetest.Poster).Post(ctx, command)
}

// Update implements store.Store.
func (s *faulty) Update(ctx context.Context, f func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error {
		if s.tx != nil {
			tx = s.tx(tx)
		}
		return f(tx)
	})
}

// View implements store.Store.
func (s *faulty) View(ctx context.Context, f func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error {
		if s.reader != nil {
			r = s.reader(r)
		}
		return f(r)
	})
}

// Kill implements store.Killer.
func (s *faulty) Kill() error { return s.Store.(store.Killer).Kill() }

// Reachable implements store.Watcher.
func (s *faulty) Reachable() bool { return s.Store.(store.Watcher).Reachable() }

// Changed implements store.Watcher.
func (s *faulty) Changed(ctx context.Context) (bool, error) {
	return s.Store.(store.Watcher).Changed(ctx)
}

// inTx and inView make faults of a transaction and of a reader.
func inTx(wrap func(store.Tx) store.Tx) func(*faulty) store.Store {
	return func(s *faulty) store.Store { s.tx = wrap; return s }
}

func inView(wrap func(store.Reader) store.Reader) func(*faulty) store.Store {
	return func(s *faulty) store.Store { s.reader = wrap; return s }
}

// open makes an opener of the faulty store, with a database of its own.
func (f fault) open(t *testing.T) store.Opener {
	o := &faultyOpener{Opener: sqlite.Memory(), wrap: f.wrap, keys: make(map[string]*store.Entry)}
	if !f.file {
		return o
	}
	o.path = filepath.Join(t.TempDir(), "cases.db")
	o.Opener = sqlite.File(o.path)
	return faultyFile{o}
}

func TestAStoreWithoutFaultHasNoProblems(t *testing.T) {
	t.Parallel()
	sound := fault{wrap: func(s *faulty) store.Store { return s }, file: true}
	quick := slices.DeleteFunc(storetest.Rules(), func(rule string) bool { // the store's own tests check all of them
		return slices.Contains([]string{"load", "concurrent", "payloads", "durable"}, rule)
	})
	require.Empty(t, storetest.Problems(t, sound.open, quick...))
}

// Every fault is reported by the rule that it breaks.
func TestEveryFaultIsReported(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(faultsOfWriting, faultsOfReading, filterFaults()) {
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			require.Contains(t, storetest.Problems(t, f.open, f.rule), f.rule, f.name)
		})
	}
}

// Every rule reports a fault.
func TestEveryRuleReportsAFault(t *testing.T) {
	reports := make(map[string]bool)
	for _, f := range slices.Concat(faultsOfWriting, faultsOfReading, filterFaults()) {
		reports[f.rule] = true
	}
	for _, rule := range storetest.Rules() {
		require.True(t, reports[rule], "no fault is reported by the rule %s", rule)
	}
}
