package engine

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
)

// checkPayload refuses JSON that is longer than the limit, or that not every database keeps as it is. No payload at all is
// fine.
func (e *Engine) checkPayload(what string, data json.RawMessage) error {
	if len(data) > e.cfg.MaxPayload {
		return fmt.Errorf("%w: the %s has %d bytes and at most %d are allowed; keep large data elsewhere and pass a reference",
			ErrTooLarge, what, len(data), e.cfg.MaxPayload)
	}
	if len(data) == 0 {
		return nil
	}
	if err := domain.CheckJSON(data); err != nil {
		return fmt.Errorf("the %s: %w", what, err)
	}
	return nil
}
