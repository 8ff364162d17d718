package fakechat_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, o := range map[string]fakechat.Options{
		"an answer cannot have -1 words":          {Words: -1},
		"chance 1.5 is not between 0 and 1":       {Chance: 1.5},
		"chance NaN is not between 0 and 1":       {Chance: math.NaN()},
		"the sample text has no words":            {Text: " -- ... "},
		`fault "mode(99)": there is no such mode`: {Faults: []fakechat.Fault{{Mode: 99}}},
		`fault "slow -1s": a wait cannot be negative`: {
			Among: []fakechat.Fault{{Mode: fakechat.Slow, Wait: -time.Second}}},
	} {
		_, err := fakechat.Start(o)
		require.ErrorContains(t, err, "fake chat server: "+want)
	}
}

func TestFaultNotation(t *testing.T) {
	const script = "ok, limit 2s, limit 1m0s date, error, refuse, hang 5s, slow 1ms, cut, drop, garbage, shape, empty"
	var back []string
	for _, f := range faults(t, script) {
		back = append(back, f.String())
	}
	require.Equal(t, script, strings.Join(back, ", "))
	require.Empty(t, faults(t, "  "))
	for bad, why := range map[string]string{
		"boom":       `there is no mode "boom"`,
		"error,":     "a mode is missing between commas",
		"limit soon": `"soon" is neither a duration`,
		"cut 2s":     "cut takes no time",
		"error date": "error has no date",
		"hang -2s":   "a wait cannot be negative",
	} {
		_, err := fakechat.ParseFaults(bad)
		require.ErrorContains(t, err, why)
	}
}
