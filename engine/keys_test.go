package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Each command of a transaction keeps its own key, and is known again by it, whatever else the transaction did to its
// case.
func TestEachCommandOfATransactionKeepsItsKey(t *testing.T) {
	ctx := t.Context()
	taken := 0
	w, _ := function(t, "two_events", func(ctx context.Context, _ string) (int, error) {
		a, err := step.Await[int](ctx, "a")
		if err != nil {
			return 0, err
		}
		b, err := step.Await[int](ctx, "b")
		taken = a + b
		return taken, err
	})
	e := enginetest.Open(t, sqlite.File(t.TempDir()+"/keys.db"), engine.Config{}, w)
	var id workitem.CaseID
	all := func(tx *engine.Tx) (err error) {
		if id, err = w.Start(ctx, tx, "x", workflow.Key("start")); err != nil {
			return err
		}
		if err := enginetest.Do(ctx, tx, workflow.Send(id, "unkeyed", 0)); err != nil {
			return err
		}
		if err := enginetest.Do(ctx, tx, workflow.Send(id, "a", 1, workflow.Key("a"), workflow.By("ann"))); err != nil {
			return err
		}
		if err := enginetest.Do(ctx, tx, workflow.Send(id, "a", 1, workflow.Key("a"))); err != nil { // again, in the same transaction
			return err
		}
		if err := enginetest.Do(ctx, tx, workflow.Send(id, "unkeyed", 0)); err != nil {
			return err
		}
		return enginetest.Do(ctx, tx, workflow.Send(id, "b", 2, workflow.Key("b"), workflow.By("bob")))
	}
	require.NoError(t, e.Update(ctx, all))
	first := id
	e.Drain()
	require.Equal(t, "completed: 3", outcome(t, e, id))

	replay := func() {
		again, err := w.Start(ctx, e, "x", workflow.Key("start"))
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.NoError(t, enginetest.Do(ctx, e, workflow.Send(id, "a", 1, workflow.Key("a"))), "the case has ended: without its key it were an error")
		require.NoError(t, enginetest.Do(ctx, e, workflow.Send(id, "b", 2, workflow.Key("b"))))
		require.ErrorIs(t, enginetest.Do(ctx, e, workflow.Send(id, "b", 2, workflow.Key("a"))), engine.ErrKeyReused)
		require.NoError(t, e.Update(ctx, all))
		require.Equal(t, first, id)
	}
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.Send(id, "a", 1)), engine.ErrInactive)
	_, err := w.Start(ctx, e, "y", workflow.Key("other"))
	require.NoError(t, err)
	all = func(tx *engine.Tx) (err error) { // the unkeyed ones are refused by now
		if id, err = w.Start(ctx, tx, "x", workflow.Key("start")); err == nil {
			err = enginetest.Do(ctx, tx, workflow.Send(id, "a", 1, workflow.Key("a")))
		}
		return err
	}
	replay()
	e.Crash()
	replay()

	var lines []string
	for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{Root: first}) {
		require.NoError(t, err)
		if entry.Key != "" {
			lines = append(lines, entry.Key+" "+entry.By)
		}
	}
	require.Equal(t, []string{"start ", "a ann", "b bob"}, lines)
}

// A key whose command was undone alone is free, and those before it stay.
func TestKeyOfRolledBackCommandIsFree(t *testing.T) {
	ctx := t.Context()
	w, _ := function(t, "waits", func(ctx context.Context, _ string) (int, error) { return step.Await[int](ctx, "a") })
	e := enginetest.New(t, w)
	id := start(t, e, w, "x")
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		require.NoError(t, enginetest.Do(ctx, tx, workflow.Send(id, "early", 1, workflow.Key("one"))))
		require.Error(t, enginetest.Do(ctx, tx, workflow.Act(workitem.ID{1}, workitem.Start, nil, workflow.Key("two"))))
		require.ErrorIs(t, enginetest.Do(ctx, tx, workflow.Remove(id)), engine.ErrUnfinished)
		require.NoError(t, enginetest.Do(ctx, tx, workflow.Send(id, "early", 1, workflow.Key("two"))))
		return nil
	}))
	require.NoError(t, enginetest.Do(ctx, e, workflow.Send(id, "early", 1, workflow.Key("one"))))
	require.NoError(t, enginetest.Do(ctx, e, workflow.Send(id, "early", 1, workflow.Key("two"))))
	n := 0
	require.NoError(t, e.View(ctx, func(r store.Reader) error {
		mail, err := r.Messages(ctx, store.MessageFilter{})
		n = len(mail)
		return err
	}))
	require.Equal(t, 2, n)
}

// A broadcast is known again, also one that only starts cases, and one of a transaction that had done something to
// them.
func TestABroadcastIsKnownByItsKey(t *testing.T) {
	ctx := t.Context()
	starts, _ := function(t, "starts", func(context.Context, int) (int, error) { return 0, nil }, builder.On("started"))
	waits, _ := function(t, "waits", func(ctx context.Context, _ int) (int, error) {
		return step.Await[int](ctx, "told", step.Topic())
	})
	e := enginetest.New(t, starts, waits)
	id := start(t, e, waits, 0)
	for _, topic := range []string{"started", "told"} {
		n := 0
		tell := func(tx *engine.Tx) (err error) {
			if c, err := tx.Case(ctx, id); err != nil || c.State.Final() {
				return err
			}
			if err := enginetest.Do(ctx, tx, workflow.Send(id, "other", 1)); err != nil {
				return err
			}
			n, err = broadcast(ctx, tx, topic, 7, workflow.Key(topic))
			return err
		}
		require.NoError(t, e.Update(ctx, tell))
		require.Equal(t, 1, n, topic)
		again, err := broadcast(ctx, e, topic, 7, workflow.Key(topic))
		require.NoError(t, err, topic)
		require.Equal(t, 1, again, topic)
	}
	e.Drain()
	require.Equal(t, "completed: 7", outcome(t, e, id))
}

// A key belongs to one token: used with another one of the same case it is refused, and that token is still good.
func TestAKeyBelongsToOneToken(t *testing.T) {
	ctx := t.Context()
	tokens := make(chan string, 2)
	w, _ := function(t, "hooks", func(ctx context.Context, _ int) (sum int, err error) {
		for _, name := range []string{"one", "two"} {
			token, err := step.Token(ctx, "token "+name, name)
			if err != nil {
				return 0, err
			}
			tell := func(context.Context) (int, error) { tokens <- token; return 0, nil }
			if _, err := step.Do(ctx, "tell "+name, tell); err != nil {
				return 0, err
			}
		}
		for _, name := range []string{"one", "two"} {
			n, err := step.Await[int](ctx, name)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	one, two := <-tokens, <-tokens
	require.NoError(t, enginetest.Do(ctx, e, workflow.SendToken(one, 1, workflow.Key("k"))))
	require.NoError(t, enginetest.Do(ctx, e, workflow.SendToken(one, 1, workflow.Key("k"))), "the first answer again")
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.SendToken(two, 2, workflow.Key("k"))), engine.ErrKeyReused)
	require.NoError(t, enginetest.Do(ctx, e, workflow.SendToken(two, 2, workflow.Key("l"))))
	e.Drain()
	require.Equal(t, "completed: 3", outcome(t, e, id))
}

// broadcast publishes a value to a topic, and returns how many it reached.
func broadcast(ctx context.Context, e workflow.Doer, topic string, value any, opts ...workflow.Option) (int, error) {
	result, err := e.Do(ctx, workflow.Broadcast(topic, value, opts...))
	return result.Count, err
}

// A key stands for its command as it was: the same kind with other values is another command, on every path.
func TestAKeyWithOtherValuesIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := oneTask("keyed")
	path := filepath.Join(t.TempDir(), "keys.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, w)
	first := workflow.Start("keyed", json.RawMessage(`{"text":"a"}`), workflow.Key("k"), workflow.By("ann"))
	other := workflow.Start("keyed", json.RawMessage(`{"text":"b"}`), workflow.Key("k"))
	started, err := e.Do(ctx, first)
	require.NoError(t, err)
	for name, do := range map[string]func(workflow.Command) (workflow.Result, error){
		"engine": func(c workflow.Command) (workflow.Result, error) { return e.Do(ctx, c) },
		"transaction": func(c workflow.Command) (result workflow.Result, err error) {
			return result, e.Update(ctx, func(tx *engine.Tx) error {
				result, err = tx.Do(ctx, c)
				return err
			})
		},
		"another process": func(c workflow.Command) (workflow.Result, error) { return post(t, path, c) },
	} {
		_, err = do(other)
		require.ErrorIs(t, err, engine.ErrKeyReused, name)
		require.ErrorContains(t, err, `key "k" was first used for "start keyed" with other values`, name)
		if name != "transaction" {
			again, err := do(workflow.With(first, workflow.By("bob"), workflow.After(time.Hour)))
			require.NoError(t, err, name)
			require.Equal(t, started, again, "who asks and when it begins do not count")
		}
	}
	_, err = e.Do(ctx, workflow.Cancel(started.Case, nil, workflow.Key("k")))
	require.ErrorContains(t, err, `key "k" was first used for "start keyed", and now for "case cancel`)
	require.Equal(t, 1, cases(t, e))
}
