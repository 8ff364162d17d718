package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The name was copied with the line. Without an error each mail would be a text message, since a fingerprint knows no
// code.
func TestTwoWorkflowsOfOneNameAreRefused(t *testing.T) {
	send := func(context.Context, string) (int, error) { return 1, nil }
	mail, text := builder.MustFunc("send", send), builder.MustFunc("send", send)
	_, err := engine.Open(t.Context(), sqlite.Memory(), mail, text)
	require.Regexp(t, `^there are two workflows send \(define_test.go:\d+\) and send \(define_test.go:\d+\): `, err.Error())

	other := builder.MustFunc("send", send, builder.OnQueue("texts"))
	_, err = engine.Open(t.Context(), sqlite.Memory(), mail, other)
	require.ErrorContains(t, err, "give the other another name")

	next := builder.MustFunc("send", send, builder.Version("2"))
	e, err := engine.Open(t.Context(), sqlite.Memory(), mail, next, mail)
	require.NoError(t, err, "two versions are one workflow, and the same one may be given twice")
	require.NoError(t, e.Close())
}

// A function that builds a workflow builds its children, too: they are alike, and one serves for all.
func TestAChildThatIsBuiltTwiceIsOne(t *testing.T) {
	parent := func(name string) *builder.Workflow[string] {
		c := builder.New[string]("child")
		c.Path(c.Start(), builder.Task(c, "work", builder.Work[string, string]{Input: builder.CaseInput(c)}), c.End())
		child, err := c.Build()
		require.NoError(t, err)
		b := builder.New[string](name)
		b.Path(b.Start(), builder.Composite(b, "sub", child, builder.Cases[string]{Input: builder.CaseInput(b)}), b.End())
		w, err := b.Build()
		require.NoError(t, err)
		return w
	}
	e, err := engine.Open(t.Context(), sqlite.Memory(), parent("a"), parent("b"))
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// unserved lists what an engine was not opened with.
func unserved(t *testing.T, e *engine.Engine) (list []why.Unserved) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		list, err = why.ReadUnserved(t.Context(), r, e.Here())
		return err
	}))
	return list
}

// Whichever of the versions is given first, the one that changed under its cases is found; and cases of a version that
// is not there at all are reported.
func TestCasesOfOtherVersionsAreReported(t *testing.T) {
	wait := func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "go") }
	o := sqlite.Memory()
	first := builder.MustFunc("waiting", wait)
	e, err := engine.Open(t.Context(), o, first)
	require.NoError(t, err)
	run, err := first.Run(t.Context(), e, 1)
	require.NoError(t, err)
	require.NoError(t, e.Close())

	changed := builder.MustFunc("waiting", wait, builder.OnQueue("q"))
	second := builder.MustFunc("waiting", wait, builder.Version("2"))
	_, err = engine.Open(t.Context(), o, changed, second)
	require.ErrorIs(t, err, engine.ErrDrift)
	_, err = engine.Open(t.Context(), o, second, changed)
	require.ErrorIs(t, err, engine.ErrDrift)

	var log bytes.Buffer
	cfg := engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	e, err = cfg.Open(t.Context(), o, second)
	require.NoError(t, err)
	require.Equal(t, []why.Unserved{{Workflow: "waiting", Fingerprint: first.Untyped().Fingerprint, Cases: 1,
		Items: map[string]int64{"run": 1}}}, unserved(t, e))
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{}) {
		require.NoError(t, err)
		err = enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Fail, nil))
		refused, ok := errors.AsType[*engine.NotLoadedError](err)
		require.True(t, ok, err)
		require.Equal(t, engine.NotLoadedError{Case: run.ID, Workflow: "waiting",
			Fingerprint: first.Untyped().Fingerprint}, *refused)
		require.ErrorIs(t, err, engine.ErrUnknown)
		require.Equal(t, "not-loaded", engine.Code(err))
	}
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, "go", 7)))
	require.NoError(t, e.Drain(t.Context()))
	require.NoError(t, e.Close())
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	require.Contains(t, log.String(), "live cases of a definition that the engine was not opened with")
	require.Contains(t, log.String(), `workflow=waiting version="" cases=1 items=map[run:1]`)

	log.Reset()
	e, err = cfg.Open(t.Context(), o, second, first)
	require.NoError(t, err)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 7, got)
	require.Empty(t, unserved(t, e))
	require.NoError(t, e.Close())
	require.Empty(t, log.String())
}

func TestFunctionsThatAreNilAreRefused(t *testing.T) {
	e := enginetest.New(t)
	require.ErrorContains(t, e.Update(t.Context(), nil), "it is nil")
	require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil }, nil), "no option")
	require.ErrorContains(t, e.View(t.Context(), nil), "it is nil")
}

// An output that is too large fails its attempt with the same code as a step's.
func TestAnOutputThatIsTooLargeHasACode(t *testing.T) {
	a := builder.MustFunc("long", func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil })
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{MaxPayload: 100}, a)
	for _, n := range []int{200, 2 << 20} {
		run, err := a.Run(t.Context(), e, n)
		require.NoError(t, err)
		e.Advance(time.Minute)
		s, err := run.Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, workitem.CodeTooLarge, s.Failure.Code, s.Failure)
		require.Equal(t, 1, s.Attempt, "another attempt would give as much")
	}
}

func TestTheLimitOfAllPayloadsCanBeGiven(t *testing.T) {
	e, err := engine.Config{MaxPayload: domain.MaxSize}.Open(t.Context(), sqlite.Memory())
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func TestARestartFromNoStepIsRefused(t *testing.T) {
	a := builder.MustFunc("counting", func(ctx context.Context, _ int) (int, error) { return step.Do(ctx, "one", one) })
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	var empty string
	_, err = run.Restart(t.Context(), e, workflow.FromStep(empty))
	require.ErrorContains(t, err, "FromStep has no name: give the name")
	_, err = run.Restart(t.Context(), e, workflow.FromStep("one"), workflow.FromStep("one"))
	require.ErrorContains(t, err, "FromStep is given twice")
	n := 0
	for range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		n++
	}
	require.Equal(t, 1, n, "nothing was started")
}

// What Build only warns of is in the log of each program that opens the engine, once for each workflow, with the run
// that shows it.
func TestWarningsOfWorkflowsAreLogged(t *testing.T) {
	opened := func(opts ...builder.Option) string {
		b := builder.New[any]("article", append(opts, builder.AllowUnsound(verify.ImproperCompletion))...)
		fork := b.Routing("fork", builder.Routing{Split: builder.And})
		both := builder.Task(b, "both", builder.Work[any, any]{Join: builder.Xor})
		b.Path(b.Start(), fork, builder.Task(b, "one", builder.Work[any, any]{}), both, b.End())
		b.Path(fork, builder.Task(b, "two", builder.Work[any, any]{}), both)
		w := b.MustBuild()
		var log bytes.Buffer
		e, err := engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}.Open(t.Context(), sqlite.Memory(), w, w)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		return log.String()
	}
	text := opened()
	require.Equal(t, 1, strings.Count(text, "code=and-split-xor-join"), text)
	require.Contains(t, text, `workflow=article code=and-split-xor-join at=define_test.go:`)
	require.Empty(t, opened(builder.Silence(verify.AndSplitXorJoin, verify.XorJoinTwice)))
}
