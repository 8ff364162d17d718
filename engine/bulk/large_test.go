package bulk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// refusing is an engine that refuses every command with a long text.
var refusing = doer(func(context.Context, workflow.Command) (workflow.Result, error) {
	return workflow.Result{}, fmt.Errorf("%s: %w", strings.Repeat("no ", 100), engine.ErrNotFound)
})

func someTargets(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("0197a3c4-5d6e-7f80-9a1b-%012x", i+1)
	}
	return list
}

// An action of as many targets as are allowed can be started: its input is not too large.
func TestAnActionOfTheMostTargetsCanBeStarted(t *testing.T) {
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, repairs)
	action := bulk.Action{Kind: workflow.KindRetry, Reason: strings.Repeat("x", 500)}
	_, err := repairs.Start(t.Context(), e, action, someTargets(bulk.MaxTargets), workflow.After(time.Hour))
	require.NoError(t, err)
	_, err = repairs.Start(t.Context(), e, action, someTargets(bulk.MaxTargets+1))
	require.ErrorContains(t, err, "the others to further actions")
}

// An action that is refused for many targets completes: its result has the first refusals, and the action all.
func TestAnActionWithManyRefusalsCompletes(t *testing.T) {
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, repairs)
	repairs.Serve(refusing)
	const n = 4000 // with all their texts, the result would be larger than a payload may be
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetry}, someTargets(n))
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, n, len(result.Refused)+result.More)
	require.NotEmpty(t, result.Refused)
	require.Positive(t, result.More)
	i, err := bulk.InfoOf(t.Context(), e, run.ID)
	require.NoError(t, err)
	require.Equal(t, n, i.Refused)
	require.Len(t, i.Refusals, n)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		list, err := bulk.List(t.Context(), r, store.Page{})
		require.Len(t, list, 1)
		require.Equal(t, n, list[0].Refused)
		return err
	}))
}
