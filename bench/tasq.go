package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// order is the input of every case and item, about a hundred bytes of JSON; receipt is every output, about forty.
type order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Note     string  `json:"note"`
}

type receipt struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

var (
	anOrder   = order{Customer: "0197a3c4-0000-7000-8000-000000000000", Amount: 12.5, Note: "two boxes, by the back door"}
	aReceipt  = receipt{OK: true, Text: "forty bytes of a result"}
	quiet     = slog.New(slog.DiscardHandler)
	noTimeout = context.Background()
)

type taskRef = builder.TaskRef[order, receipt]

// chain is a workflow of so many tasks in a row, each with one item of the same work.
func chain(name string, tasks int, w builder.Work[order, receipt]) (*builder.Workflow[order], *taskRef) {
	b := builder.New[order](name)
	w.Input = builder.CaseInput(b)
	nodes := []builder.Node{b.Start()}
	var first *taskRef
	for i := range tasks {
		t := builder.Task(b, fmt.Sprintf("work%d", i+1), w)
		if first == nil {
			first = t
		}
		nodes = append(nodes, t)
	}
	b.Path(append(nodes, b.End())...)
	return b.MustBuild(), first
}

func run(_ context.Context, _ order) (receipt, error) { return aReceipt, nil }

// oneTask and threeTasks are what most figures are about; workers do their items.
var (
	oneTask, _    = chain("one", 1, builder.Work[order, receipt]{Run: run})
	threeTasks, _ = chain("three", 3, builder.Work[order, receipt]{Run: run})
)

// byHand is like oneTask, but the caller does the item.
var byHand, byHandTask = chain("by-hand", 1, builder.Work[order, receipt]{})

func open(o store.Opener, workers int, workflows ...engine.Workflow) (*engine.Engine, error) {
	return engine.Config{Workers: workers, Logger: quiet}.Open(noTimeout, o, workflows...)
}

func file(dir string, opts ...sqlite.Option) store.Opener {
	return sqlite.File(filepath.Join(dir, "tasq.db"), opts...)
}

// cases is the closed loop: each caller starts a case and waits until it has completed, which is durable by then.
func cases(r job, callers int, w *builder.Workflow[order], opts ...sqlite.Option) (metrics, error) {
	e, err := open(r.store(opts...), 64, w)
	if err != nil {
		return nil, err
	}
	before := used()
	m, err := load(callers, r.span, func(int) error {
		id, err := w.Start(noTimeout, e, anOrder)
		if err != nil {
			return err
		}
		c, err := e.Wait(noTimeout, id)
		if err == nil && c.State != state.CaseCompleted {
			err = fmt.Errorf("case %s is %s", id, c.State)
		}
		return err
	})
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), nil
}

// toRunning is one caller, who starts a case and waits until its item runs: p50 is from the call of Start to the
// first line of Run. The case ends before the next one starts.
func toRunning(r job) (metrics, error) {
	running := make(chan time.Time, 1)
	w, _ := chain("running", 1, builder.Work[order, receipt]{Run: func(context.Context, order) (receipt, error) {
		running <- time.Now()
		return aReceipt, nil
	}})
	e, err := open(file(r.dir), 64, w)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	_, err = load(1, r.span, func(int) error {
		at := time.Now()
		id, err := w.Start(noTimeout, e, anOrder)
		if err != nil {
			return err
		}
		took = append(took, (<-running).Sub(at))
		_, err = e.Wait(noTimeout, id)
		return err
	})
	return waits(took), errors.Join(err, e.Close())
}

func waits(took []time.Duration) metrics {
	slices.Sort(took)
	return metrics{"p50": ms(percentile(took, 50)), "p99": ms(percentile(took, 99))}
}

// hands is the closed loop where the caller does the item: three commands, each acknowledged when it is durable.
func hands(r job, callers int) (metrics, error) {
	e, err := open(file(r.dir), 64, byHand)
	if err != nil {
		return nil, err
	}
	before := used()
	m, err := load(callers, r.span, func(int) error {
		var item workitem.ID
		err := e.Update(noTimeout, func(tx *engine.Tx) error {
			id, err := byHand.Start(noTimeout, tx, anOrder)
			if err != nil {
				return err
			}
			c, err := tx.Case(noTimeout, id)
			if err == nil {
				item = c.Items.Slice()[0].ID
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := byHandTask.Start(noTimeout, e, item); err != nil {
			return err
		}
		return byHandTask.Complete(noTimeout, e, item, aReceipt)
	})
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), nil
}

// startMany starts n cases, five hundred in a transaction.
func startMany(e *engine.Engine, w *builder.Workflow[order], n int) error {
	for n > 0 {
		batch := min(n, 500)
		n -= batch
		err := e.Update(noTimeout, func(tx *engine.Tx) error {
			for range batch {
				if _, err := w.Start(noTimeout, tx, anOrder); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// counted opens a store whose calls are counted, and hooked into.
type counted struct {
	store.Opener
	updates, views, idles, looks atomic.Int64
	noIdle                       bool
	afterUpdate                  func(commands int)
}

// Open implements store.Opener.
func (c *counted) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := c.Opener.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &countedStore{Store: s, c: c}, nil
}

type countedStore struct {
	store.Store
	c *counted
}

func (s *countedStore) Update(ctx context.Context, f func(store.Tx) error) error {
	s.c.updates.Add(1)
	commands := 0
	err := s.Store.Update(ctx, func(tx store.Tx) error { return f(&countedTx{tx, &commands}) })
	if err == nil && s.c.afterUpdate != nil {
		s.c.afterUpdate(commands)
	}
	return err
}

func (s *countedStore) View(ctx context.Context, f func(store.Reader) error) error {
	s.c.views.Add(1)
	return s.Store.View(ctx, f)
}

func (s *countedStore) Idle(ctx context.Context) error {
	s.c.idles.Add(1)
	if s.c.noIdle {
		return nil
	}
	return s.Store.Idle(ctx)
}

// Reachable implements store.Watcher.
func (s *countedStore) Reachable() bool {
	w, ok := s.Store.(store.Watcher)
	return ok && w.Reachable()
}

// Changed implements store.Watcher.
func (s *countedStore) Changed(ctx context.Context) (bool, error) {
	w, ok := s.Store.(store.Watcher)
	if !ok {
		return false, nil
	}
	s.c.looks.Add(1)
	return w.Changed(ctx)
}

type countedTx struct {
	store.Tx
	commands *int
}

func (t *countedTx) Append(ctx context.Context, e *store.Entry, tree *state.Tree) error {
	*t.commands++
	return t.Tx.Append(ctx, e, tree)
}
