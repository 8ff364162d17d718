// Package source defines what the pages and the API show and act on: an engine, or a database that another process
// owns.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Backend is what the pages and the API show and act on. An [engine.Engine] is one, and [Reading] returns one for a
// database that is only read.
type Backend interface {
	store.Viewer
	workflow.Doer
	// Now returns the time from which ages are computed.
	Now() time.Time
	// Here describes what the program can do for cases, for [why.Read].
	Here() why.Here
}

// Watcher is a Backend that yields journal entries as they are committed. Other backends are polled while a page is
// open.
type Watcher interface {
	Watch(ctx context.Context, root workitem.CaseID, after int64) iter.Seq2[*store.Entry, error]
}

// Previewer is a Backend that can run a command without effect.
type Previewer interface {
	DryRun(ctx context.Context, c workflow.Command) (engine.Preview, error)
}

// Inspector is a Backend that knows its overdue work.
type Inspector interface {
	Overdue() []engine.Backlog
}

// Post sends a command to the process that owns the database, and waits for its answer.
type Post func(ctx context.Context, command json.RawMessage) (store.Answer, error)

// Patience is how long a command waits for the owner of the database.
const Patience = 10 * time.Second

// ErrNoOwner says that no program that owns the database took a command in time. The command is withdrawn.
var ErrNoOwner = errors.New("no program that owns the database has answered")

// Reading returns a Backend for a store that is open for reading. It sends commands to the owner of the database by
// post; if that is nil, it rejects them.
func Reading(v store.Viewer, post Post, clock retry.Clock, opts ...ReadingOption) Backend {
	b := &reading{Viewer: v, streams: newPolled(v), post: post, clock: clock}
	for _, o := range opts {
		o(b)
	}
	return b
}

// ReadingOption is an option of [Reading].
type ReadingOption func(*reading)

// Ask lets the Backend know what open programs tell of their definitions. ask is called when that is needed, at most once in keepHere, and
// has maxAsk for its answer; a zero Here says that no program has answered.
func Ask(ask func(context.Context) (why.Here, error)) ReadingOption {
	return func(b *reading) { b.programs.ask = ask }
}

// Owned lets the Backend look whether an engine has the database open before the pages ask it something, so that they do not wait for an
// answer of none.
func Owned(owned func(context.Context) (bool, error)) ReadingOption {
	return func(b *reading) { b.owned = owned }
}

type reading struct {
	store.Viewer
	streams polled
	post    Post
	clock   retry.Clock

	programs programs
	answers  answers
	owned    func(context.Context) (bool, error) // nil if it is not known
}

func (b *reading) Now() time.Time { return b.clock.Now() }

func (b *reading) Here() why.Here { return b.programs.here(b.Now()) }

// DryRun implements Previewer: the owner of the database tries the command.
func (b *reading) DryRun(ctx context.Context, c workflow.Command) (p engine.Preview, err error) {
	result, err := b.Do(ctx, workflow.DryRun(c))
	if err != nil {
		return p, err
	}
	err = b.View(ctx, func(r store.Reader) error {
		p, err = engine.ReadPreview(ctx, r, result.Preview)
		return err
	})
	return p, err
}

func (b *reading) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	defer b.answers.forget()
	return b.send(ctx, c)
}

// send leaves a command for the owner of the database, and waits for its answer.
func (b *reading) send(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	if b.post == nil {
		return workflow.Result{}, fmt.Errorf("the database is open for reading only: %w", store.ErrReadOnly)
	}
	command, err := json.Marshal(c)
	if err != nil {
		return workflow.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	answer, err := b.post(ctx, command)
	if err != nil && ctx.Err() == nil {
		return workflow.Result{}, fmt.Errorf("leave the command for the owner of the database: %w", err)
	}
	if err != nil {
		return workflow.Result{}, fmt.Errorf("%w within %s: %w: %w", ErrNoOwner, Patience, err, store.ErrUnavailable)
	}
	return engine.RemoteAnswer(answer)
}
