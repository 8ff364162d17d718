package step

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Token makes a token with which one event can be sent to the case from outside, once: a link in a mail, the address
// that a payment service calls back. It can't be guessed. The same token is returned every time that the job runs.
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
