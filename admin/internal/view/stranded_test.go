package view

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// The doctor looks at no other case once its time has ended, so that a page with large nets is made all the same.
func TestAnExaminationEndsWithItsTime(t *testing.T) {
	half, cancel := context.WithCancel(t.Context())
	v := &examined{store.ViewerOf(nil), maxExamined, half}
	looked := 0
	look := func(store.Reader) error {
		if looked++; looked == 3 {
			cancel()
		}
		return nil
	}
	for range maxExamined {
		if err := v.View(t.Context(), look); err != nil {
			require.ErrorIs(t, err, errExamined)
			break
		}
	}
	require.Equal(t, 3, looked)
}
