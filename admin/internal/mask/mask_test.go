package mask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Each payload of each record and of each change is masked, also those that few pages show. Tokens are never shown.
func TestEachPayloadIsMasked(t *testing.T) {
	m := mask.Mask(func(string, string, json.RawMessage) json.RawMessage { return json.RawMessage(`"masked"`) })
	raw := func() json.RawMessage { return json.RawMessage(`"secret"`) }
	failure := func() *workitem.Failure { return &workitem.Failure{Code: "c", Details: raw()} }
	for n, shown := range map[int][]any{
		6: {m.Case(&state.Case{Input: raw(), Output: raw(), Options: raw(), Failure: failure(), Key: "secret", Labels: map[string]string{"a": "secret"}})},
		3: {m.Item(&workitem.Item{Input: raw(), Output: raw(), Failure: failure()}), m.Step(&workitem.Step{Input: raw(), Result: raw(), Failure: failure()})},
		2: {m.Job(&state.Job{Input: raw(), Failure: failure()}), m.Change(&state.CaseEnded{Output: raw(), Failure: failure()}),
			m.Change(&state.ItemMoved{Output: raw(), Failure: failure()}), m.Change(&state.StepMoved{Result: raw(), Failure: failure()}),
			m.Change(&state.JobOpened{Job: &state.Job{Input: raw(), Failure: failure()}}),
			m.Answer(&why.Answer{Failure: failure(), Waits: []why.Wait{{Failure: failure()}}})},
		1: {m.Limits([]workflow.LimitInfo{{Holders: []workflow.LimitHolder{{Key: "secret"}}}}),
			m.Message(&state.Message{Value: raw()}), m.Incident(&store.Incident{Failure: failure()}), m.Change(&state.JobMoved{Failure: failure()}),
			m.Change(&state.MessageSent{Message: &state.Message{Value: raw()}}), m.PausedKeys("q", []workflow.PausedKey{{Key: "secret"}}),
			m.Entry(&store.Entry{Setting: &store.SettingChange{Setting: "queue/q", Values: []store.ValueChange{{Key: "secret"}}}})},
		0: {m.Step(&workitem.Step{Kind: workitem.StepToken, Result: raw()}),
			mask.Mask(nil).Step(&workitem.Step{Kind: workitem.StepToken, Result: raw()}),
			mask.Mask(nil).Change(&state.StepOpened{Step: &workitem.Step{Kind: workitem.StepToken, Result: raw()}}), m.Entry(&store.Entry{Answer: raw()})},
	} {
		for _, s := range shown {
			b, err := json.Marshal(s)
			require.NoError(t, err)
			require.NotContains(t, string(b), "secret", "%T", s)
			require.Equal(t, n, count(string(b)), "%T: %s", s, b)
		}
	}
}

func count(text string) int { return strings.Count(text, "masked") }
