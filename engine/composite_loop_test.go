package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// rounds is a case that goes round so often in one command, and in each round runs a child case and enables, and
// withdraws, a composite task beside it.
func rounds(t testing.TB, most int) (*builder.Workflow[any], *int) {
	t.Helper()
	c := builder.New[any]("child")
	c.Path(c.Start(), builder.Task(c, "wait", builder.Work[any, any]{}), c.End())
	waits := c.MustBuild()
	d := builder.New[any]("quick")
	d.Path(d.Start(), builder.Task(d, "auto", builder.Work[any, any]{Auto: true}), d.End())

	done := new(int)
	b := builder.New[any]("rounds")
	p := b.Condition("p")
	run := builder.Composite(b, "run", d.MustBuild(), builder.Cases[any]{})
	rival := builder.Composite(b, "rival", waits, builder.Cases[any]{})
	next := b.Routing("next", builder.Routing{Split: builder.Xor})
	b.Path(b.Start(), b.Routing("begin", builder.Routing{}), p, rival, b.End())
	b.Path(p, run, next)
	builder.Flow(b, next, p).If(builder.Map(builder.CaseInput(b), func(any) bool {
		*done++
		return *done < most
	}))
	builder.Flow(b, next, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	return w, done
}

// The time of a round does not grow with the rounds before it: what a composite task ran earlier is not looked at again.
func BenchmarkRoundsOfComposites(b *testing.B) {
	for _, n := range []int{500, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, done := rounds(b, n)
			e := enginetest.Open(b, sqlite.Memory(), engine.Config{}, w)
			for b.Loop() {
				*done = 0
				_, err := w.Start(b.Context(), e, nil)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/round")
		})
	}
}
