package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// MaxBody is the maximum size of a request body in bytes.
const MaxBody = 1 << 20

// command executes a command: the body is its JSON form, as another process leaves it. The user becomes its actor,
// regardless of the body.
func (a *API) command(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		Problem(w, err)
		return
	}
	body, dry, err := withoutDryRun(body)
	if err != nil {
		Problem(w, err)
		return
	}
	c, err := workflow.Decode(withReason(body))
	if _, invalid := errors.AsType[*domain.InvalidError](err); invalid {
		Problem(w, err)
		return
	}
	if err != nil {
		Problem(w, fmt.Errorf("the body is not a command: %w", err))
		return
	}
	u := access.UserOf(r.Context())
	c.Actor = u.Name
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		c.Key = key
	}
	if err := c.Check(); err != nil {
		Problem(w, err)
		return
	}
	if c.Kind == workflow.KindDryRun { // its answer has what the user may not see, in another form
		Problem(w, fmt.Errorf("%w: send the command itself, with \"dryRun\": true", workflow.ErrBadCommand))
		return
	}
	if !allow(w, u, string(c.Kind), access.TargetOf(&c)) {
		return
	}
	if dry {
		a.dryRun(w, r, c)
		return
	}
	result, err := a.Backend.Do(r.Context(), c)
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, result)
}

// withReason returns a body whose reason is an object, also if it was given as text, as in the bodies of other addresses.
func withReason(body []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return body // the command is refused with its own message
	}
	var text string
	if raw := fields["reason"]; raw == nil || json.Unmarshal(raw, &text) != nil || domain.CheckForm[workflow.Command](body) != nil {
		return body
	}
	reason, err := json.Marshal(workitem.Failure{Message: text})
	if err != nil {
		return body
	}
	fields["reason"] = reason
	if changed, err := json.Marshal(fields); err == nil {
		return changed
	}
	return body
}
