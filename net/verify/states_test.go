package verify_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// What comes after many states is found as well as what comes early, by a shortest run: so many branches run side by
// side that there are a thousand states before they meet.
func TestManyStatesBeforeTheFault(t *testing.T) {
	const branches = 10
	meet := func(behind ...[3][]string) *net.Petri {
		var split, joined []string
		var all [][3][]string
		for b := range branches {
			a, z := fmt.Sprintf("a%d", b), fmt.Sprintf("z%d", b)
			split, joined = append(split, a), append(joined, z)
			all = append(all, [3][]string{{a}, {z}})
		}
		all = append(all, [3][]string{{"i"}, split}, [3][]string{joined, {"x", "y"}})
		return petri(map[string]int{"i": 1}, append(all, behind...)...)
	}
	for _, c := range []struct {
		name, finding string
		p             *net.Petri
		steps         int
	}{
		{"two tokens in a place", "unsafe c",
			meet([3][]string{{"x"}, {"c"}}, [3][]string{{"y"}, {"c"}}, [3][]string{{"c"}, {"o"}}), branches + 4},
		{"the same place named twice", "unsafe c",
			meet([3][]string{{"x", "y"}, {"c", "c"}}, [3][]string{{"c"}, {"o"}}), branches + 3},
		{"one token is left", "improper-completion",
			meet([3][]string{{"x"}, {"o"}}, [3][]string{{"y"}, {"y2"}}, [3][]string{{"y2"}, {"o"}}), branches + 3},
		{"a choice that leads to a deadlock", "no-option-to-complete",
			meet([3][]string{{"x"}, {"c"}}, [3][]string{{"x"}, {"d"}}, [3][]string{{"c", "y"}, {"o"}}), branches + 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := verify.Petri(c.p, verify.Options{})
			require.Equal(t, verify.Unsound, rep.Verdict)
			require.Contains(t, codesOf(rep), c.finding)
			require.Greater(t, rep.States, 1<<branches)
			for _, f := range rep.Findings {
				if f.String() == c.finding {
					require.Len(t, f.Witness.Steps, c.steps)
					require.False(t, f.Witness.Long)
					replayPetri(t, c.p, f)
				}
			}
		})
	}
}
