package enginetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A test opens a second item in a task, acts on both, and reads what came out.
func TestItemsAreOpenedAndActedOnByLabel(t *testing.T) {
	b := builder.New[string]("article")
	review := builder.Task(b, "review", builder.Work[string, string]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), review, b.End())
	e := enginetest.Open(t, sqlite.Memory(), engine.Config{}, b.MustBuild())
	started, err := e.Do(t.Context(), workflow.Start("article", []byte(`"Petri nets"`)))
	require.NoError(t, err)

	second := enginetest.OpenItem(e, started.Case, "review", "Queues")
	require.Equal(t, "review.1.2", second.Label())
	require.JSONEq(t, `"Queues"`, string(second.Input))

	require.Equal(t, "review.1.1", e.StartItem(started.Case, "review.1.1").Label())
	enginetest.CompleteItem(e, started.Case, "review.1.1", "fine")
	enginetest.CompleteItem(e, started.Case, "review", "too long")
	require.Equal(t, "too long", enginetest.OutputOf[string](e, started.Case, "review.1.2"))
	require.Equal(t, []string{"review.1.1 completed", "review.1.2 completed"}, e.States(started.Case))
}
