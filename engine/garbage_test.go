package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What is no JSON, or not in UTF-8, is refused wherever it may come in, and nothing has happened then: encoding/json puts
// other characters in its place, and a database with a type for JSON refuses the whole transaction.
func TestGarbageIsRefusedAtEveryEntry(t *testing.T) {
	b := builder.New[any]("any")
	work := builder.Task(b, "work", builder.Work[any, any]{})
	b.Path(b.Start(), work, b.End())
	open, err := b.Build()
	require.NoError(t, err)
	const bad = "\xff\xfe"
	var token string
	waits, _ := function(t, "waits", func(ctx context.Context, _ string) (any, error) {
		var err error
		if token, err = step.Token(ctx, "address", "posted"); err != nil {
			return nil, err
		}
		return step.Await[any](ctx, "paid")
	}, builder.On("topic"))
	e := enginetest.New(t, open, waits)
	id := start(t, e, open, any(1))
	waiting := start(t, e, waits, "x")
	var item workitem.ID
	for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
		require.NoError(t, err)
		item = row.ID
	}
	ctx := t.Context()

	entries := map[string]func(json.RawMessage) error{
		"start":               func(raw json.RawMessage) error { _, err := enginetest.Start(ctx, e, "any", raw); return err },
		"start typed":         func(raw json.RawMessage) error { _, err := enginetest.Start(ctx, e, "waits", raw); return err },
		"start by its handle": func(raw json.RawMessage) error { _, err := open.Start(ctx, e, raw); return err },
		"start in a transaction": func(raw json.RawMessage) error {
			return e.Update(ctx, func(tx *engine.Tx) error { _, err := open.Start(ctx, tx, raw); return err })
		},
		"options": func(raw json.RawMessage) error {
			c := workflow.Start(open.Name, nil)
			c.Options.Retry = raw
			return enginetest.Do(ctx, e, c)
		},
		"new item": func(raw json.RawMessage) error {
			return enginetest.Do(ctx, e, workflow.AddItem(id, "work", raw))
		},
		"complete": func(raw json.RawMessage) error {
			return enginetest.Do(ctx, e, workflow.Act(item, workitem.Complete, raw))
		},
		"complete by its handle": func(raw json.RawMessage) error { return work.Complete(ctx, e, item, raw) },
		"fail":                   func(raw json.RawMessage) error { return enginetest.Do(ctx, e, workflow.Act(item, workitem.Fail, raw)) },
		"fail by its handle": func(raw json.RawMessage) error {
			return work.Fail(ctx, e, item, &workitem.Failure{Code: "x", Details: raw})
		},
		"cancel": func(raw json.RawMessage) error {
			return enginetest.Do(ctx, e, workflow.Cancel(id, &workitem.Failure{Code: "x", Details: raw}))
		},
		"send": func(raw json.RawMessage) error { return enginetest.Do(ctx, e, workflow.Send(waiting, "paid", raw)) },
		"send, deep": func(raw json.RawMessage) error {
			return enginetest.Do(ctx, e, workflow.Send(waiting, "paid", []any{1, raw}))
		},
		"broadcast": func(raw json.RawMessage) error { _, err := broadcast(ctx, e, "topic", raw); return err },
		"token":     func(raw json.RawMessage) error { return enginetest.Do(ctx, e, workflow.SendToken(token, raw)) },
	}
	for _, do := range []workflow.Kind{workflow.KindStart, workflow.KindAct, workflow.KindSend, workflow.KindBroadcast,
		workflow.KindToken, workflow.KindCancel} {
		entries["remote "+string(do)] = func(raw json.RawMessage) error {
			c := workflow.Command{Kind: do, Payload: raw}
			switch do {
			case workflow.KindStart:
				c.Workflow = "any"
			case workflow.KindAct:
				c.Item, c.Action = item, workitem.Complete
			case workflow.KindSend:
				c.Case, c.Event = waiting, "paid"
			case workflow.KindBroadcast:
				c.Event = "topic"
			case workflow.KindToken:
				c.Token = token
			case workflow.KindCancel:
				c.Case, c.Payload, c.Reason = id, nil, &workitem.Failure{Details: raw}
			}
			_, err := e.Do(ctx, c)
			return err
		}
	}
	before := journalLength(t, e)
	for name, enter := range entries {
		for _, garbage := range []string{bad, `"` + bad + `"`, `{"a":"` + bad + `"}`, `{"a`, `1 2`, "\x00it",
			`{"a":1,"a":2}`, `[1e400]`, strings.Repeat("[", 1001) + strings.Repeat("]", 1001)} {
			err := enter(json.RawMessage(garbage))
			require.Error(t, err, "%s: %q", name, garbage)
			require.Equal(t, "invalid-payload", engine.Code(err), "%s: %q: %v", name, garbage, err)
			_, invalid := errors.AsType[*domain.InvalidError](err)
			require.True(t, invalid, "%s: %q: %v", name, garbage, err)
		}
	}

	texts := map[string]func() error{
		"event":   func() error { return enginetest.Do(ctx, e, workflow.Send(waiting, bad, 1)) },
		"topic":   func() error { _, err := broadcast(ctx, e, bad, 1); return err },
		"key":     func() error { return enginetest.Do(ctx, e, workflow.Send(waiting, "paid", 1, workflow.Key(bad))) },
		"by":      func() error { return enginetest.Do(ctx, e, workflow.Send(waiting, "paid", 1, workflow.By(bad))) },
		"queue":   func() error { return enginetest.Do(ctx, e, workflow.AddItem(id, "work", nil, workflow.Queue(bad))) },
		"code":    func() error { return enginetest.Do(ctx, e, workflow.Cancel(id, &workitem.Failure{Code: bad})) },
		"message": func() error { return enginetest.Do(ctx, e, workflow.Cancel(id, &workitem.Failure{Message: bad})) },
	}
	for name, enter := range texts {
		err := enter()
		require.Equal(t, "invalid-payload", engine.Code(err), "%s: %v", name, err)
	}
	require.Equal(t, before, journalLength(t, e), "nothing has happened")
}

// The work of a job cannot hand in garbage either: it fails, and its failure can be kept.
func TestGarbageOfWorkIsAFailure(t *testing.T) {
	const bad = "\xff\xfe"
	raw := json.RawMessage(`"` + bad + `"`)
	for name, run := range map[string]func(context.Context, string) (any, error){
		"output": func(context.Context, string) (any, error) { return raw, nil },
		"step": func(ctx context.Context, _ string) (any, error) {
			return step.Do(ctx, "it", func(context.Context) (any, error) { return raw, nil })
		},
		"transaction": func(ctx context.Context, _ string) (any, error) {
			return step.Tx(ctx, "it", func(context.Context, domain.DB) (any, error) { return raw, nil })
		},
		"child": func(ctx context.Context, _ string) (any, error) { return step.Call[any](ctx, "it", "w", raw) },
		"failure": func(context.Context, string) (any, error) {
			return nil, &workitem.Failure{Code: bad, Message: bad, Details: raw}
		},
		"error": func(context.Context, string) (any, error) { return nil, fmt.Errorf("it is %s", bad) },
		"panic": func(context.Context, string) (any, error) { panic(bad) },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := function(t, "w", run)
			e := enginetest.New(t, w)
			id := start(t, e, w, "x")
			c, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, state.CaseFailed, c.State)
			text, err := json.Marshal(c.Failure)
			require.NoError(t, err)
			require.NoError(t, domain.CheckJSON(text))
		})
	}
}

func journalLength(t *testing.T, e *enginetest.Engine) (n int) {
	t.Helper()
	for _, err := range store.AllEntries(t.Context(), e, store.JournalFilter{}) {
		require.NoError(t, err)
		n++
	}
	return n
}
