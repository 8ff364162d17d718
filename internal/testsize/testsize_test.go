package testsize_test

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	_ "pgregory.net/rapid" // has the flag

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		long, nightly string
		want          int
	}{{"", "", 1}, {"1", "", 2}, {"", "1", 3}, {"1", "1", 3}} {
		t.Setenv("TASQ_LONG", c.long)
		t.Setenv("TASQ_NIGHTLY", c.nightly)
		require.Equal(t, c.want, testsize.Pick(1, 2, 3))
		require.Equal(t, c.want >= 2, testsize.Long())
		require.Equal(t, c.want == 3, testsize.Nightly())
	}
}

// The parts of a test are disjoint, and have all inputs.
func TestParts(t *testing.T) {
	tried := make(map[int]int)
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		t.Setenv("TASQ_PART", part)
		for input := range 100 {
			if testsize.InPart(input) {
				tried[input]++
			}
		}
	}
	require.Len(t, tried, 100)
	for input, times := range tried {
		require.Equal(t, 1, times, input)
	}
	t.Setenv("TASQ_PART", "")
	require.True(t, testsize.InPart(7))
	for _, wrong := range []string{"4/3", "0/3", "1", "x/3", "1/0"} {
		t.Setenv("TASQ_PART", wrong)
		require.PanicsWithValue(t, "TASQ_PART is \""+wrong+"\"; give a part and how many there are, such as 2/3", func() { testsize.InPart(7) })
	}
}

// The number of checks is that of the form, and the command line wins.
func TestTheCommandLineSetsTheChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	t.Setenv("TASQ_LONG", "")
	t.Setenv("TASQ_NIGHTLY", "")
	t.Setenv("TASQ_SKIP", "")
	testsize.Checks(7, 8)
	require.Equal(t, "7", checks.String())
	require.NoError(t, checks.Set(before))
}

// TASQ_SKIP is what -skip would say.
func TestSkippedTests(t *testing.T) {
	skip := flag.Lookup("test.skip").Value
	before := skip.String()
	t.Cleanup(func() { require.NoError(t, skip.Set(before)) })
	t.Setenv("TASQ_SKIP", "^TestLong$")
	testsize.Apply()
	require.Equal(t, "^TestLong$", skip.String())
}

// A TMPDIR that is set is where files are; without it they are in memory where that has room, and the folder is there in any case.
func TestTempFolder(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("TMPDIR", mine)
	if runtime.GOOS != "windows" {
		require.Equal(t, mine, testsize.TempFolder())
	}
	t.Setenv("TMPDIR", "")
	folder := testsize.TempFolder()
	require.DirExists(t, folder)
	testsize.TempInMemory()
	require.Equal(t, folder, os.TempDir())
}
