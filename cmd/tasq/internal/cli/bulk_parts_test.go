package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/bulk"
)

// More targets than an action may have are acted on in several actions.
func TestManyTargetsAreActedOnInParts(t *testing.T) {
	var parts [][]string
	act := func(part []string) (bulk.Result, error) {
		parts = append(parts, part)
		return bulk.Result{Done: len(part) - 1, Refused: []bulk.Refusal{{Target: part[0]}}, More: 1}, nil
	}
	all, err := inParts([]string{"a", "b", "c", "d", "e"}, 2, act)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"e"}}, parts)
	require.Equal(t, bulk.Result{Done: 2, Refused: []bulk.Refusal{{Target: "a"}, {Target: "c"}, {Target: "e"}}, More: 3}, all)
	failed := errors.New("interrupted")
	_, err = inParts([]string{"a", "b", "c"}, 1, func(part []string) (bulk.Result, error) { return bulk.Result{}, failed })
	require.ErrorIs(t, err, failed)
}
