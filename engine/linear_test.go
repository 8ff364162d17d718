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
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
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
	of   int // which case
	do   workitem.Action
	view bool // it looks at a snapshot, and not in a transaction
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
			l := newLinear(t, all[0], w)
			var callers []*caller
			for c := range 6 {
				callers = append(callers, l.caller(c, asks(all[c%engines])))
			}
			l.begin(testsize.Pick(8, 40, 400), callers...)
			history := l.end()
			require.NoError(t, integrity.Check(t.Context(), all[0]))
			for _, e := range all {
				require.NoError(t, e.Close())
			}
			for _, c := range callers {
				require.NoError(t, c.failed)
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
	began   time.Time
	roots   [2]workitem.CaseID
	items   [2]workitem.ID
	pace    time.Duration // how long a caller waits between two operations, on average
	callers []*caller
	all     sync.WaitGroup
}

func newLinear(t *testing.T, e *engine.Engine, w *builder.Workflow[int]) *linear {
	l := &linear{t: t, began: time.Now()}
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS starts (id text NOT NULL)")
		return err
	}, engine.Repeatable()))
	for i := range l.roots {
		var err error
		l.roots[i], err = w.Start(t.Context(), e, i)
		require.NoError(t, err)
		for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: l.roots[i]}) {
			require.NoError(t, err)
			l.items[i] = row.ID
		}
	}
	return l
}

// question is an operation as an engine is asked for it, in this process or in another one.
type question struct {
	Do   workitem.Action
	View bool
	Root workitem.CaseID
	Item workitem.ID
	Key  string
}

// engineOf answers questions.
type engineOf func(context.Context, question) (observed, error)

// caller does one operation after the other, and keeps what it asked and was answered.
type caller struct {
	l       *linear
	id      int
	random  *rand.Rand
	engines []engineOf // the next one is asked if one does not answer
	before  func()     // is called before each operation
	failed  error      // of an operation that was not answered
	answers atomic.Int64
	history []porcupine.Operation
}

func (l *linear) caller(id int, engines ...engineOf) *caller {
	return &caller{l: l, id: id, random: rand.New(rand.NewPCG(uint64(id), 7)), engines: engines, before: func() {}}
}

// begin has the callers do so many operations each on the cases at once. Half of their actions have a key, and are asked for until there is an answer.
func (l *linear) begin(operations int, callers ...*caller) {
	l.callers = callers
	for _, c := range callers {
		l.all.Go(func() {
			for n := range operations {
				c.before()
				if l.pace > 0 {
					pause(l.t, time.Duration(c.random.Int64N(2*int64(l.pace))))
				}
				in := operation{of: c.random.IntN(len(l.roots)), do: []workitem.Action{0, workitem.Start, workitem.Reset}[c.random.IntN(3)]}
				in.view = in.do == 0 && c.random.IntN(2) == 0
				key := ""
				if in.do != 0 && n%2 == 0 {
					key = fmt.Sprint(l.roots[in.of], " ", c.id, " ", n)
				}
				c.operate(in, key)
			}
		})
	}
}

// underWay waits until each caller has so many answers.
func (l *linear) underWay(answers int64) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for slices.ContainsFunc(l.callers, func(c *caller) bool { return c.answers.Load() < answers }) {
		select {
		case <-again.C:
		case <-l.t.Context().Done():
			return
		}
	}
}

// end waits for the callers, has an engine of each look at the cases, and returns what all were asked and answered.
func (l *linear) end() (history []porcupine.Operation) {
	l.all.Wait()
	for _, c := range l.callers {
		for of := range l.roots {
			c.look(of)
		}
		history = append(history, c.history...)
	}
	return history
}

// check demands that the history is linearizable.
func (l *linear) check() {
	l.t.Helper()
	history := l.end()
	unknown := 0
	for _, o := range history {
		if o.Output.(observed).unknown {
			unknown++
		}
	}
	l.t.Logf("%d operations, %d of them with an unknown outcome", len(history), unknown)
	require.Equal(l.t, porcupine.Ok, porcupine.CheckOperationsTimeout(itemModel, history, time.Minute))
}

// look looks at a case until there is an answer.
func (c *caller) look(of int) {
	for before := c.answers.Load(); c.answers.Load() == before && c.l.t.Context().Err() == nil; {
		c.operate(operation{of: of, view: c.id%2 == 0}, "")
	}
}

// operate does an operation, again with its key until there is an answer if it has one. An action without an answer may happen at any
// time after its call, and so may one that was refused when it was asked for again.
func (c *caller) operate(in operation, key string) {
	first := time.Since(c.l.began)
	last := first
	out, err := c.ask(in, key)
	for err != nil && key != "" && c.l.t.Context().Err() == nil {
		c.next()
		last = time.Since(c.l.began)
		out, err = c.ask(in, key)
	}
	switch {
	case err == nil && out.refused && last > first:
		c.record(in, first, observed{unknown: true})
		c.record(in, last, out)
	case err == nil:
		c.record(in, first, out)
	case errors.Is(err, store.ErrConflict): // nothing happened
	case in.do == 0: // a look without an answer
		c.failed = err
		c.next()
	default:
		c.failed = err
		c.record(in, first, observed{unknown: true})
		c.next()
		c.look(in.of) // so that there are few of which nothing is known
	}
}

func (c *caller) record(in operation, call time.Duration, out observed) {
	returned := int64(math.MaxInt64)
	if !out.unknown {
		returned = int64(time.Since(c.l.began))
		c.answers.Add(1)
	}
	c.history = append(c.history, porcupine.Operation{ClientId: c.id, Input: in, Call: int64(call), Output: out, Return: returned})
}

// next has the next engine asked from now on, in a moment.
func (c *caller) next() {
	c.engines = append(c.engines[1:], c.engines[0])
	pause(c.l.t, 10*time.Millisecond)
}

func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func (c *caller) ask(in operation, key string) (observed, error) {
	return c.engines[0](c.l.t.Context(), question{Do: in.do, View: in.view, Root: c.l.roots[in.of], Item: c.l.items[in.of], Key: key})
}

// asks does operations on an engine of this process.
func asks(e *engine.Engine) engineOf {
	return func(ctx context.Context, q question) (out observed, err error) {
		count := func(db domain.DB) error {
			return db.QueryRowContext(ctx, "SELECT count(*) FROM starts WHERE id = $1", q.Root.String()).Scan(&out.starts)
		}
		switch {
		case q.View:
			err = e.View(ctx, func(r store.Reader) error {
				tree, err := r.Tree(ctx, q.Root)
				if err != nil {
					return err
				}
				out.state = tree.Case(q.Root).Item(q.Item).State
				return count(r.DB())
			})
			return out, err
		case q.Do == 0:
			err = e.Update(ctx, func(tx *engine.Tx) error {
				c, err := tx.Case(ctx, q.Root)
				if err != nil {
					return err
				}
				out.state = c.Item(q.Item).State
				return count(tx.DB())
			}, engine.Repeatable())
			return out, err
		}
		var options []workflow.Option
		if q.Key != "" {
			options = append(options, workflow.Key(q.Key))
		}
		_, err = e.Do(ctx, workflow.Act(q.Item, q.Do, nil, options...))
		var refused *workitem.TransitionError
		if out.refused = errors.As(err, &refused); out.refused {
			err = nil
		}
		return out, err
	}
}

// The model refuses a history in which an acknowledged command is lost, has its effect twice or is not seen by a later look, and one in which a
// command without an answer happens and is lost later.
func TestHistoriesThatAreNotLinearizable(t *testing.T) {
	none, once, twice := register{state: workitem.Initialized}, register{state: workitem.Started, starts: 1}, register{state: workitem.Started, starts: 2}
	start := observed{}
	unknown := observed{unknown: true}
	for name, c := range map[string]struct {
		start observed
		looks []register
		want  porcupine.CheckResult
	}{
		"as it is":              {start, []register{once, once}, porcupine.Ok},
		"lost":                  {start, []register{none}, porcupine.Illegal},
		"twice":                 {start, []register{twice}, porcupine.Illegal},
		"a stale look":          {start, []register{once, none}, porcupine.Illegal},
		"refused without cause": {observed{refused: true}, []register{none}, porcupine.Illegal},
		"unknown, and never":    {unknown, []register{none, none}, porcupine.Ok},
		"unknown, and later":    {unknown, []register{none, once}, porcupine.Ok},
		"unknown, and lost":     {unknown, []register{none, once, none}, porcupine.Illegal},
		"unknown, and twice":    {unknown, []register{none, twice}, porcupine.Illegal},
	} {
		first := porcupine.Operation{Input: operation{do: workitem.Start}, Return: 1, Output: c.start}
		if c.start.unknown {
			first.Return = math.MaxInt64
		}
		history := []porcupine.Operation{first}
		for i, found := range c.looks {
			at := int64(2 * (i + 1))
			history = append(history, porcupine.Operation{ClientId: 1, Input: operation{}, Call: at, Return: at + 1, Output: observed{register: found}})
		}
		require.Equal(t, c.want, porcupine.CheckOperationsTimeout(itemModel, history, time.Minute), name)
	}
}
