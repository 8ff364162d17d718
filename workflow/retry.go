package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
)

// policyDoc is a retry policy as a run keeps it. Durations are nanoseconds, the rest are the numbers of package retry.
type policyDoc struct {
	Attempts   int             `json:"attempts"`
	Backoff    uint8           `json:"backoff,omitempty"`
	Initial    time.Duration   `json:"initial,omitempty"`
	Base       float64         `json:"base,omitempty"`
	Waits      []time.Duration `json:"waits,omitempty"`
	MaxWait    time.Duration   `json:"maxWait,omitempty"`
	MaxElapsed time.Duration   `json:"maxElapsed,omitempty"`
	Jitter     uint8           `json:"jitter,omitempty"`
	Spread     float64         `json:"spread,omitempty"`
}

// EncodeRetry returns a policy as [Options] keep it, without its functions.
func EncodeRetry(p retry.Policy) (json.RawMessage, error) {
	return json.Marshal(policyDoc{Attempts: p.Attempts, Backoff: uint8(p.Backoff), Initial: p.Initial, Base: p.Base, Waits: p.Waits,
		MaxWait: p.MaxWait, MaxElapsed: p.MaxElapsed, Jitter: uint8(p.Jitter), Spread: p.Spread})
}

// RetryPolicy changes the retry policy of what a [Retry] or a [Resume] tries again: of the item, or of each item that replaces a
// failed one. The changes apply to the policy of its task, or to what an earlier repair made of it, field by field, and are stored with
// the item; retries take them over, later activations of the task do not. The attempts count anew: with 5 Attempts, five follow, the
// one of this command included. If the task has no policy, the waits begin at 250 ms and double. The zero value changes nothing, and
// begins a new count. The error of the command wraps [ErrBadCommand] if the policy is invalid.
//
//	attempts := 5
//	e.Do(ctx, workflow.Retry(item, nil, workflow.RetryPolicy(retry.Changes{Attempts: &attempts})))
func RetryPolicy(c retry.Changes) Option { return set(func(cmd *Command) { cmd.Retry = &c }) }

// RetryOf returns the policy of a run: its own, with the functions of the definition's, or the definition's.
func RetryOf(c activities.CaseInfo, defined retry.Policy) (retry.Policy, error) {
	o, err := OptionsOf(c)
	if err != nil || len(o.Retry) == 0 {
		return defined, err
	}
	var d policyDoc
	if err := json.Unmarshal(o.Retry, &d); err != nil {
		return defined, fmt.Errorf("the retry policy of case %s (%s) cannot be read: %w", c.ID, c.Workflow, err)
	}
	return retry.Policy{Attempts: d.Attempts, Backoff: retry.Backoff(d.Backoff), Initial: d.Initial, Base: d.Base, Waits: d.Waits,
		MaxWait: d.MaxWait, MaxElapsed: d.MaxElapsed, Jitter: retry.Jitter(d.Jitter), Spread: d.Spread,
		Filters: defined.Filters, Rand: defined.Rand}, nil
}
