package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// RunInfo implements [builder.Runs]; the handles of runs call it.
func (e *Engine) RunInfo(ctx context.Context, d *workflow.Definition, id workitem.CaseID) (builder.RunInfo, error) {
	type seen struct {
		info builder.RunInfo
		item workitem.ID
	}
	now, err := submitFor(ctx, e, &request{reads: true}, func(tx *Tx) (s seen, err error) {
		if s.info, err = tx.RunInfo(tx.ctx, d, id); err == nil {
			s.item = tx.abandoned(id)
		}
		return s, err
	})
	if err == nil && !now.item.IsZero() {
		err = e.tellStuck(ctx, &now.info, now.item)
	}
	return now.info, err
}

// RunInfo implements [builder.Runs]. In a transaction a run that is stuck is told as waiting: it takes a query to find
// out.
func (tx *Tx) RunInfo(_ context.Context, d *workflow.Definition, id workitem.CaseID) (builder.RunInfo, error) {
	leave, err := tx.enter()
	if err != nil {
		return builder.RunInfo{}, err
	}
	defer leave()
	u, err := tx.openRun(d, id)
	if err != nil {
		return builder.RunInfo{}, err
	}
	return runInfo(u.tree.Case(id), tx.now), nil
}

// WaitRun implements [builder.Waiter]; the handles of runs call it.
func (e *Engine) WaitRun(ctx context.Context, d *workflow.Definition, id workitem.CaseID) (builder.RunInfo, error) {
	incident, leave := e.watch.joinIncidents(id)
	defer leave()
	first := func(tx *Tx) workitem.ID { return tx.abandoned(id) }
	for look := first; ; {
		c, item, err := e.wait(ctx, id, incident, look)
		if err != nil {
			return builder.RunInfo{}, err
		}
		if err := isRunOf(d, c, id); err != nil {
			return builder.RunInfo{}, err
		}
		info := runInfo(c, e.now())
		if c.State.Final() {
			return info, nil
		}
		if item.IsZero() { // an incident
			look = first
			continue
		}
		if err := e.tellStuck(ctx, &info, item); err != nil || info.State == builder.RunStuck {
			return info, err
		}
		look = nil // a person does the work; the next incident is told of
	}
}

// openRun finds a root case of a workflow.
func (tx *Tx) openRun(d *workflow.Definition, id workitem.CaseID) (*unit, error) {
	u, err := tx.openAny(id)
	if err != nil {
		return nil, err
	}
	return u, isRunOf(d, u.tree.Case(id), id)
}

// isRunOf refuses a case of another workflow. One of another version is fine.
func isRunOf(d *workflow.Definition, c *store.Case, id workitem.CaseID) error {
	switch {
	case c == nil:
		return fmt.Errorf("case %s: %w", id, ErrNotFound)
	case !c.Parent.IsZero():
		return fmt.Errorf("case %s is a child case of %s, and no run of its own: %w", id, c.Root, ErrNotFound)
	case c.Workflow != d.Name:
		return fmt.Errorf("case %s is a run of %s, and not of %s: %w", id, c.Workflow, d.Name, ErrNotFound)
	}
	return nil
}

// runInfo says where a root case stands.
func runInfo(c *store.Case, now time.Time) builder.RunInfo {
	info := builder.RunInfo{Case: kernel.Info(c), Failure: c.Failure, Created: c.Created, Ended: c.Ended}
	var last *workitem.Item
	for it := range c.Items.All() {
		last = it
	}
	action := oneJob(c)
	if last != nil && action {
		info.Attempt = attemptOf(last)
	}
	if c.State.Final() {
		info.State = builder.RunState(c.State.String())
		return info
	}
	info.State = builder.RunRunning
	if last != nil && last.Attempt > 1 {
		if before := c.Item(last.Predecessor); before != nil {
			info.Failure = before.Failure
		}
	}
	job := soonest(c)
	switch {
	case job == nil:
		info.State = builder.RunWaiting
	case job.State == store.JobWaiting:
		info.State, info.Next = builder.RunWaiting, job.Due
	case job.State == store.JobPending && !job.Due.After(now):
		info.State = builder.RunPending
	case job.State == store.JobPending && (job.Kind == store.JobStart || action && info.Attempt == 0):
		info.State, info.Next = builder.RunScheduled, job.Due
	case job.State == store.JobPending:
		info.State, info.Next = builder.RunWaiting, job.Due
	}
	return info
}

// attemptOf is the attempt that an item stands for: the one that is to come counts once it has started.
func attemptOf(it *workitem.Item) int {
	if it.State == workitem.Initialized || it.State == workitem.Canceled && it.Started.IsZero() {
		return it.Attempt - 1
	}
	return it.Attempt
}

// soonest chooses the job that says most of a case that goes on: a running one, or else the one that is due first.
func soonest(c *store.Case) *store.Job {
	rank := func(j *store.Job) int {
		if j.State == store.JobRunning {
			return 0
		}
		return 1
	}
	var jobs []*store.Job
	for j := range c.Jobs.All() {
		if j.Kind == store.JobRun || j.Kind == store.JobStart || j.Kind == store.JobWake {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	return slices.MinFunc(jobs, func(a, b *store.Job) int {
		return cmp.Or(rank(a)-rank(b), a.Due.Compare(b.Due))
	})
}

// CancelRun implements [builder.Runs]; the handles of runs call it.
func (e *Engine) CancelRun(
	ctx context.Context, d *workflow.Definition, id workitem.CaseID, reason *workitem.Failure, call builder.Call,
) (bool, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (bool, error) { return tx.CancelRun(tx.ctx, d, id, reason, call) })
}

// CancelRun implements [builder.Runs].
func (tx *Tx) CancelRun(
	_ context.Context, d *workflow.Definition, id workitem.CaseID, reason *workitem.Failure, call builder.Call,
) (done bool, err error) {
	err = tx.command(func() error {
		if err := tx.e.reasonFits(reason); err != nil {
			return err
		}
		command := fmt.Sprintf("case cancel %s", id)
		var err error
		if _, done, err = tx.answered(call.Key, command); done || err != nil {
			return err
		}
		u, err := tx.openRun(d, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil || u.tree.Ended() {
			return err
		}
		tx.mark(u, command, call)
		done = true
		return tx.do(u, call, func(m *kernel.Machine) error { return m.Cancel(id, reason) })
	})
	return done && err == nil, err
}

// RemoveRun implements [builder.Runs]; the handles of runs call it.
func (e *Engine) RemoveRun(ctx context.Context, d *workflow.Definition, id workitem.CaseID, call builder.Call) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error { return tx.RemoveRun(tx.ctx, d, id, call) }})
}

// RemoveRun implements [builder.Runs].
func (tx *Tx) RemoveRun(_ context.Context, d *workflow.Definition, id workitem.CaseID, call builder.Call) error {
	return tx.command(func() error {
		u, err := tx.openRun(d, id)
		if err != nil {
			return err
		}
		return tx.remove(u, call)
	})
}

// Remove removes a root case that has ended, with its descendants and everything that they had: items, jobs, steps,
// events, their part of the journal, and the idempotency keys of their commands. The error wraps [ErrUnfinished] if it
// has not ended, or a job that it left behind is still to be done.
func (e *Engine) Remove(ctx context.Context, id workitem.CaseID, opts ...builder.CallOption) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error { return tx.Remove(tx.ctx, id, opts...) }})
}

// Remove is like [Engine.Remove], as part of the transaction.
func (tx *Tx) Remove(_ context.Context, id workitem.CaseID, opts ...builder.CallOption) error {
	return tx.command(func() error {
		u, err := tx.openAny(id)
		if err != nil {
			return err
		}
		if u.tree.Root != id {
			return fmt.Errorf("case %s cannot be removed: it is a child case, and goes with case %s: %w", id, u.tree.Root, ErrNotFound)
		}
		return tx.remove(u, builder.CallWith(opts...))
	})
}

func (tx *Tx) remove(u *unit, call builder.Call) error {
	call.Key = "" // which would go with the case
	tx.mark(u, "case remove "+u.tree.Root.String(), call)
	return tx.do(u, call, (*kernel.Machine).Remove)
}

// RestartRun implements [builder.Runs]; the handles of runs call it.
func (e *Engine) RestartRun(
	ctx context.Context, d *workflow.Definition, id workitem.CaseID, from string, call builder.Call,
) (workitem.CaseID, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (workitem.CaseID, error) {
		return tx.RestartRun(tx.ctx, d, id, from, call)
	})
}

// RestartRun implements [builder.Runs]. The fresh run is of the definition that is given, which may be a newer version.
func (tx *Tx) RestartRun(
	_ context.Context, d *workflow.Definition, id workitem.CaseID, from string, call builder.Call,
) (fresh workitem.CaseID, err error) {
	err = tx.command(func() error {
		if err := call.Plain(); err != nil {
			return err
		}
		u, err := tx.openRun(d, id)
		if err != nil {
			return err
		}
		old := u.tree.Case(id)
		if !old.State.Final() {
			return fmt.Errorf("case %s %w: it is %s; cancel it first", id, ErrUnfinished, old.State)
		}
		steps, err := tx.stepsOf(old, from)
		if err != nil {
			return err
		}
		options, err := optionsAgain(old)
		if err != nil {
			return err
		}
		c := &store.Case{Options: options, Priority: old.Priority, Predecessor: old.ID}
		fresh, err = tx.begin(c, d, old.Input, "restart "+id.String(), call, steps)
		return err
	})
	return fresh, err
}

// optionsAgain are the options of a fresh run: those of the old one, and which work it goes on with.
func optionsAgain(old *store.Case) (json.RawMessage, error) {
	o, err := workflow.OptionsOf(kernel.Info(old))
	if err != nil || !oneJob(old) || !o.Work.IsZero() {
		return old.Options, err
	}
	o.Work = kernel.FirstItem(old)
	return o.Encode()
}

// oneJob reports whether a case is that of an action: only that has one job to speak of.
func oneJob(c *store.Case) bool { return c.Net.NumTasks() == 1 && c.Net.Task(0).Kind == net.Atomic }

// stepsOf lists what a fresh run takes over: the steps that the last job of the old one had done, up to one of them.
func (tx *Tx) stepsOf(old *store.Case, from string) ([]*workitem.Step, error) {
	var recorded []*workitem.Step
	if oneJob(old) {
		var last *workitem.Item
		for it := range old.Items.All() {
			last = it
		}
		if last != nil {
			var err error
			if recorded, err = tx.s.Steps(tx.ctx, last.ID); err != nil {
				return nil, err
			}
		}
	}
	if from == "" {
		return kernel.Finished(recorded), nil
	}
	var cut *workitem.Step
	var names []string
	for _, s := range recorded {
		if s.Name == from {
			cut = s
		}
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	if cut == nil {
		return nil, fmt.Errorf("step %q of case %s (%s): %w; its steps are %q", from, old.ID, old.Workflow, ErrNotFound, names)
	}
	var kept []*workitem.Step
	for _, s := range recorded {
		if s == cut {
			break
		}
		if s.Job == cut.Job {
			kept = append(kept, s)
		}
	}
	return kernel.Finished(kept), nil
}
