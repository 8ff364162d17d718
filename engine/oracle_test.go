package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// reporter is a test that notes its first failure, and ends there.
type reporter struct{ failure string }

// Errorf implements require.TestingT.
func (r *reporter) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

// FailNow implements require.TestingT.
func (r *reporter) FailNow() { panic(r) }

// difference returns the first failure of a comparison; "" if it has none.
func difference(compare func(require.TestingT)) (failure string) {
	r := new(reporter)
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		failure = r.failure
	}()
	compare(r)
	return ""
}

// shown are the seeds of plays that are known to show the faults that few plays show; the search begins there.
var shown = map[string]int{"waits for no time": 27, "takes the latest event": 41}

// requireDifference requires that a comparison with a wrong model fails for one of some random plays. Otherwise the fault that
// the model has could as well be one of the engine, and the comparison would not see it.
func requireDifference(t *testing.T, wrong string, play func(*testing.T, *rapid.T, require.TestingT)) {
	t.Helper()
	t.Run(wrong, func(t *testing.T) {
		t.Parallel()
		played := rapid.Custom(func(rt *rapid.T) string {
			return difference(func(c require.TestingT) { play(t, rt, c) })
		})
		for seed := range 300 {
			if played.Example(shown[wrong]+seed) != "" {
				return
			}
		}
		require.Fail(t, "no play shows the fault")
	})
}
