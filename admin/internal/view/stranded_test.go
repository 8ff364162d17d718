package view

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
)

// The doctor looks at no other case once its time has ended, so that a page with large nets is made nevertheless.
func TestAnExaminationEndsWithItsTime(t *testing.T) {
	half, cancel := context.WithCancel(t.Context())
	v := &inTime{store.ViewerOf(nil), half}
	looked := 0
	look := func(store.Reader) error {
		if looked++; looked == 3 {
			cancel()
		}
		return nil
	}
	for range 10 {
		if err := v.View(t.Context(), look); err != nil {
			require.ErrorIs(t, err, why.ErrMore)
			break
		}
	}
	require.Equal(t, 3, looked)
}
