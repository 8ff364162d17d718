package builder_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// memory is a runtime of one case in memory: the kernel without an engine around it. Its clock stands still until a
// test moves it, and work is done when a test says so.
type memory struct {
	*workitem.Generator
	defs map[string]*workflow.Definition
	tree *store.Tree
	now  time.Time
	last workflow.Command
	gate kernel.Gate
}

func newMemory(workflows ...builder.Definition) *memory {
	m := &memory{
		Generator: workitem.NewGenerator(rand.Reader), defs: map[string]*workflow.Definition{}, tree: store.NewTree(),
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	for _, w := range workflows {
		m.defs[w.Untyped().Fingerprint] = w.Untyped()
	}
	return m
}

func (m *memory) Definition(fingerprint string) *workflow.Definition { return m.defs[fingerprint] }
func (m *memory) Named(string) *workflow.Definition                  { return nil }
func (m *memory) Recalled(workitem.CaseID, workitem.JobID) ([]*workitem.Step, bool) {
	return nil, false
}
func (m *memory) Steps([16]byte) ([]*workitem.Step, error) { return nil, nil }
func (m *memory) NewToken(workitem.CaseID) (string, error) { return "", nil }
func (m *memory) DB() domain.DB                            { return nil }
func (m *memory) Gate() *kernel.Gate                       { return &m.gate }
func (m *memory) Call(ctx context.Context, f func(context.Context) error) error {
	return f(ctx)
}

func (m *memory) command(ctx context.Context, by string, f func(*kernel.Machine) error) error {
	m.tree.Begin()
	if err := f(kernel.New(ctx, m, m.tree, m.now, by)); err != nil {
		m.tree.Rollback()
		return err
	}
	m.tree.End(1)
	return nil
}

// Do implements workflow.Doer for starts and actions.
func (m *memory) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	m.last = c
	if err := c.Check(); err != nil {
		return workflow.Result{}, err
	}
	if c.Kind == workflow.KindAct {
		payload := c.Payload
		if c.Reason != nil {
			payload, _ = json.Marshal(c.Reason)
		}
		return workflow.Result{Item: c.Item}, m.command(ctx, c.Actor, func(k *kernel.Machine) error {
			return k.Act(c.Item, c.Action, payload, c.Route)
		})
	}
	id := m.NewCaseID(m.now)
	m.tree.Root = id
	return workflow.Result{Case: id}, m.command(ctx, c.Actor, func(k *kernel.Machine) error {
		return k.Start(&store.Case{ID: id}, m.defs[c.Fingerprint], c.Payload, time.Time{}, nil)
	})
}

// work does every job that is due, as a worker would, until none is.
func (m *memory) work(ctx context.Context) error {
	for {
		job := m.due()
		if job == nil {
			return nil
		}
		if job.Kind == store.JobTimer || job.Kind == store.JobWake {
			if err := m.command(ctx, "", func(k *kernel.Machine) error { return k.Fire(job.ID) }); err != nil {
				return err
			}
			continue
		}
		if err := m.do(ctx, job); err != nil {
			return err
		}
	}
}

func (m *memory) do(ctx context.Context, job *store.Job) error {
	var w *activities.Work
	err := m.command(ctx, "worker", func(k *kernel.Machine) (err error) {
		w, err = k.Claim(job.ID, "worker", m.now.Add(time.Minute))
		return err
	})
	if err != nil {
		return err
	}
	c, _ := m.tree.Job(job.ID)
	d := m.defs[c.Fingerprint]
	var out json.RawMessage
	if job.Kind == store.JobCall {
		w.Name = job.Name
		err = d.Calls[job.Name].Run(ctx, w)
	} else {
		t, _ := d.Net.TaskByName(job.Task)
		out, err = d.Tasks[t].Run(ctx, w)
	}
	return m.command(ctx, "worker", func(k *kernel.Machine) error {
		return k.Settle(job.ID, w.Fence, out, workitem.FailureOf(err))
	})
}

func (m *memory) due() *store.Job {
	var next *store.Job
	m.tree.Each(func(c *store.Case) {
		for _, j := range c.Jobs.Slice() {
			if j.State == store.JobPending && !j.Due.After(m.now) && (next == nil || j.Due.Before(next.Due)) {
				next = j
			}
		}
	})
	return next
}

// item finds the one live item of a task.
func (m *memory) item(task string) *workitem.Item {
	var found *workitem.Item
	m.tree.Each(func(c *store.Case) {
		for _, it := range c.Items.Slice() {
			if it.Task == task && it.State.Live() {
				found = it
			}
		}
	})
	return found
}

// doing starts and completes the live item of a task.
func doing[In, Out any](m *memory, t *builder.TaskRef[In, Out], out Out, opts ...workflow.Option) error {
	ctx := context.Background()
	it := m.item(t.Name())
	if it == nil {
		return fmt.Errorf("task %s has no live item", t.Name())
	}
	if it.State == workitem.Initialized {
		if err := t.Start(ctx, m, it.ID); err != nil {
			return err
		}
	}
	return t.Complete(ctx, m, it.ID, out, opts...)
}

// show lists the cases, and the live items in them.
func (m *memory) show() string {
	var b strings.Builder
	m.tree.Each(func(c *store.Case) {
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
	return b.String()
}
