package step

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Token creates a token with which one event can be sent to the case from outside, once: for a link in a mail, or
// the callback URL of a payment service. It cannot be guessed. A replay returns the same token.
//
//	token, err := step.Token(ctx, "approval link", "approved")
//	// mail it, then
//	ok, err := step.Await[bool](ctx, "approved")
func Token(ctx context.Context, name, event string) (string, error) {
	at := here()
	ask := workitem.Step{Name: name, Kind: workitem.StepToken, Target: event}
	return perform[string](ctx, at, ask, nil, nil, func(c *call) (*workitem.Step, error) {
		if err := checkName(event); err != nil {
			return nil, c.run.misuse("step %q, at %s: the event: %v", name, place(at), err)
		}
		return c.token()
	})
}

// token records the step, to which the journal gives its text.
func (c *call) token() (*workitem.Step, error) {
	r := c.run
	r.mu.Lock()
	s, err := c.turn(time.Time{})
	r.mu.Unlock()
	c.writeLines()
	if s != nil || err != nil {
		return s, err
	}
	ask := *c.ask
	ask.State = workitem.StepDone
	if _, err := r.record(&ask); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.final(), nil
}
