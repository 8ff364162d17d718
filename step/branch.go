package step

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/readable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// branch is a line of execution of a run. Its fields belong to the run's lock.
type branch struct {
	run    *Run
	parent *branch
	path   string // "" for the main one, "1.2" for the second branch of its first one
	cancel context.CancelCauseFunc

	status   status
	call     title         // what it is about just now, for errors; zero in the function's own code
	wake     chan struct{} // closed to wake it; nil unless it is parked
	echo     bool          // its latest answer came from the history
	names    []string      // the steps that it has come to
	stamp    time.Time     // when the latest step that it knows of ended
	children []*branch
	starts   int    // its calls of Go so far
	groups   int    // its calls of All and Map
	live     bool   // it has done something new in this run
	lines    []line // logged since its latest step, and perhaps on an earlier run

	known    bool // its result is: it has returned, or was not chosen
	err      error
	taken    bool // its result was asked for
	canceled bool // it was not chosen, before it had returned
	closed   bool // it was not chosen, after it had returned; it replays
	joins    []*join

	notChosen *verdict // nil unless it is canceled or closed
}

// depth is how many branches a branch is within.
func (b *branch) depth() (n int) {
	for ; b.parent != nil; b = b.parent {
		n++
	}
	return n
}

// Branch is a concurrent part of a job's function, see [Go].
type Branch[T any] struct {
	b     *branch
	value *T
}

// AnyBranch is a [Branch] of any type, for [All], [Any] and [Race].
type AnyBranch interface{ branch() *branch }

func (b *Branch[T]) branch() *branch {
	if b == nil {
		return nil
	}
	return b.b
}

// Go calls fn in a new branch, concurrently with the rest of the job. The branch has its own context, which its steps
// and its own branches must use.
//
//	mail := step.Go(ctx, func(ctx context.Context) (string, error) { return step.Do(ctx, "mail", sendMail) })
//	call := step.Go(ctx, func(ctx context.Context) (string, error) { return step.Do(ctx, "call", callBack) })
//	if err := step.All(ctx, mail, call); err != nil {
//		return err
//	}
//
// Branches can wait at the same time: the job is suspended when all of them wait. Between steps a branch should only
// compute. It must not wait for another branch except with Branch.Wait, All, Any and Race, since the job cannot be
// suspended during any other wait.
//
// A job ends after all its branches: when the function returns nil, the job waits for branches whose results were not
// used, and their errors fail the job. A panic in a branch is an error of the branch, with the code "panic".
//
// Outside a job, fn isn't called, and the branch's result is [ErrNoJob].
func Go[T any](ctx context.Context, fn func(context.Context) (T, error)) *Branch[T] {
	v := new(T)
	var call func(context.Context) error
	if fn != nil {
		call = func(ctx context.Context) (err error) {
			*v, err = fn(ctx)
			return err
		}
	}
	return &Branch[T]{spawn(ctx, here(), call), v}
}

// Wait waits until the branch has returned, and returns its result. The error is ErrCanceled if the branch was canceled
// before that by Any, Race or All.
func (b *Branch[T]) Wait(ctx context.Context) (T, error) {
	var none T
	c, err := enter(ctx, "Branch.Wait", b)
	if err != nil {
		return none, err
	}
	defer c.end()
	if err := c.waitFor(b.b); err != nil {
		return none, err
	}
	return *b.value, nil
}

// spawn starts a branch.
func spawn(ctx context.Context, at uintptr, fn func(context.Context) error) *branch {
	what := title{word: "step.Go"}
	s, err := currentRun(ctx, what)
	if err != nil {
		return failedBranch(nil, err)
	}
	r, parent := s.run, s.branch
	if fn == nil {
		return failedBranch(r, r.nothingToCall(what, at))
	}
	r.load()
	r.mu.Lock()
	defer r.mu.Unlock()
	parent.starts++
	if err := r.halted(ctx, parent); err != nil {
		return failedBranch(r, err)
	}
	if parent.call != (title{}) {
		return failedBranch(r, r.keepMistake(underWay(what, parent)))
	}
	parent.call = what
	err = r.durable()
	parent.call = title{}
	if err != nil {
		return failedBranch(r, err)
	}
	return r.start(ctx, parent, fmt.Sprint(parent.starts), fn)
}

// failedBranch is a branch that was never started. One without a run belongs to no job, or was started where none may
// be.
func failedBranch(r *Run, err error) *branch {
	return &branch{run: r, known: true, err: err, status: gone, cancel: func(error) {}}
}

// start starts a branch of another one. The lock is held.
func (r *Run) start(ctx context.Context, parent *branch, name string, fn func(context.Context) error) *branch {
	b := &branch{run: r, parent: parent, path: name, stamp: parent.stamp, closed: parent.closed,
		notChosen: parent.notChosen}
	if parent.path != "" {
		b.path = parent.path + "." + name
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, scopeKey{}, &scope{run: r, branch: b})
	parent.children = append(parent.children, b)
	r.branches = append(r.branches, b)
	r.unknown++
	r.turns.count[running]++
	r.turns.moves++
	r.work.Go(func() {
		err := error(errGone)
		defer func() {
			if p := recover(); p != nil {
				err = retry.NewPanicError(p)
			}
			b.cancel(nil)
			r.mu.Lock()
			r.learn(b, err)
			r.move(b, gone)
			r.yield()
		}()
		err = fn(ctx)
		err = cmp.Or(readable.Error(err), err)
	})
	return b
}

// errGone is the failure of a branch whose function never returned. It is caught in a deferred function, which is all
// that still runs then.
var errGone = &workitem.Failure{Code: workitem.CodePanic, Retryable: true,
	Message: "the branch ended its goroutine, as runtime.Goexit and the FailNow of a test do; let it return an error"}

// learn makes the result of a branch known, unless it is already. The lock is held.
func (r *Run) learn(b *branch, err error) {
	if b.known {
		return
	}
	b.known, b.err = true, err
	r.unknown--
	for _, j := range b.joins {
		j.count(b)
		if j.parked && j.ready(j) {
			r.wakeUp(j.by)
		}
	}
	b.joins = nil
	if r.ending && (r.unknown == 0 || b.orphan() || slices.ContainsFunc(b.children, (*branch).orphan)) {
		r.wakeUp(r.main)
	}
}

// orphan reports whether a branch has failed and its error will not be asked for.
func (b *branch) orphan() bool {
	return b.known && b.err != nil && !b.taken && (b.parent.known || b.parent.parent == nil)
}

// drop cancels a branch that was not chosen, and those that it has started. The lock is held.
func (r *Run) drop(b *branch, why *verdict) {
	err := why.of(b)
	b.canceled, b.taken, b.notChosen = true, true, why
	b.cancel(err)
	r.learn(b, err)
	b.err = err // also if it has returned meanwhile
	for _, kid := range b.children {
		r.drop(kid, why)
	}
}

// allNames lists the steps that a branch has come to, and those that it has started. The run's lock is held.
func (b *branch) allNames() []string {
	names := slices.Clone(b.names)
	for _, kid := range b.children {
		names = append(names, kid.allNames()...)
	}
	return names
}

// join waits for the branches that the function has left behind, and returns the first error that was not asked for.
func (r *Run) join() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	for {
		for _, b := range r.branches {
			if b.orphan() {
				return b.err
			}
		}
		if r.unknown == 0 || r.endedBy != nil {
			return nil
		}
		if err := r.park(r.ctx, r.main); err != nil {
			return err
		}
	}
}

// join is a branch that waits for others.
type join struct {
	by                 *branch
	left, failed, done int // how many are not known yet, have failed, have succeeded
	ready              func(*join) bool
	parked             bool
}

func (j *join) count(b *branch) {
	j.left--
	if b.err != nil {
		j.failed++
	} else {
		j.done++
	}
	if j.parked && (b.echo || b.live) {
		j.by.run.echoes(j.by, b.echo) // before it is woken
	}
}

// add has the join wait for one more branch. The lock is held.
func (j *join) add(b *branch) {
	b.taken = true
	j.left++
	if b.known {
		j.count(b)
	} else {
		b.joins = append(b.joins, j)
	}
}

// wait returns once the join is ready. The lock is held.
func (j *join) wait(ctx context.Context) error {
	if j.by.replays() {
		j.by.lines = nil // logged as it waited here before
	}
	for !j.ready(j) {
		j.parked = true
		err := j.by.run.park(ctx, j.by)
		j.parked = false
		if err != nil {
			return err
		}
	}
	return nil
}

// waitFor waits for one branch, and returns its error.
func (c *call) waitFor(b *branch) error {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := c.follow(b); err != nil {
		return err
	}
	return b.err
}

// follow waits for one branch, and takes over what that knew. The error is not that of the branch. The lock is held,
// but not in between.
func (c *call) follow(b *branch) error {
	j := &join{by: c.branch, ready: func(j *join) bool { return j.left == 0 }}
	j.add(b)
	if err := j.wait(c.ctx); err != nil {
		return err
	}
	c.learnFrom(b)
	return nil
}

// learnFrom takes over what another branch knew when it returned. The lock is held.
func (c *call) learnFrom(b *branch) {
	if b.echo {
		c.run.echoes(c.branch, true)
	}
	if !b.canceled {
		c.branch.lines = append(c.branch.lines, b.lines...)
	}
	b.lines = nil
	if b.stamp.After(c.branch.stamp) {
		c.branch.stamp = b.stamp
	}
}
