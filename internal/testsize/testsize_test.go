package testsize_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	_ "pgregory.net/rapid" // has the flag

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestSizes(t *testing.T) {
	usual := 2
	if testing.Short() {
		usual = 1
	}
	t.Setenv("TASQ_NIGHTLY", "")
	require.Equal(t, usual, testsize.Pick(1, 2, 3))
	t.Setenv("TASQ_NIGHTLY", "1")
	require.True(t, testsize.Nightly())
	require.Equal(t, 3, testsize.Pick(1, 2, 3))
}

// The number of checks is that of the form, and the command line wins.
func TestTheCommandLineSetsTheChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	t.Setenv("TASQ_NIGHTLY", "")
	testsize.Checks(7, 7)
	require.Equal(t, "7", checks.String())
	require.NoError(t, checks.Set(before))
}
