package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// newTown is an office that has something for each page to show, and for each form to act on.
func newTown(t testing.TB, text string) *office {
	t.Helper()
	mail := builder.MustFunc("mail", func(_ context.Context, s string) (string, error) { return s, nil }, builder.OnQueue("mails"),
		builder.Limits(builder.Takes(limit.Calls(100, time.Minute), 3), builder.TakesBy(limit.Resource("customers", 5), 1, func(s string) string { return s })))
	daily := schedules.New(engine.Code, builder.Schedule(schedule.Schedule{Name: "a/b 100%", Cron: "0 8 * * *"}, mail, "all"),
		builder.Schedule(schedule.Schedule{Name: "paused", Every: time.Hour}, mail, "none"))
	charge := builder.MustFunc("charge", func(context.Context, int) (int, error) { return 0, &workitem.Failure{Code: "no-funds", Message: text} },
		builder.DeadLetter(builder.MustLetters("letters")), builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	b := builder.New[any]("timed")
	b.Path(b.Start(), builder.Task(b, "wait", builder.Work[any, any]{Timers: []activities.Timer{{Name: "remind", After: time.Minute,
		Task: func(context.Context, *activities.Activation) error { return errors.New(text) }}}}), b.End())
	o := &office{bulk: bulk.New(engine.Code)}
	o.Engine = enginetest.New(t, append(workflows(t, texts{text, text, text, text, text}), o.bulk, mail, daily, charge, b.MustBuild())...)
	o.bulk.Serve(o.Engine)
	_, err := daily.Serve(t.Context(), o.Engine.Engine)
	require.NoError(t, err)
	o.act(t, texts{text, text, text, text, text})
	for _, c := range []workflow.Command{
		workflow.Start("timed", []byte(`{}`)), workflow.Start("charge", []byte(`1`)), workflow.Start("mail", []byte(`"ada"`)),
		workflow.SetLimitOf("customers", text, 7), workflow.PauseQueue("models", workflow.By(text)),
	} {
		require.NoError(t, enginetest.Do(t.Context(), o, c))
	}
	started, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`), workflow.BusinessKey(text[:min(len(text), 200)]), workflow.Label("customer", text[:min(len(text), 200)])))
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Suspend(started.Case, workflow.By(text), workflow.Because(text))))
	require.NoError(t, schedules.Pause(t.Context(), o, "paused", workflow.By(text)))
	_, err = o.Do(t.Context(), workflow.Send(o.order, text, json.RawMessage(`1`)))
	require.NoError(t, err)
	o.Drain()
	o.Advance(time.Hour)
	return o
}
