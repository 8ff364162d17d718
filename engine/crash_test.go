package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// cuts is how many commits of a random history are cut, each once before and once after it is durable.
const cuts = 100

// TestKillAtEveryCommit runs a random history in a child process that kills itself, with SIGKILL, at its n-th commit: for
// every n, once inside the transaction and once between the commit and its acknowledgement. Whatever the moment, the database
// is whole, every command that was acknowledged is there, and every case can be brought to its end. Four commits
// are cut by default, and each one in the nightly form, which CI runs of these tests.
func TestKillAtEveryCommit(t *testing.T) {
	cut{first: 1, last: cuts, every: 33, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		survive(t, path, killed(t, "TestKilledProcess", "TASQ_KILLED_PROCESS", path, n, moment, "ack "))
	})
}

// survive opens what the killed process left.
func survive(t *testing.T, path string, acknowledged []string) {
	t.Helper()
	ctx := t.Context()
	w := killedWorkflow()
	e, err := engine.Config{Workers: 4}.Open(ctx, storeOfKilled(path), w)
	require.NoError(t, err)
	awaitDeath(t, path)
	require.NoError(t, integrity.Check(ctx, e), "just after opening")
	keys := make(map[string]bool)
	for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{}) {
		require.NoError(t, err)
		keys[entry.Key] = true
	}
	for _, key := range acknowledged {
		require.True(t, keys[key], "command %s was acknowledged, and is gone", key)
	}
	finishAll(t, e)
	require.NoError(t, integrity.Check(ctx, e), "at the end")
	require.NoError(t, e.Close())
}

// finishAll does every live item, until every case has ended.
func finishAll(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		require.NoError(t, e.Drain(ctx))
		left := 0
		for c, err := range store.AllCases(ctx, e, store.CaseFilter{States: []state.CaseState{state.CaseFailed}}) {
			require.NoError(t, err)
			require.NoError(t, enginetest.Do(ctx, e, workflow.Resume(c.ID, nil)))
		}
		for c, err := range store.AllCases(ctx, e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}, RootOnly: true}) {
			require.NoError(t, err)
			left++
			for row, err := range store.AllItems(ctx, e, store.ItemFilter{Root: c.ID, States: []workitem.State{
				workitem.Initialized, workitem.Started}}) {
				require.NoError(t, err)
				if row.Task == "human" {
					finishItem(ctx, t, e, row)
				}
			}
		}
		if left == 0 {
			return
		}
	}
}

func finishItem(ctx context.Context, t *testing.T, e *engine.Engine, row *store.ItemRow) {
	var transition *workitem.TransitionError
	err := e.Update(ctx, func(tx *engine.Tx) error {
		if row.State == workitem.Initialized {
			if err := enginetest.Do(ctx, tx, workflow.Act(row.ID, workitem.Start, nil)); err != nil {
				return err
			}
		}
		return enginetest.Do(ctx, tx, workflow.Act(row.ID, workitem.Complete, nil))
	})
	if err != nil && !errors.As(err, &transition) {
		t.Fatal(err)
	}
}

// killedWorkflow has jobs that fail and are tried again, work for people, and parallel branches.
func killedWorkflow() *builder.Workflow[any] {
	b := builder.New[any]("killed")
	machine := builder.Task(b, "machine", builder.Work[any, any]{
		Split: builder.And,
		Run: func(ctx context.Context, _ any) (any, error) {
			if w, _ := builder.WorkFrom(ctx); w.Attempt < 2 {
				return nil, errors.New("not yet")
			}
			return "done", nil
		},
		OnWorkItemStateChanged: activities.Retry(retry.Constant(3, time.Millisecond)),
	})
	human := builder.Task(b, "human", builder.Work[any, any]{})
	second := builder.Task(b, "second", builder.Work[any, any]{Run: func(context.Context, any) (any, error) { return 2, nil }})
	last := builder.Task(b, "last", builder.Work[any, any]{Join: builder.And, Auto: true})
	b.Path(b.Start(), machine, human, last, b.End())
	b.Path(machine, second, last)
	return b.MustBuild()
}

// TestKilledProcess is the child process of TestKillAtEveryCommit; on its own it does nothing.
func TestKilledProcess(t *testing.T) {
	_, o := toBeKilled(t, "TASQ_KILLED_PROCESS", 0)
	if o == nil {
		return
	}
	w := killedWorkflow()
	e, err := engine.Config{Workers: 4}.Open(t.Context(), o, w)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; ; i++ {
		killedCommand(t, e, w, random, i)
	}
}

// killedCommand does one random command, and says so on standard output once it is acknowledged.
func killedCommand(t *testing.T, e *engine.Engine, w *builder.Workflow[any], random *rand.Rand, i int) {
	ctx, key := t.Context(), "k"+strconv.Itoa(i)
	switch random.IntN(5) {
	case 3:
		for row := range store.AllItems(ctx, e, store.ItemFilter{Task: "human", States: []workitem.State{workitem.Started}}) {
			if enginetest.Do(ctx, e, workflow.Fail(row.ID, nil, workflow.Key(key))) == nil {
				fmt.Println("ack " + key)
			}
			break
		}
	case 4:
		for c := range store.AllCases(ctx, e, store.CaseFilter{States: []state.CaseState{state.CaseFailed}}) {
			require.NoError(t, enginetest.Do(ctx, e, workflow.Resume(c.ID, nil, workflow.Key(key), workflow.Because("again"))))
			fmt.Println("ack " + key)
			break
		}
	case 0:
		_, err := w.Start(ctx, e, nil, workflow.Key(key))
		require.NoError(t, err)
		fmt.Println("ack " + key)
	case 1:
		for row := range store.AllItems(ctx, e, store.ItemFilter{Task: "human", States: []workitem.State{workitem.Initialized}}) {
			if enginetest.Do(ctx, e, workflow.Act(row.ID, workitem.Start, nil, workflow.Key(key))) == nil {
				fmt.Println("ack " + key)
			}
			break
		}
	case 2:
		for row := range store.AllItems(ctx, e, store.ItemFilter{Task: "human", States: []workitem.State{workitem.Started}}) {
			if enginetest.Do(ctx, e, workflow.Act(row.ID, workitem.Complete, nil, workflow.Key(key))) == nil {
				fmt.Println("ack " + key)
			}
			break
		}
	}
}
