package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workflow"
)

// A key is in an index of every database, which PostgreSQL bounds.
func TestAnIdempotencyKeyIsBounded(t *testing.T) {
	start := func(key string) error {
		c := workflow.Start("order", nil, workflow.Key(key))
		return c.Check()
	}
	require.NoError(t, start(strings.Repeat("k", workflow.MaxName)))
	err := start(strings.Repeat("k", workflow.MaxName+1))
	require.ErrorContains(t, err, "idempotency key")
	require.ErrorContains(t, err, "1000")
	require.ErrorContains(t, start("a\xff"), "idempotency key")
	require.ErrorContains(t, start("a\x00"), "idempotency key")
}
