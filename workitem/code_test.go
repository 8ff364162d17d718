package workitem_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workitem"
)

// A database finds failures by their codes, which not every one can do by codes of any length.
func TestALongCodeIsCut(t *testing.T) {
	code := strings.Repeat("ü", 150)
	f := workitem.FailureOf(workitem.Failf(code, "words"))
	require.Equal(t, strings.Repeat("ü", 100), f.Code)
	require.Equal(t, "words", f.Message)
}
