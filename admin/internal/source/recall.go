package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// keepAnswer is how long an answer of the owner of the database, or that there is none, is used.
const keepAnswer = 5 * time.Second

// Recaller is a Backend that asks another process, and remembers for some seconds what it has answered, or that it has not. What is
// remembered must not be changed.
type Recaller interface {
	// Recall is Do of a command that changes nothing and has no payload. Each command of Do makes it ask anew.
	Recall(ctx context.Context, c workflow.Command) (workflow.Result, error)
}

// answers are the last answers, by the kind of the question.
type answers struct {
	mu   sync.Mutex
	last map[workflow.Kind]answered
	done int // the number of commands that may have changed something
}

type answered struct {
	at     time.Time
	result workflow.Result
	err    error
}

// find returns an answer that is not too old, and otherwise how many commands were done up to now.
func (a *answers) find(kind workflow.Kind, now time.Time) (last answered, found bool, done int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, found = a.last[kind]
	age := now.Sub(last.at)
	return last, found && age >= 0 && age < keepAnswer, a.done
}

// keep remembers an answer, unless a command has been done since its question.
func (a *answers) keep(kind workflow.Kind, last answered, done int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done != done {
		return
	}
	if a.last == nil {
		a.last = make(map[workflow.Kind]answered)
	}
	a.last[kind] = last
}

// forget drops all answers.
func (a *answers) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done++
	a.last = nil
}

// Recall implements Recaller. It does not remember that a user has left before the answer.
func (b *reading) Recall(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	last, found, done := b.answers.find(c.Kind, b.Now())
	if found {
		return last.result, last.err
	}
	if b.owned != nil {
		if owned, err := b.owned(ctx); err == nil && !owned {
			return workflow.Result{}, fmt.Errorf("%w: none has it open: %w", ErrNoOwner, store.ErrUnavailable)
		}
	}
	result, err := b.send(ctx, c)
	if err == nil || errors.Is(err, ErrNoOwner) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		b.answers.keep(c.Kind, answered{b.Now(), result, err}, done)
	}
	return result, err
}
