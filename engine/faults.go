package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A fault is an error of the store, as a full disk or a lock that another program holds. It says nothing of the command that met
// it. The engine's own commands, which have no caller to repeat them, are tried again until the store works or the engine closes: no
// attempt is counted and no failure is recorded.

// isFault reports whether an error is the store's.
func isFault(err error) bool {
	return errors.Is(err, errCommit) || errors.Is(err, store.ErrUnavailable)
}

// The wait before a command that met a fault is tried again doubles from the first to the last.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
	maxLevel  = 7 // 50 ms doubled seven times is longer than lastWait
)

// faultWait is the wait after a number of faults in a row, from 0 on. It is time of the machine, whatever the engine's clock is: a
// disk that is full has nothing to do with the time that a process lives in.
func faultWait(faults int) time.Duration { return min(lastWait, firstWait<<min(faults, maxLevel)) }

// pause waits after a fault; false if the engine or the context ended meanwhile.
func (e *Engine) pause(ctx context.Context, faults int) bool {
	timer := time.NewTimer(faultWait(faults))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.closing:
	case <-ctx.Done():
	}
	return false
}

// insist calls f until its error is no fault, and returns that error. It is ErrClosed if the engine closes first, and that of
// the context if it ends.
func (e *Engine) insist(ctx context.Context, f func() error) error {
	for faults := 0; ; faults++ {
		err := f()
		if !isFault(err) {
			return err
		}
		if !e.pause(ctx, faults) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return e.closedError()
		}
	}
}

// noteCommit logs when the store begins and ceases to fail, and has what is overdue tried at once when it works again. It is
// the writer's.
func (e *Engine) noteCommit(err error, commands int) {
	if err == nil && commands == 0 || errors.Is(err, ErrClosed) {
		return
	}
	if e.faults.note("commit", err, "a commit failed; none of its commands happened: those of callers are refused, and what is "+
		"due is tried again", "commands", commands) {
		e.sched.tryAll()
	}
}

// faultLog logs faults: the first of a kind, the kind once a minute while it lasts, and its end.
type faultLog struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	open map[string]*lasting
}

// lasting is a fault that has not ended.
type lasting struct {
	since, told, last time.Time
	n                 int
}

// faultPace is how often a fault that lasts is logged.
const faultPace = time.Minute

func (l *faultLog) init(e *Engine) {
	l.log, l.now, l.open = e.log, e.now, make(map[string]*lasting)
}

// note takes the outcome of something that may meet faults. It reports whether a fault of that kind has ended.
func (l *faultLog) note(kind string, err error, text string, args ...any) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.open[kind]
	switch {
	case err == nil && f == nil:
		return false
	case err == nil:
		delete(l.open, kind)
		l.log.Info("a fault is over", "of", kind, "times", f.n, "since", f.since)
		return true
	}
	now := l.now()
	if f == nil || now.Sub(f.last) > 2*faultPace { // nothing says when some faults are over
		f = &lasting{since: now}
		l.open[kind] = f
	}
	f.last = now
	f.n++
	if f.n == 1 || now.Sub(f.told) >= faultPace || now.Before(f.told) {
		f.told = now
		l.log.Error(text, append(args, "error", err, "times", f.n, "since", f.since)...)
	}
	return false
}

// since is when the first open fault of the kinds given began; of several kinds the first that has one decides. Zero is none.
func (l *faultLog) since(kinds ...string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kind := range kinds {
		if f := l.open[kind]; f != nil {
			return f.since
		}
	}
	return time.Time{}
}

// port is the transaction of a store whose unexpected errors are faults.
type port struct{ store.Tx }

func asFault(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUndone) ||
		errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// Load implements store.Tx.
func (p port) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	t, err := p.Tx.Load(ctx, root)
	return t, asFault(err)
}

// Root implements store.Tx.
func (p port) Root(ctx context.Context, id [16]byte) (workitem.CaseID, error) {
	root, err := p.Tx.Root(ctx, id)
	return root, asFault(err)
}

// Item implements store.Tx.
func (p port) Item(ctx context.Context, id workitem.ID) (*store.ItemRow, error) {
	row, err := p.Tx.Item(ctx, id)
	return row, asFault(err)
}

// Steps implements store.Tx.
func (p port) Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error) {
	steps, err := p.Tx.Steps(ctx, owner)
	return steps, asFault(err)
}

// Append implements store.Tx.
func (p port) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	return asFault(p.Tx.Append(ctx, e, t))
}

// Answered implements store.Tx.
func (p port) Answered(ctx context.Context, key string) (*store.Entry, error) {
	e, err := p.Tx.Answered(ctx, key)
	return e, asFault(err)
}

// Requests implements store.Tx.
func (p port) Requests(ctx context.Context, after int64, max int) ([]store.Request, error) {
	r, err := p.Tx.Requests(ctx, after, max)
	return r, asFault(err)
}

// Reply implements store.Tx.
func (p port) Reply(ctx context.Context, id int64, a store.Answer) error {
	return asFault(p.Tx.Reply(ctx, id, a))
}
