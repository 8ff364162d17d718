package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// A setting that is made again without another reason keeps who made it, when and why, as the suspension of a case does; another reason,
// or another number, replaces all three.
func TestASettingThatIsMadeAgainKeepsItsReason(t *testing.T) {
	t.Parallel()
	slots := limit.Limit{Name: "bank", N: 5, Algorithm: limit.Slots, Each: 1}
	f := builder.MustFunc("work", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.TakesBy(slots, 1, func(s string) string { return s })))
	e := enginetest.New(t, f)
	for what, c := range map[string]struct {
		setting string
		read    func(json.RawMessage) (store.Decision, error)
		do      func(...workflow.Option) workflow.Command
		other   func(...workflow.Option) workflow.Command // sets something else; nil if there is nothing
	}{
		"queue": {store.QueueSetting + "mail", reader(func(v store.QueueValue) store.Decision { return v.Decision }),
			func(o ...workflow.Option) workflow.Command { return workflow.PauseQueue("mail", o...) }, nil},
		"key of a queue": {store.QueueSetting + "letters", reader(func(v store.QueueValue) store.Decision { return v.Keys["ada"] }),
			func(o ...workflow.Option) workflow.Command { return workflow.PauseKey("letters", "ada", o...) }, nil},
		"workers": {store.QueueSetting + "calls", reader(func(v store.QueueValue) store.Decision { return v.Workers.Decision }),
			func(o ...workflow.Option) workflow.Command { return workflow.SetWorkers("calls", 2, o...) },
			func(o ...workflow.Option) workflow.Command { return workflow.SetWorkers("calls", 3, o...) }},
		"limit": {store.LimitSetting + "bank", reader(func(v store.LimitValue) store.Decision { return v.Decision }),
			func(o ...workflow.Option) workflow.Command { return workflow.SetLimit("bank", 0, o...) },
			func(o ...workflow.Option) workflow.Command { return workflow.SetLimit("bank", 1, o...) }},
		"key of a limit": {store.LimitSetting + "bank", reader(func(v store.LimitValue) store.Decision { return v.Keys["ada"].Decision }),
			func(o ...workflow.Option) workflow.Command { return workflow.SetLimitOf("bank", "ada", 0, o...) },
			func(o ...workflow.Option) workflow.Command { return workflow.SetLimitOf("bank", "ada", 2, o...) }},
		"workflow": {store.WorkflowSetting + "work", reader(func(d store.Decision) store.Decision { return d }),
			func(o ...workflow.Option) workflow.Command { return workflow.SuspendWorkflow("work", o...) }, nil},
	} {
		step := func(command workflow.Command) (by, reason string, ago time.Duration) {
			t.Helper()
			e.Advance(time.Minute)
			require.NoError(t, enginetest.Do(t.Context(), e, command), what)
			d := decisionOf(t, e, c.setting, c.read)
			return d.By, d.Reason, e.Now().Sub(d.At)
		}
		same := func(wantBy, wantReason string, want time.Duration, command workflow.Command) {
			t.Helper()
			by, reason, ago := step(command)
			require.Equal(t, []any{wantBy, wantReason, want}, []any{by, reason, ago}, what)
		}
		same("ann", "the bank is closed", 0, c.do(workflow.By("ann"), workflow.Because("the bank is closed")))
		same("ann", "the bank is closed", time.Minute, c.do(workflow.By("bob")))
		same("ann", "the bank is closed", 2*time.Minute, c.do(workflow.By("bob"), workflow.Because("the bank is closed")))
		same("bob", "a holiday", 0, c.do(workflow.By("bob"), workflow.Because("a holiday")))
		if c.other != nil {
			same("cleo", "", 0, c.other(workflow.By("cleo")))
		}
	}
}

// reader returns what decodes a setting and returns a decision of it.
func reader[T any](of func(T) store.Decision) func(json.RawMessage) (store.Decision, error) {
	return func(raw json.RawMessage) (store.Decision, error) {
		var v T
		err := json.Unmarshal(raw, &v)
		return of(v), err
	}
}

// decisionOf returns the decision of a stored setting.
func decisionOf(t *testing.T, e *enginetest.Engine, name string, read func(json.RawMessage) (store.Decision, error)) (d store.Decision) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		all, err := r.Settings(t.Context())
		for _, s := range all {
			if err == nil && s.Name == name {
				d, err = read(json.RawMessage(s.Value))
			}
		}
		return err
	}))
	return d
}
