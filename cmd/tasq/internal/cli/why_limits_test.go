package cli

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// The command line has no definitions, and knows what a function takes of limits: an engine has left that in the database.
func TestWhyNamesWhatAFunctionTakesOfLimits(t *testing.T) {
	t.Parallel()
	onEachStore(t, whyNamesLimits)
}

func whyNamesLimits(t *testing.T, db store.Opener, at string) {
	openai := limit.Rate("openai", 5, time.Minute, limit.SlidingWindow)
	length := func(s string) int64 { return int64(len(s)) }
	same := func(s string) string { return s }
	function := func(name string, needs ...builder.Need) *builder.FuncRef[string, string] {
		return builder.MustFunc(name, func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(needs...))
	}
	functions := []*builder.FuncRef[string, string]{
		function("plain", builder.Takes(openai, 3)),
		function("amount", builder.TakesOf(openai, length)),
		function("keyed", builder.TakesBy(limit.Resource("customers", 2), 1, same)),
		function("pool", builder.Takes(limit.Calls(9, time.Minute), 2).AnyOf("key-1", "key-2")),
		function("both", builder.Takes(openai, 1), builder.Takes(limit.Breaker("mail", 0.5, time.Minute, time.Minute), 0)),
		function("free"),
	}
	open := func() *engine.Engine {
		e, err := engine.Config{Workers: -1}.Open(t.Context(), db, functions[0], functions[1], functions[2], functions[3], functions[4], functions[5])
		require.NoError(t, err)
		return e
	}
	e := open()
	defer func() { require.NoError(t, e.Close()) }()
	names := []string{"plain", "amount", "keyed", "pool", "both", "free"}
	ids := make(map[string]string)
	for i, f := range functions {
		run, err := f.Run(t.Context(), e, "ada")
		require.NoError(t, err)
		ids[names[i]] = run.ID.String()
	}
	says := func(function, text string) {
		t.Helper()
		code, out, errs := tasq(t, at, "why", ids[function])
		require.Zero(t, code, errs)
		require.Contains(t, out, "item run.1.1 waits for "+text+", since")
	}
	worker := "a worker of the default queue"
	says("plain", worker+" and room for 3 of rate openai")
	says("amount", worker+" and room for as much of rate openai as its input says")
	says("keyed", worker+" and room for 1 of slots customers, by a key of its input")
	says("pool", worker+" and room for 2 of rate calls (of key-1 or key-2)")
	says("both", worker+" and room for 1 of rate openai and breaker mail")
	says("free", worker)

	for _, name := range []string{"openai", "customers"} {
		_, err := e.Do(t.Context(), workflow.SetLimit(name, 0))
		require.NoError(t, err)
	}
	says("plain", "3 of rate openai, which is paused")
	says("keyed", "1 of slots customers, by a key of its input, which is paused")
	_, err := e.Do(t.Context(), workflow.SetLimitOf("customers", "ada", 1))
	require.NoError(t, err)
	says("keyed", worker+" and room for 1 of slots customers, by a key of its input")

	require.NoError(t, e.Close())
	functions[0] = function("plain", builder.Takes(openai, 4))
	e = open()
	says("plain", "4 of rate openai, which is paused")
}

// Beside the program that runs the functions, tasq says until when a job waits for a limit that the program counts in its memory.
func TestWhySaysUntilWhenBesideTheProgram(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	same := func(s string) string { return s }
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(
		builder.Takes(limit.Rate("openai", 5, time.Hour, limit.SlidingWindow), 3)))
	keyed := builder.MustFunc("keyed", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(
		builder.TakesBy(limit.Calls(1, time.Hour), 1, same)))
	e, err := engine.Open(t.Context(), sqlite.File(db), f, keyed)
	require.NoError(t, err)
	second := func(f *builder.FuncRef[string, string]) string {
		run, err := f.Run(t.Context(), e, "ada")
		require.NoError(t, err)
		_, err = run.Result(t.Context(), e)
		require.NoError(t, err)
		run, err = f.Run(t.Context(), e, "ada")
		require.NoError(t, err)
		return run.ID.String()
	}
	id, of := second(f), second(keyed)
	require.Eventually(t, func() bool { // until its job is in the line
		code, out, errs := tasq(t, db, "why", id)
		require.Zero(t, code, errs)
		return regexp.MustCompile(`item run\.1\.1 waits for 3 of rate openai, free in 59m`).MatchString(out)
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		code, out, errs := tasq(t, db, "why", of)
		require.Zero(t, code, errs)
		return regexp.MustCompile(`item run\.1\.1 waits for 1 of rate calls, free in 59m[^(]* \(of ada\)`).MatchString(out)
	}, time.Minute, time.Millisecond)
	require.NoError(t, e.Close())
	code, out, errs := tasq(t, db, "why", id)
	require.Zero(t, code, errs)
	require.Contains(t, out, "and room for 3 of rate openai", "nothing counts it")
}

// What engines share is in the database: each of them, and tasq, says until when a job of another one waits.
func TestWhyOfASharedRateOnAnotherEngine(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(
		builder.Takes(limit.Rate("openai", 5, time.Hour, limit.SlidingWindow).Shared(), 3)))
	e, err := engine.Open(t.Context(), postgres.Open(dsn), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	other, err := engine.Open(t.Context(), postgres.Open(dsn), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	run, err := f.Run(t.Context(), e, "ada")
	require.NoError(t, err)
	_, err = run.Result(t.Context(), e)
	require.NoError(t, err)
	run, err = f.Run(t.Context(), e, "ada")
	require.NoError(t, err)
	until := regexp.MustCompile(`item run\.1\.1 waits for 3 of rate openai, free in (59m|1h)`)
	answer, err := other.Why(t.Context(), run.ID)
	require.NoError(t, err)
	require.Regexp(t, until, answer.String())
	code, out, errs := tasq(t, dsn, "why", run.ID.String())
	require.Zero(t, code, errs)
	require.Regexp(t, until, out)
}
