package command

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
)

// CheckPayload returns an error for JSON that is longer than the limit, or that some database would not store
// unchanged, such as a NUL character. An absent payload is valid.
func (x *Executor) CheckPayload(what string, data json.RawMessage) error {
	if len(data) > x.o.MaxPayload {
		return fmt.Errorf("%w: the %s has %d bytes and at most %d are allowed; keep large data elsewhere and pass a reference",
			domain.ErrTooLarge, what, len(data), x.o.MaxPayload)
	}
	if len(data) == 0 {
		return nil
	}
	if err := domain.CheckJSON(data); err != nil {
		return fmt.Errorf("the %s: %w", what, err)
	}
	return nil
}
