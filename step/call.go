package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// call is one call of a function of this package, by a branch.
type call struct {
	run    *Run
	branch *branch
	ctx    context.Context
	ask    *workitem.Step // what the code asks for; never changed
	opts   options
	place  uintptr
	entry  *entry         // nil for calls that are no step
	before *workitem.Step // what the next attempt follows
	lines  []line         // to be logged
	lease  Lease          // of its limits, while it waits for them
}

// title is what a call is called in errors: a step by its name, or a word.
type title struct{ name, word string }

// String returns `step "charge"`, or "Branch.Wait".
func (t title) String() string {
	if t.word != "" {
		return t.word
	}
	return fmt.Sprintf("step %q", t.name)
}

// begin finds out who calls, and what is known of the step. Every begun call is ended.
func begin(ctx context.Context, at uintptr, ask workitem.Step, opts []Option, takes []string) (*call, error) {
	s, err := currentRun(ctx, title{name: ask.Name})
	if err != nil {
		return nil, err
	}
	o, err := gather(opts, takes)
	if err != nil {
		return nil, s.run.misuse("step %q, at %s: %v", ask.Name, place(at), err)
	}
	if o.isNamed {
		ask.Name = o.named
	}
	if o.hasInput {
		ask.Input = o.inputJSON
	}
	if err := checkName(ask.Name); err != nil {
		return nil, s.run.misuse("the step at %s: %v", place(at), err)
	}
	r := s.run
	ask.Job, ask.Case, ask.Run = r.info.Job, r.info.Case, r.info.Attempt
	c := &call{run: r, branch: s.branch, ctx: ctx, ask: &ask, opts: o, place: at}
	r.load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := c.claim(title{name: ask.Name}); err != nil {
		return nil, err
	}
	if err = r.durable(); err == nil {
		c.entry, err = r.meet(c)
	}
	if err != nil {
		c.branch.call = title{}
		return nil, err
	}
	return c, nil
}

// perform is a call of a step from its beginning to its value. What the step is about is what run does.
func perform[T any](
	ctx context.Context, at uintptr, ask workitem.Step, opts []Option, takes []string,
	run func(*call) (*workitem.Step, error),
) (T, error) {
	var none T
	c, err := begin(ctx, at, ask, opts, takes)
	if err != nil {
		return none, err
	}
	defer c.end()
	if err := checkCall[T](c); err != nil {
		return none, err
	}
	s, err := run(c)
	if err != nil {
		return none, c.wrap(err)
	}
	return result[T](c.run, s)
}

// checkCall refuses a call whose result could not be remembered, or read, whatever it is: before anything is done for
// it.
func checkCall[T any](c *call) error {
	if err := domain.CheckType[T](); err != nil {
		return c.run.misuse("step %q, at %s: its result cannot be remembered as what is asked for: %v; ask for another type",
			c.ask.Name, place(c.place), err)
	}
	return nil
}

// enter begins a call that is no step of its own, but looks at branches of the same run.
func enter(ctx context.Context, what string, others ...AnyBranch) (*call, error) {
	s, err := currentRun(ctx, title{word: what})
	if err != nil {
		return nil, err
	}
	if _, err := branchesOf(s, title{word: what}, others); err != nil {
		return nil, err
	}
	c := &call{run: s.run, branch: s.branch, ctx: ctx}
	c.run.load()
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c, c.claim(title{word: what})
}

// currentRun finds the run in a context, and refuses that of a step's function.
func currentRun(ctx context.Context, what title) (*scope, error) {
	s := scopeOf(ctx)
	switch {
	case s == nil:
		return nil, outside(what)
	case s.inside != "":
		return nil, s.run.misuse("%v is called in the function of step %q, which is one step; "+
			"call it beside that, with the context of the job's function", what, s.inside)
	}
	return s, nil
}

// outside is the error of a call whose context belongs to no job.
func outside(what title) error {
	return fmt.Errorf("%v: %w: use the context that the job's function was given; the function of a batch has no steps", what, ErrNoJob)
}

// branchesOf refuses branches that can't be waited for.
func branchesOf(s *scope, what title, others []AnyBranch) ([]*branch, error) {
	bs := make([]*branch, 0, len(others))
	for i, o := range others {
		var b *branch
		if o != nil {
			b = o.branch()
		}
		if b == nil {
			return nil, s.run.misuse("%v: branch %d is nil; start it with step.Go", what, i)
		}
		if b.run == nil { // started outside a job
			return nil, b.err
		}
		if b.run != s.run {
			return nil, s.run.misuse("%v: branch %d belongs to another job", what, i)
		}
		bs = append(bs, b)
	}
	return bs, nil
}

// claim notes that the branch is in a call. The lock is held.
func (c *call) claim(what title) error {
	b := c.branch
	if c.run.endedBy != nil {
		return c.run.endedBy
	}
	if b.call != (title{}) {
		return c.run.keepMistake(underWay(what, b))
	}
	b.call = what
	return nil
}

func underWay(what title, b *branch) error {
	return mistakef(ErrUsage, "%v is called while %v of the same branch is under way; "+
		"start what runs beside it with step.Go, and use the context that the branch's function is given", what, b.call)
}

// end ends the call, also after a panic.
func (c *call) end() {
	c.leave()
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.branch.call = title{}
	if c.branch.status == working {
		c.run.move(c.branch, running)
	}
}

// wrap names the step in an error that ended the call before the step was done.
func (c *call) wrap(err error) error {
	if _, ok := errors.AsType[*mistake](err); ok {
		return err
	}
	return fmt.Errorf("step %q: %w", c.ask.Name, err)
}

// final returns the step if it has ended. The lock is held.
func (c *call) final() *workitem.Step {
	s := c.entry.step
	if s == nil || !s.State.Final() {
		return nil
	}
	c.branch.ended(s)
	return s
}

// fresh prepares something that was not done before. The lock is held, but not in between.
func (c *call) fresh() error {
	r := c.run
	if r.choices > 0 {
		if err := r.waitGated(c.ctx, c.branch, r.chosen); err != nil {
			return err
		}
	}
	if err := r.halted(c.ctx, c.branch); err != nil {
		return err
	}
	if c.branch.closed || c.entry.drop || r.out[c.ask.Name] != nil {
		return cmp.Or(c.branch.notChosen, r.out[c.ask.Name]).of(c.branch)
	}
	c.takeLines()
	return nil
}

// waitSettled prepares a new choice among branches: it waits until the run has settled down. Of several that choose,
// the innermost does so first: its branch may be on its way back to an outer one. The lock is held, but not in between.
func (c *call) waitSettled() error {
	r, t, depth := c.run, &c.run.turns, c.branch.depth()
	t.deciding = append(t.deciding, depth)
	err := r.waitGated(c.ctx, c.branch, func() bool { return r.settledDown() && slices.Max(t.deciding) == depth })
	i := slices.Index(t.deciding, depth)
	t.deciding = slices.Delete(t.deciding, i, i+1)
	r.admit()
	if err == nil && c.branch.closed {
		return c.branch.notChosen.of(c.branch)
	}
	return err
}

// waitEnded waits until the step has ended, or its next attempt is due. The lock is held.
func (c *call) waitEnded(now time.Time) error {
	r, e := c.run, c.entry
	for !e.ended(now) {
		if e.drop {
			return r.out[c.ask.Name].of(c.branch)
		}
		e.waiter = c.branch
		r.turns.waits++
		err := r.park(c.ctx, c.branch)
		r.turns.waits--
		e.waiter = nil
		if err != nil {
			return err
		}
		r.echoes(c.branch, false)
		now = time.Time{}
	}
	return nil
}

// open records that the step waits, and returns once it has ended. A branch that is the last to have a turn leaves
// the record to the suspension of the job, which saves a commit.
func (c *call) open(s *workitem.Step) error {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.halted(c.ctx, c.branch); err != nil {
		return err
	}
	if r.alone() {
		c.entry.step = s
		r.turns.opening = append(r.turns.opening, s)
		return c.waitEnded(time.Time{})
	}
	if err := c.recordLocked(s); err != nil {
		return err
	}
	return c.waitEnded(time.Time{})
}

// recordLocked records steps. The lock is held, but not in between.
func (c *call) recordLocked(steps ...*workitem.Step) error {
	r := c.run
	r.move(c.branch, working)
	r.echoes(c.branch, false)
	r.mu.Unlock()
	_, err := r.record(steps...)
	r.mu.Lock()
	r.move(c.branch, running)
	return err
}

// awaitEnd is the whole of a step that waits: for what was recorded, or for what is recorded now.
func (c *call) awaitEnd(begin func() *workitem.Step) (*workitem.Step, error) {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := c.final(); s != nil {
		return s, nil
	}
	if c.entry.step == nil {
		if err := c.fresh(); err != nil {
			return nil, err
		}
		r.mu.Unlock()
		c.writeLines()
		err := c.open(begin())
		r.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	if err := c.waitEnded(time.Time{}); err != nil {
		return nil, err
	}
	return c.final(), nil
}

// encode writes a result, or says why it can't be remembered.
func (c *call) encode(v any) (json.RawMessage, error) {
	raw, err := domain.Encode(v)
	if err != nil {
		return nil, &refusedResult{fmt.Errorf("the result: %w", err)}
	}
	if most := c.run.info.MaxResult; len(raw) > most {
		return nil, &refusedResult{&workitem.Failure{Code: CodeTooLarge, Message: fmt.Sprintf(
			"the result has %d bytes, and the limit is %d; store it elsewhere and return its address", len(raw), most)}}
	}
	return raw, nil
}

// refusedResult is why the result of a step's function is refused. The function itself had no error, so the filters of
// a retry policy are not asked.
type refusedResult struct{ error }

func (u *refusedResult) Unwrap() error { return u.error }

// result reads what a step has come to.
func result[T any](r *Run, s *workitem.Step) (T, error) {
	var none T
	switch {
	case s.State == workitem.StepFailed:
		return none, errorOf(s)
	case s.State == workitem.StepCanceled:
		return none, fmt.Errorf("step %q: %w", s.Name, ErrCanceled)
	case len(s.Result) == 0:
		return none, nil
	}
	v, err := domain.Restore[T](s.Result)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return none, r.keepMistake(mistakef(ErrChanged, "step %q: its result can't be read as the type that is asked for: %v",
			s.Name, err))
	}
	return v, nil
}
