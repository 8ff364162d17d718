package cli

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// texts compiles notation beside a workflow "code" that is none, and returns what a database holds of the texts.
func texts(t *testing.T, notation string) []*store.Definition {
	t.Helper()
	parse := func(text string) []*scenario.Workflow {
		parsed, err := scenario.ParseNotation(posOf("test"), text)
		require.NoError(t, err)
		return parsed
	}
	const net = " start s\n end e\n task t\n flow s -> t\n flow t -> e\n"
	code, problems, err := scenario.Compile(parse("workflow code\n"+net), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	defs, problems, err := scenario.Compile(parse(notation), map[string]*workflow.Definition{"code": code[0]})
	require.NoError(t, err)
	require.Empty(t, problems)
	stored := []*store.Definition{{Name: "code", Fingerprint: code[0].Fingerprint, Net: code[0].Net.Definition(), Code: true}}
	for i, d := range defs {
		stored = append(stored, &store.Definition{Name: d.Name, Version: d.Version, Fingerprint: d.Fingerprint,
			Net: d.Net.Definition(), Document: d.Document, Created: time.Unix(int64(i), 0)})
	}
	return stored
}

// A composite task of one stored workflow that runs code does not keep the others from being run.
func TestOnlyWhatRunsCodeIsLeftToItsProgram(t *testing.T) {
	t.Parallel()
	const ends = " start s\n end e\n flow s -> t\n flow t -> e\n"
	defs, err := rebuild(texts(t, "workflow alone\n task t\n"+ends+
		"workflow runs-code\n composite t of code\n"+ends+
		"workflow runs-that\n composite t of runs-code,alone\n"+ends+
		"workflow runs-text\n composite t of alone\n"+ends))
	require.NoError(t, err)
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"alone", "runs-text"}, names)
}

// An owner has the whole --timeout for a command: what it has begun is not undone because the answer takes longer than a check whether it is still there.
func TestAnOwnerThatIsSlowAnswers(t *testing.T) {
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		b := builder.New[string]("slow")
		slow := builder.Task(b, "slow", builder.Work[string, string]{Input: builder.CaseInput(b),
			Start: func(ctx context.Context, _ *activities.Item) error {
				retry.Sleep(ctx, nil, patience*3/2)
				return workitem.Failf("early", "it is too early")
			}})
		b.Path(b.Start(), slow, b.End())
		w := b.MustBuild()
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, w)
		require.NoError(t, err)
		id, err := w.Start(t.Context(), e, "x")
		require.NoError(t, err)
		for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
			require.NoError(t, err)
			code, _, errs := tasq(t, at, "item", "start", it.ID.String(), "--timeout", "20s")
			require.Equal(t, ExitRefused, code, errs)
			require.Contains(t, errs, "it is too early")
		}
		require.NoError(t, e.Close())
	})
}
