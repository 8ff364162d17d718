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

// The badges of a case count its incidents as the page Incidents does: a case without a way to its end is none.
func TestTheBadgesOfACase(t *testing.T) {
	a := &why.Answer{Waits: []why.Wait{{Kind: why.Incident}, {Kind: why.Stuck}, {Kind: why.Retry}, {Kind: why.Incident}, {Kind: why.Person}}}
	require.Equal(t, []badge{{"incident", "2 incidents"}, {"stuck", "cannot go on"}, {"retry", "1 waiting for another attempt"}}, badges(a))
	require.Equal(t, []badge{{"stuck", "cannot go on"}}, badges(&why.Answer{Waits: []why.Wait{{Kind: why.Stuck}}}))
	require.Empty(t, badges(&why.Answer{Waits: []why.Wait{{Kind: why.Person}}}))
}
