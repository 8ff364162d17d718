package step

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Now returns the engine's time, in UTC, at which the job first reached this call; a replay returns the same
// time. It is never before an earlier Now or the end of an earlier step, even if the clock was set back.
//
// It has no commit of its own, but is recorded together with the next step. If the process dies before that,
// the next run returns a new time.
func Now(ctx context.Context, name string) (time.Time, error) {
	ask := workitem.Step{Name: name, Kind: workitem.StepValue}
	at, err := perform[time.Time](ctx, here(), ask, nil, nil, func(c *call) (*workitem.Step, error) {
		now := c.run.journal.Now()
		return c.value(func() (json.RawMessage, error) {
			if c.run.latest.After(now) {
				now = c.run.latest
			}
			return json.Marshal(now.Round(0).UTC())
		})
	})
	if err != nil {
		return time.Time{}, err
	}
	r := scopeOf(ctx).run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteTime(at)
	return at, nil
}

// Version allows the code of a function to change while jobs are in progress. A job that reaches this call for the
// first time gets the latest version, which is recorded. A job that had already passed this point with code that had
// no Version here gets 0.
//
//	v, err := step.Version(ctx, "two approvals", 1)
//	if err != nil {
//		return err
//	}
//	if v >= 1 {
//		... // the new way
//	} else {
//		... // the old one, for the jobs that are on it
//	}
//
// If the recorded version is above latest, the code is older than the job, and the error is ErrChanged. Like Now it
// has no commit of its own.
func Version(ctx context.Context, name string, latest int) (int, error) {
	at := here()
	ask := workitem.Step{Name: name, Kind: workitem.StepValue}
	v, err := perform[int](ctx, at, ask, nil, nil, func(c *call) (*workitem.Step, error) {
		if latest < 0 {
			return nil, c.run.misuse("step %q, at %s: the version %d is negative; count from 1", name, place(at), latest)
		}
		return c.value(func() (json.RawMessage, error) { return c.version(latest) })
	})
	if err == nil && v > latest {
		r := scopeOf(ctx).run
		r.mu.Lock()
		defer r.mu.Unlock()
		return 0, r.keepMistake(mistakef(ErrChanged, "step %q: version %d was recorded, and the code at %s knows only %d; "+
			"run the newer code until its jobs are done", name, v, place(at), latest))
	}
	return v, err
}

// version is what is remembered of a [Version] that was not there before: the latest one, unless there is history
// behind it. The lock is held, but not in between.
func (c *call) version(latest int) (json.RawMessage, error) {
	c.run.turns.asking++
	defer func() { c.run.turns.asking-- }()
	if err := c.run.waitGated(c.ctx, c.branch, c.run.replayed); err != nil {
		return nil, err
	}
	if c.run.unmet > 0 {
		latest = 0
	}
	return json.Marshal(latest)
}

// value remembers what f returns, with whatever is recorded next. f is called with the lock held.
func (c *call) value(f func() (json.RawMessage, error)) (*workitem.Step, error) {
	r := c.run
	defer c.writeLines()
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := c.final(); s != nil {
		return s, nil
	}
	if c.entry.step != nil { // a sleep that is shorter by now, but waits: the first time holds
		if err := c.waitEnded(time.Time{}); err != nil {
			return nil, err
		}
		return c.final(), nil
	}
	if err := c.fresh(); err != nil {
		return nil, err
	}
	raw, err := f()
	if err != nil {
		return nil, err
	}
	s := *c.ask
	s.State, s.Result = workitem.StepDone, raw
	c.entry.step = &s
	r.pending = append(r.pending, &s)
	r.echoes(c.branch, false)
	return &s, nil
}

// Rand returns a pseudo-random generator with a seed that is derived from the job and the name: it returns the same
// numbers whenever the job runs. Nothing is recorded. Do not use it for secrets.
//
// Outside a job the numbers differ each time.
func Rand(ctx context.Context, name string) *rand.Rand {
	s := scopeOf(ctx)
	if s == nil {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return rand.New(rand.NewChaCha8(s.run.derive("rand", name)))
}

// Key returns an idempotency key for a call to another service. It is the same whenever the job runs, is retried
// or is restarted, and differs for other jobs and other names. It may be called within a step's function.
//
//	bank.Charge(ctx, amount, step.Key(ctx, "charge")) // charges once, however often the step is tried
//
// Outside a job it is empty.
func Key(ctx context.Context, name string) string {
	s := scopeOf(ctx)
	if s == nil {
		return ""
	}
	sum := s.run.derive("key", name)
	return hex.EncodeToString(sum[:16])
}

func (r *Run) derive(use, name string) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s", use, len(r.info.Key), r.info.Key, name))
}
