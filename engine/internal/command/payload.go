package command

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
)

// CheckPayload refuses JSON that is longer than the limit, or that not every database keeps as it is. No payload at all is
// fine.
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
