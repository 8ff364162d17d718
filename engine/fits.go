package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// fits refuses what must not come in: what is longer than the limit, or no JSON that every database keeps as it is. Nothing
// at all is fine.
func (e *Engine) fits(what string, data json.RawMessage) error {
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

// reasonFits refuses a reason that a command gives and a store could not keep. It may be nil.
func (e *Engine) reasonFits(f *workitem.Failure) error {
	if f == nil {
		return nil
	}
	return errors.Join(isText("code of the reason", f.Code), isText("message of the reason", f.Message),
		e.fits("details of the reason", f.Details))
}

// isText refuses a text that is not UTF-8: a store would put other characters in its place.
func isText(what, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return fmt.Errorf("the %s: %w", what, &domain.InvalidError{Type: "text", Err: errNotText})
}

var errNotText = errors.New("not UTF-8")
