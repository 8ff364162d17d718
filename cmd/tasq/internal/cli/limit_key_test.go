package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

func TestTheLimitOfAKeyIsSetByCommand(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.TakesBy(limit.Rate("customers", 5, time.Minute, limit.SlidingWindow), 1, func(s string) string { return s })))
	e, err := engine.Open(t.Context(), sqlite.File(db), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := tasq(t, db, args...)
		require.Zero(t, code, errs)
		return out
	}
	require.Contains(t, must("limit", "set", "customers", "0", "--key", "ada", "--by", "ann"), "limit customers of ada is set to 0")
	require.Contains(t, must("limit", "set", "customers", "20", "--key", "eve"), "limit customers of eve is set to 20")
	require.Regexp(t, `(?m)^customers +in 1m, sliding window +5 +5 .*\ncustomers +key ada +0 +5 +paused *\ncustomers +key eve +20 +5 *$`, must("limits"))
	var l workflow.LimitInfo
	require.NoError(t, json.Unmarshal([]byte(must("limits", "-o", "json")), &l))
	require.Equal(t, "ann", l.Set[0].By)

	run, err := f.Run(t.Context(), e, "ada")
	require.NoError(t, err)
	require.NoError(t, e.Drain(t.Context()))
	must("limit", "set", "customers", "5", "--key", "ada")
	_, err = run.Result(t.Context(), e)
	require.NoError(t, err)
	require.NotContains(t, must("limits"), "ada")
	code, _, errs := tasq(t, db, "limit", "set", "customers", "5", "--key", "")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--key is empty: give a value, or leave it out")
}
