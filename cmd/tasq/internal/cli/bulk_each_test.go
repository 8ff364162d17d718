package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Beside an owner without bulk actions, an action on many is a command for each, and the command says that it is not durable.
func TestAnOwnerWithoutBulkActionsGetsACommandForEach(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "s.db")
	parsed, err := scenario.ParseNotation(posOf("test"), "workflow bill\n start s\n end e\n task charge policy=incident\n flow s -> charge\n flow charge -> e\n")
	require.NoError(t, err)
	defs, _, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	e, err := engine.Open(t.Context(), sqlite.File(at), defs[0])
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for range 2 {
		started, err := e.Do(t.Context(), workflow.Start("bill", nil))
		require.NoError(t, err)
		for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: started.Case}) {
			require.NoError(t, err)
			_, err = e.Do(t.Context(), workflow.Act(it.ID, workitem.Start, nil))
			require.NoError(t, err)
			_, err = e.Do(t.Context(), workflow.Fail(it.ID, &workitem.Failure{Code: "no-funds"}))
			require.NoError(t, err)
		}
	}
	code, out, errs := tasq(t, at, "incident", "retry", "--all", "--by", "ann", "--timeout", "1m")
	require.Zero(t, code, errs)
	require.Equal(t, "2 incidents done, 0 refused\n", out)
	require.Contains(t, errs, "has no bulk actions, so this command sends 2 commands")
	require.Contains(t, errs, "--queue")
}

// The reason is part of the text.
func TestWhyThereIsNoBulkAction(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"has no bulk actions, so": engine.ErrUnknown, "refused a bulk action of this size, so": engine.ErrTooLarge,
		"did not start a bulk action within 3s (--timeout)": errors.Join(context.DeadlineExceeded),
	} {
		var b bytes.Buffer
		o := owning{a: &app{Streams: Streams{Err: &b}}, db: database.Of("s.db")}
		o.notDurable(&asking{timeout: 3 * time.Second}, 5, err)
		require.Contains(t, b.String(), want)
		require.Contains(t, b.String(), "sends 5 commands")
	}
}
