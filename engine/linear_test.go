package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// operation is an operation on the one work item of a case: an action, or a look at it if the action is none.
type operation struct {
	of int // which case
	do workitem.Action
}

// observed is what an operation returned: whether the action was refused, or what the look found.
type observed struct {
	refused bool
	register
}

// register is what the model knows of a case: the state of its item, and how often it was started, which the callback of the start
// counts in a table of its own.
type register struct {
	state  workitem.State
	starts int
}

// itemModel says what operations may return that happen one after the other.
var itemModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		of := make(map[int][]porcupine.Operation)
		for _, o := range all {
			of[o.Input.(operation).of] = append(of[o.Input.(operation).of], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return register{state: workitem.Initialized} },
	Step: func(was, input, output any) (bool, any) {
		now, in, out := was.(register), input.(operation), output.(observed)
		if in.do == 0 {
			return out.register == now, now
		}
		to, allowed := workitem.Next(now.state, in.do)
		if out.refused || !allowed {
			return out.refused && !allowed, now
		}
		if now.state = to; in.do == workitem.Start {
			now.starts++
		}
		return true, now
	},
}

// tallied is a workflow of one item, whose starts are counted in a table.
func tallied(t *testing.T) (*builder.Workflow[int], *builder.TaskRef[int, int]) {
	b := builder.New[int]("tallied")
	work := builder.Task(b, "work", builder.Work[int, int]{Input: builder.CaseInput(b),
		Start: func(ctx context.Context, it *activities.Item) error {
			_, err := it.DB().ExecContext(ctx, "INSERT INTO starts VALUES ($1)", it.Case().ID.String())
			return err
		}})
	b.Path(b.Start(), work, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return w, work
}

// Commands and looks of several callers, on one engine or on three, are as if they had happened one after the other, each between its
// call and its return.
func TestCommandsAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, engines := range map[string]int{"sqlite": 1, "postgres": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opener := store.Opener(sqlite.File(t.TempDir() + "/linear.db"))
			if name == "postgres" {
				opener = postgres.Open(prepared.Database(t))
			}
			w, work := tallied(t)
			all := make([]*engine.Engine, engines)
			for i := range all {
				var err error
				all[i], err = engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), opener, w)
				require.NoError(t, err)
			}
			history := operations(t, all, w, work)
			require.NoError(t, integrity.Check(t.Context(), all[0]))
			for _, e := range all {
				require.NoError(t, e.Close())
			}
			require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(itemModel, history, time.Minute))

			// The same history is refused if one look had found more starts than there were.
			i := slices.IndexFunc(history, func(o porcupine.Operation) bool { return o.Input.(operation).do == 0 })
			found := history[i].Output.(observed)
			found.starts += len(history)
			history[i].Output = found
			require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(itemModel, history, time.Minute))
		})
	}
}

// operations has callers act on a few cases at once, and returns what each was asked and answered.
func operations(t *testing.T, engines []*engine.Engine, w *builder.Workflow[int], work *builder.TaskRef[int, int]) []porcupine.Operation {
	const cases, callers = 2, 6
	require.NoError(t, engines[0].Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE starts (id text NOT NULL)")
		return err
	}))
	var roots [cases]workitem.CaseID
	var items [cases]workitem.ID
	for i := range cases {
		var err error
		roots[i], err = w.Start(t.Context(), engines[0], i)
		require.NoError(t, err)
		for row, err := range store.AllItems(t.Context(), engines[0], store.ItemFilter{Case: roots[i]}) {
			require.NoError(t, err)
			items[i] = row.ID
		}
	}
	began := time.Now()
	histories := make([][]porcupine.Operation, callers)
	errs := make([]error, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			e, random := engines[c%len(engines)], rand.New(rand.NewPCG(uint64(c), 7))
			for range testsize.Pick(8, 40, 400) {
				in := operation{of: random.IntN(cases), do: []workitem.Action{0, workitem.Start, workitem.Reset}[random.IntN(3)]}
				call := time.Since(began)
				out, err := ask(t.Context(), e, in, roots[in.of], items[in.of])
				if errors.Is(err, store.ErrConflict) {
					continue // nothing happened
				}
				if err != nil {
					errs[c] = err
					return
				}
				histories[c] = append(histories[c], porcupine.Operation{ClientId: c, Input: in, Call: int64(call), Output: out,
					Return: int64(time.Since(began))})
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	return slices.Concat(histories...)
}

// ask does an operation.
func ask(ctx context.Context, e *engine.Engine, in operation, root workitem.CaseID, item workitem.ID) (out observed, err error) {
	if in.do == 0 {
		err = e.Update(ctx, func(tx *engine.Tx) error {
			c, err := tx.Case(ctx, root)
			if err != nil {
				return err
			}
			out.state = c.Item(item).State
			return tx.DB().QueryRowContext(ctx, "SELECT count(*) FROM starts WHERE id = $1", root.String()).Scan(&out.starts)
		}, engine.Repeatable())
		return out, err
	}
	_, err = e.Do(ctx, workflow.Act(item, in.do, nil))
	var refused *workitem.TransitionError
	if out.refused = errors.As(err, &refused); out.refused {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", in.do, err)
	}
	return out, err
}
