package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/command"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// zeros makes ids of the time alone, so that those of a test are always the same.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// bench executes commands by a writer on a store in memory, without an engine around it.
type bench struct {
	t        *testing.T
	store    store.Store
	writer   *commit.Writer
	executor *command.Executor
}

// newBench opens a bench for a workflow of one task whose items people do.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := builder.New[string]("claim")
	b.Path(b.Start(), builder.Task(b, "decide", builder.Work[string, string]{Input: builder.CaseInput(b)}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	definitions, err := registry.New(log, []*workflow.Definition{w.Untyped()})
	require.NoError(t, err)
	s, err := sqlite.Memory().Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Register(t.Context(), definitions.Stored(time.Now())))

	ids := workitem.NewGenerator(zeros{})
	x := command.New(command.Options{
		Definitions: definitions, IDs: ids, Topics: notify.NewTopics(), Log: log, MaxPayload: 100,
		Public: func(*commit.Tx) builder.InTx { return nil },
	})
	writer := commit.New(commit.Options{
		Store: s, Definitions: definitions, IDs: ids, Now: time.Now, Faults: fault.NewLog(log, time.Now),
		NewToken:        func(root workitem.CaseID) (string, error) { return command.NewToken(zeros{}, root) },
		CallbackTimeout: time.Minute, CacheCases: 10, RootEnded: x.RootEnded, GivenUp: x.GivenUp,
		Active: func(int) {}, Lost: func(err error) error { return err }, Closed: func() error { return commit.ErrClosed },
		Recovered: func() {},
	})
	writer.Start()
	t.Cleanup(func() {
		writer.Close()
		writer.Wait()
		writer.Stop()
		require.NoError(t, integrity.Check(context.Background(), s))
		require.NoError(t, s.Close())
	})
	return &bench{t: t, store: s, writer: writer, executor: x}
}

func (b *bench) do(c workflow.Command) (workflow.Result, error) {
	return commit.Query(b.t.Context(), b.writer, new(commit.Request), func(tx *commit.Tx) (workflow.Result, error) {
		return b.executor.Execute(tx, &c)
	})
}

func start(input string) workflow.Command {
	return workflow.Command{Kind: workflow.KindStart, Workflow: "claim", Payload: json.RawMessage(input)}
}

// count is how many entries the journal has.
func (b *bench) count() int {
	n := 0
	for _, err := range store.AllEntries(b.t.Context(), b.store, store.JournalFilter{}) {
		require.NoError(b.t, err)
		n++
	}
	return n
}

// Each of these is refused with what is wrong and what there is, and leaves nothing in the journal.
func TestABadCommandIsRefused(t *testing.T) {
	b := newBench(t)
	long := `"` + strings.Repeat("x", 100) + `"`
	for name, c := range map[string]struct {
		command workflow.Command
		is      error
		says    string
	}{
		"nothing":          {workflow.Command{}, workflow.ErrBadCommand, ""},
		"unknown kind":     {workflow.Command{Kind: "juggle"}, workflow.ErrBadCommand, "juggle"},
		"unknown workflow": {workflow.Command{Kind: workflow.KindStart, Workflow: "clam"}, workflow.ErrUnknown, `"clam"; the engine was opened with [claim]`},
		"another's fingerprint": {workflow.Command{Kind: workflow.KindStart, Workflow: "claim", Fingerprint: "0"},
			workflow.ErrUnknown, `"claim"`},
		"long":         {start(long), domain.ErrTooLarge, "the payload has 102 bytes and at most 100 are allowed"},
		"no JSON":      {start(`{`), nil, "the payload"},
		"another type": {start(`{"a": 1}`), nil, "invalid string: it is JSON of another form (object)"},
		"no such case": {workflow.Command{Kind: workflow.KindCancel, Case: workitem.CaseID{1}}, store.ErrNotFound, "case"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.do(c.command)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.ErrorContains(t, err, c.says)
			require.Zero(t, b.count())
		})
	}
}

// A command with the key of an earlier one gets its answer and does nothing; another command with that key is refused.
func TestAKeyAnswersOnce(t *testing.T) {
	b := newBench(t)
	c := start(`"door"`)
	c.Key = "order 66"
	first, err := b.do(c)
	require.NoError(t, err)
	require.False(t, first.Case.IsZero())
	entries := b.count()

	again, err := b.do(c)
	require.NoError(t, err)
	require.Equal(t, first, again)
	c.Payload = json.RawMessage(`"window"`)
	_, err = b.do(c)
	require.ErrorIs(t, err, workflow.ErrKeyReused)
	require.Equal(t, entries, b.count())
}

// A command in a transaction that fails is undone alone: what the transaction did before and does afterwards stays.
func TestACommandOfATransactionIsUndoneAlone(t *testing.T) {
	b := newBench(t)
	var made [2]workflow.Result
	_, err := commit.Query(t.Context(), b.writer, new(commit.Request), func(tx *commit.Tx) (_ int, err error) {
		made[0], err = b.executor.Do(tx, start(`"a"`))
		require.NoError(t, err)
		_, err = b.executor.Do(tx, workflow.Command{Kind: workflow.KindCancel, Case: workitem.CaseID{1}})
		require.ErrorIs(t, err, store.ErrNotFound)
		made[1], err = b.executor.Do(tx, start(`"b"`))
		return 0, err
	})
	require.NoError(t, err)
	for _, r := range made {
		tree, err := store.TreeOf(t.Context(), b.store, r.Case)
		require.NoError(t, err)
		require.Equal(t, state.CaseStarted, tree.Case(r.Case).State)
	}
	_, err = commit.Query(t.Context(), b.writer, new(commit.Request), func(tx *commit.Tx) (int, error) {
		_, err := b.executor.Do(tx, start(`"c"`))
		return 0, errors.Join(err, errUser)
	})
	require.ErrorIs(t, err, errUser)
	require.Equal(t, 2, b.count(), "the transaction of the third was undone")
}

var errUser = errors.New("the user changes her mind")
