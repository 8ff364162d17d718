package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
)

var errDisk = errors.New("the disk is full")

// broken opens a store whose transactions fail while it is told to: before they begin, or at the commit of a command.
type broken struct {
	store.Opener
	command       string
	begin, commit atomic.Bool
}

// Open implements store.Opener.
func (b *broken) Open(ctx context.Context, o store.Options) (store.Store, error) {
	met := false // the command is in the transaction that is under way
	return (&storehook.Opener{Opener: b.Opener,
		Update: func(run func() error) error {
			if b.begin.Load() {
				return errDisk
			}
			met = false
			return run()
		},
		Append: func(e *store.Entry, _ *state.Tree) error {
			met = met || e.Command == b.command
			return nil
		},
		Commit: func() error {
			if met && b.commit.Load() {
				return errDisk
			}
			return nil
		},
	}).Open(ctx, o)
}

func TestACommandIsAnsweredWhenTheStoreDoesNotBegin(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	b := &broken{Opener: sqlite.Memory()}
	e := enginetest.Open(t, b, engine.Config{}, a)
	b.begin.Store(true)
	_, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.ErrorIs(t, err, errDisk)
	b.begin.Store(false)
	_, err = a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
}

// A job that had to wait for a worker has a claim of its own, whose commit may wait for company while the job runs.
func TestAJobWhoseClaimIsNotCommittedIsDoneAgain(t *testing.T) {
	var calls atomic.Int32
	first, running, canceled := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, p prompt) (draft, error) {
		switch calls.Add(1) {
		case 1:
			<-first
		case 2:
			close(running)
			<-ctx.Done()
			canceled <- ctx.Err() // the result is too late, and is refused
		}
		return write(ctx, p)
	}})
	b := &broken{Opener: sqlite.Memory(), command: "job claim"}
	e := enginetest.Open(t, b, engine.Config{Workers: 1}, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "trees"})
	require.NoError(t, err)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	b.commit.Store(true)
	close(first)
	<-running
	require.ErrorIs(t, <-canceled, context.Canceled)
	b.commit.Store(false)
	e.Drain()
	e.Advance(time.Second)
	require.EqualValues(t, 3, calls.Load())
	require.Equal(t, []string{"draft.1.1 completed 1", "review.1.1 initialized 1"}, items(t, e, id))
}

// The job of a first attempt is claimed in the transaction that opens it: if that is not durable, there is no job.
func TestAFirstAttemptIsClaimedWithItsCase(t *testing.T) {
	var calls atomic.Int32
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, p prompt) (draft, error) {
		calls.Add(1)
		return write(ctx, p)
	}})
	b := &broken{Opener: sqlite.Memory(), command: "start article"}
	e := enginetest.Open(t, b, engine.Config{}, a)
	b.commit.Store(true)
	_, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.ErrorIs(t, err, errDisk)
	b.commit.Store(false)
	e.Drain()
	require.Zero(t, calls.Load(), "its claim was not durable")

	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	var commands []string
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: id}) {
		require.NoError(t, err)
		commands = append(commands, entry.Command)
	}
	require.Equal(t, []string{"start article", "job settle"}, commands)
}
