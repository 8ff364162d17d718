package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func TestDeadLettersAreRedrivenByCommand(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	charge := builder.MustFunc("charge", func(_ context.Context, n int) (int, error) {
		if up.Load() {
			return n, nil
		}
		return 0, &workitem.Failure{Code: "no-funds"}
	}, builder.DeadLetter(builder.MustLetters("letters")), builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	db := filepath.Join(t.TempDir(), "s.db")
	e, err := engine.Open(t.Context(), sqlite.File(db), charge)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for n := range 4 {
		_, err := charge.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	require.NoError(t, e.Drain(t.Context()))
	up.Store(true)
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := tasq(t, db, args...)
		require.Zero(t, code, errs)
		return out
	}

	letters := strings.Split(strings.TrimSpace(must("cases", "--label", "dead-letter-of=charge", "-o", "csv")), "\n")
	require.Len(t, letters, 5)
	one, _, _ := strings.Cut(letters[1], ",")
	require.Contains(t, must("redrive", one, "--reason", "the account is filled", "--by", "ann"), "of charge goes on")
	require.Contains(t, must("history", one), "the account is filled")
	require.Contains(t, must("redrive", "--of", "charge"), "3 dead letters would be acted on")
	require.Contains(t, must("redrive", "--code", "other"), "there is no dead letter that matches")
	require.Contains(t, must("redrive", "--of", "charge", "--code", "no-funds", "--all", "--by", "ann"), "3 dead letters done, 0 refused")
	require.Contains(t, must("redrive", "--all"), "there is no dead letter that matches")
	require.NoError(t, e.Drain(t.Context()))
	require.Equal(t, 5, strings.Count(must("cases", "--workflow", "charge", "--state", "completed"), "\n"), "four and the title")

	id, err := charge.Start(t.Context(), e, 1)
	require.NoError(t, err)
	code, _, errs := tasq(t, db, "redrive", id.String())
	require.Equal(t, ExitNotFound, code)
	require.Contains(t, errs, workflow.LabelLetter)
}

// With --queue the letters are redriven by the next program that has their functions.
func TestRedriveOfAllDeadLettersByTheNextOwner(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	charge := builder.MustFunc("charge", func(_ context.Context, n int) (int, error) {
		if up.Load() {
			return n, nil
		}
		return 0, &workitem.Failure{Code: "no-funds"}
	}, builder.DeadLetter(builder.MustLetters("letters")), builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	db := filepath.Join(t.TempDir(), "s.db")
	e, err := engine.Open(t.Context(), sqlite.File(db), charge)
	require.NoError(t, err)
	for n := range 3 {
		_, err := charge.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	require.NoError(t, e.Drain(t.Context()))
	require.NoError(t, e.Close())

	code, _, errs := tasq(t, db, "redrive", "--all", "--queue", "--by", "ann")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "3 commands left in ")

	up.Store(true)
	e, err = engine.Open(t.Context(), sqlite.File(db), charge)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	code, _, errs = tasq(t, db, "case", "start", "charge", "--data", "9")
	require.Zero(t, code, errs) // it was executed after the commands that were left
	require.NoError(t, e.Drain(t.Context()))
	_, out, _ := tasq(t, db, "cases", "--workflow", "charge", "--state", "completed")
	require.Equal(t, 5, strings.Count(out, "\n"), "three letters, the last start and the title")
	require.NoError(t, integrity.Check(t.Context(), e))
}

func TestTheSameAgainByCommand(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	f := builder.MustFunc("nap", func(_ context.Context, s string) (string, error) { return s, nil })
	e, err := engine.Open(t.Context(), sqlite.File(db), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	start := func(more ...string) (int, string, string) {
		return tasq(t, db, append([]string{"case", "start", "nap", "--data", `"a"`, "--business-key", "ada", "--after", "20d"}, more...)...)
	}
	code, first, errs := start("--if-taken", "refuse")
	require.Zero(t, code, errs)
	code, same, errs := start("--if-taken", "return")
	require.Zero(t, code, errs)
	require.Equal(t, first, same)
	code, _, errs = start("--if-taken", "refuse")
	require.Equal(t, ExitRefused, code, errs)
	code, second, errs := start("--if-taken", "replace")
	require.Zero(t, code, errs)
	require.NotEqual(t, first, second)
	code, queued, errs := tasq(t, db, "case", "start", "nap", "--data", `"b"`, "--business-key", "ada", "--if-taken", "queue", "-o", "json")
	require.Zero(t, code, errs)
	var waits struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(queued), &waits))
	_, text, _ := tasq(t, db, "why", waits.ID)
	require.Contains(t, text, "the case begins when case ")
	require.Contains(t, text, " has ended, which has the key ada too")
	code, daily, errs := start("--once-per", "month", "--zone", "Europe/Berlin")
	require.Zero(t, code, errs)
	code, again, errs := start("--once-per", "month", "--zone", "Europe/Berlin", "--if-taken", "return")
	require.Zero(t, code, errs)
	require.Equal(t, daily, again)
	debounced := []string{"case", "start", "nap", "--data", `"a"`, "--business-key", "bob", "--debounce", "5d", "--debounce-max", "9d"}
	code, first, errs = tasq(t, db, debounced...)
	require.Zero(t, code, errs)
	code, second, errs = tasq(t, db, debounced...)
	require.Zero(t, code, errs)
	_, text, _ = tasq(t, db, "why", strings.TrimSpace(first))
	require.Contains(t, text, "is canceled (replaced: a start with the same business key takes its place)")
	_, text, _ = tasq(t, db, "why", strings.TrimSpace(second))
	require.Regexp(t, "the case begins in (5d|4d23h.*), at .*, unless another start with its key takes its place", text)
	code, _, errs = start("--if-taken", "juggle")
	require.NotZero(t, code, errs)
	require.Contains(t, errs, "refuse")
}
