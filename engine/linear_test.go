package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// observed is what an operation returned: whether the action was refused, or what the look found. An action whose caller got no answer has
// happened at some time after the call, or not at all, which is as if it happened after all others.
type observed struct {
	refused, unknown bool
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
		switch {
		case out.unknown && !allowed:
			return true, now
		case out.refused || !allowed && !out.unknown:
			return out.refused && !allowed, now
		}
		if now.state = to; in.do == workitem.Start {
			now.starts++
		}
		return true, now
	},
}

// tallied is a workflow of one item, whose starts are counted in a table.
func tallied(t *testing.T) *builder.Workflow[int] {
	b := builder.New[int]("tallied")
	work := builder.Task(b, "work", builder.Work[int, int]{Input: builder.CaseInput(b),
		Start: func(ctx context.Context, it *activities.Item) error {
			_, err := it.DB().ExecContext(ctx, "INSERT INTO starts VALUES ($1)", it.Case().ID.String())
			return err
		}})
	b.Path(b.Start(), work, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return w
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
			w := tallied(t)
			all := make([]*engine.Engine, engines)
			for i := range all {
				var err error
				all[i], err = engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), opener, w)
				require.NoError(t, err)
			}
			history := newLinear(t, all, w).operations(nil)
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

// linear are the cases that the operations of a history are about.
type linear struct {
	t       *testing.T
	engines []*engine.Engine
	began   time.Time
	roots   [2]workitem.CaseID
	items   [2]workitem.ID
}

func newLinear(t *testing.T, engines []*engine.Engine, w *builder.Workflow[int]) *linear {
	l := &linear{t: t, engines: engines, began: time.Now()}
	require.NoError(t, engines[0].Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE starts (id text NOT NULL)")
		return err
	}))
	for i := range l.roots {
		var err error
		l.roots[i], err = w.Start(t.Context(), engines[0], i)
		require.NoError(t, err)
		for row, err := range store.AllItems(t.Context(), engines[0], store.ItemFilter{Case: l.roots[i]}) {
			require.NoError(t, err)
			l.items[i] = row.ID
		}
	}
	return l
}

// operations has callers act on the cases at once, and returns what each was asked and answered. If a function is given, connections break:
// it is called before each operation, and a caller may get no answer. Half of the actions have a key then, and are asked for until there is one.
func (l *linear) operations(faults func()) []porcupine.Operation {
	const callers = 6
	histories := make([][]porcupine.Operation, callers)
	errs := make([]error, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			e, random := l.engines[c%len(l.engines)], rand.New(rand.NewPCG(uint64(c), 7))
			for n := range testsize.Pick(8, 40, 400) {
				in := operation{of: random.IntN(len(l.roots)), do: []workitem.Action{0, workitem.Start, workitem.Reset}[random.IntN(3)]}
				var options []workflow.Option
				if faults != nil {
					faults()
				}
				if faults != nil && n%2 == 0 {
					options = append(options, workflow.Key(fmt.Sprint(c, " ", n)))
				}
				call := time.Since(l.began)
				out, err := l.ask(e, in, options)
				for err != nil && options != nil && in.do != 0 {
					out, err = l.ask(e, in, options)
				}
				switch returned := int64(time.Since(l.began)); {
				case errors.Is(err, store.ErrConflict): // nothing happened
				case err != nil && faults == nil:
					errs[c] = err
					return
				case err != nil && in.do == 0: // a look without an answer
				case err != nil:
					histories[c] = append(histories[c], porcupine.Operation{ClientId: c, Input: in, Call: int64(call), Output: observed{unknown: true},
						Return: math.MaxInt64})
				default:
					histories[c] = append(histories[c], porcupine.Operation{ClientId: c, Input: in, Call: int64(call), Output: out, Return: returned})
				}
			}
		})
	}
	group.Wait()
	require.NoError(l.t, errors.Join(errs...))
	return slices.Concat(histories...)
}

// ask does an operation.
func (l *linear) ask(e *engine.Engine, in operation, options []workflow.Option) (out observed, err error) {
	ctx, root := l.t.Context(), l.roots[in.of]
	if in.do == 0 {
		err = e.Update(ctx, func(tx *engine.Tx) error {
			c, err := tx.Case(ctx, root)
			if err != nil {
				return err
			}
			out.state = c.Item(l.items[in.of]).State
			return tx.DB().QueryRowContext(ctx, "SELECT count(*) FROM starts WHERE id = $1", root.String()).Scan(&out.starts)
		}, engine.Repeatable())
		return out, err
	}
	_, err = e.Do(ctx, workflow.Act(l.items[in.of], in.do, nil, options...))
	var refused *workitem.TransitionError
	if out.refused = errors.As(err, &refused); out.refused {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", in.do, err)
	}
	return out, err
}
