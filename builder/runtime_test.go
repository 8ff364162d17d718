package builder_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// process is an engine whose jobs run when a test says so, by work, and whose clock moves when a test moves it. Until then
// what is to be done can be looked at.
type process struct {
	dir   string // of the database; made when an engine is opened for the first time
	defs  []engine.Workflow
	clock *virtual.Clock
	last  workflow.Command

	e       *engine.Engine // nil while none is open
	workers int
}

func newProcess(workflows ...builder.Definition) *process {
	r := &process{clock: virtual.NewClock()}
	for _, w := range workflows {
		r.defs = append(r.defs, w)
	}
	return r
}

func (r *process) close() {
	_ = r.stop()
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

func (r *process) makeFolder() (err error) {
	if r.dir == "" {
		r.dir, err = os.MkdirTemp("", "builder")
	}
	return err
}

// with gives f the engine, with this number of workers; -1 is none. It is opened again where that changes.
func (r *process) with(ctx context.Context, workers int, f func(*engine.Engine) error) error {
	if r.e == nil || r.workers != workers {
		if err := r.stop(); err != nil {
			return err
		}
		if err := r.makeFolder(); err != nil {
			return err
		}
		c := engine.Config{Clock: r.clock, Workers: workers, Logger: slog.New(slog.DiscardHandler)}
		e, err := c.Open(ctx, sqlite.File(filepath.Join(r.dir, "test.db")), r.defs...)
		if err != nil {
			return err
		}
		r.e, r.workers = e, workers
	}
	return f(r.e)
}

func (r *process) stop() error {
	e := r.e
	if r.e = nil; e == nil {
		return nil
	}
	return e.Close()
}

// Do implements workflow.Doer.
func (r *process) Do(ctx context.Context, c workflow.Command) (result workflow.Result, err error) {
	r.last = c
	err = r.with(ctx, -1, func(e *engine.Engine) error {
		result, err = e.Do(ctx, c)
		return err
	})
	return result, err
}

// work does every job that is due, until none is.
func (r *process) work(ctx context.Context) error {
	return r.with(ctx, 1, func(e *engine.Engine) error { return e.Drain(ctx) })
}

func (r *process) advance(d time.Duration) { r.clock.Set(r.clock.Now().Add(d)) }

// trees lists the root cases with all that is theirs.
func (r *process) trees() (all []*state.Tree) {
	ctx := context.Background()
	err := r.with(ctx, -1, func(e *engine.Engine) error {
		for c, err := range store.AllCases(ctx, e, store.CaseFilter{RootOnly: true}) {
			if err != nil {
				return err
			}
			tree, err := store.TreeOf(ctx, e, c.ID)
			if err != nil {
				return err
			}
			all = append(all, tree)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return all
}

// root is the root case that was started last.
func (r *process) root() *state.Case {
	trees := r.trees()
	tree := trees[len(trees)-1]
	return tree.Case(tree.Root)
}

// item finds the one live item of a task.
func (r *process) item(task string) *workitem.Item {
	var found *workitem.Item
	for _, tree := range r.trees() {
		tree.Each(func(c *state.Case) {
			for _, it := range c.Items.Slice() {
				if it.Task == task && it.State.Live() {
					found = it
				}
			}
		})
	}
	return found
}

// doing starts and completes the live item of a task.
func doing[In, Out any](r *process, t *builder.TaskRef[In, Out], out Out, opts ...workflow.Option) error {
	ctx := context.Background()
	it := r.item(t.Name())
	if it == nil {
		return fmt.Errorf("task %s has no live item", t.Name())
	}
	if it.State == workitem.Initialized {
		if err := t.Start(ctx, r, it.ID); err != nil {
			return err
		}
	}
	return t.Complete(ctx, r, it.ID, out, opts...)
}

// show lists the cases, and the live items in them.
func (r *process) show() string {
	var b strings.Builder
	for _, tree := range r.trees() {
		tree.Each(func(c *state.Case) {
			fmt.Fprintf(&b, "%s %s", c.Workflow, c.State)
			for _, it := range c.Items.Slice() {
				if it.State.Live() {
					fmt.Fprintf(&b, ", %s %s %s", it.Label(), it.State, it.Input)
				}
			}
			if c.Output != nil {
				fmt.Fprintf(&b, ", gave %s", c.Output)
			}
			b.WriteString("\n")
		})
	}
	return b.String()
}
