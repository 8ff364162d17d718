package builder_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net/verify"
)

func runInt(_ context.Context, n int) (int, error) { return n, nil }

// inLine declares tasks one after the other.
func inLine(b *builder.Builder[int], names ...string) (tasks []*builder.TaskRef[int, int]) {
	path := []builder.Node{b.Start()}
	for _, name := range names {
		t := builder.Task(b, name, builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt})
		tasks, path = append(tasks, t), append(path, t)
	}
	b.Path(append(path, b.End())...)
	return tasks
}

// What a child case holds is seen beside what its parent holds: as the parent waits, so does the child.
func TestHoldsOfChildCasesAreVerified(t *testing.T) {
	crane, dock := limit.Resource("crane", 1), limit.Resource("dock", 1)
	child := func(name string, l limit.Limit) *builder.Workflow[int] {
		b := builder.New[int](name)
		tasks := inLine(b, "first", "second")
		b.Hold(builder.Takes(l, 1), tasks[0], tasks[1])
		return b.MustBuild()
	}
	parent := func(l limit.Limit, of *builder.Workflow[int], opts ...builder.Option) (*builder.Workflow[int], error) {
		b := builder.New[int]("parent", opts...)
		begin := builder.Task(b, "begin", builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt})
		finish := builder.Task(b, "finish", builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt})
		part := builder.Composite(b, "part", of, builder.Cases[int]{Input: builder.CaseInput(b)})
		b.Path(b.Start(), begin, part, finish, b.End())
		b.Hold(builder.Takes(l, 1), begin, finish)
		return b.Build()
	}
	_, err := parent(crane, child("child", dock))
	require.NoError(t, err)
	_, err = parent(crane, child("child", crane))
	unsound := (*builder.UnsoundError)(nil)
	require.ErrorAs(t, err, &unsound)
	require.Equal(t, verify.HoldDeadlock, unsound.Code)
	require.Contains(t, unsound.Text, "holds 1 of crane (since begin) and waits for 1 of crane (at part/child/first)")
	_, err = parent(crane, child("child", crane), builder.AllowUnsound(verify.HoldDeadlock))
	require.NoError(t, err)
}

// Each mistake in a hold is a problem that names both parties.
func TestWrongHolds(t *testing.T) {
	for _, test := range []struct {
		want string
		hold func(b *builder.Builder[int], run, person *builder.TaskRef[int, int])
	}{
		{`"person" has no Run`, func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 1), person, run)
		}},
		{"it is no limit with slots", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Calls(1, 1), 1), run, person)
		}},
		{"depends on the input", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.TakesOf(limit.Resource("x", 1), func(int) int64 { return 1 }), run, person)
		}},
		{"slots of one key", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 1).AnyOf("a", "b"), run, person)
		}},
		{"is a condition", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 1), run, b.End())
		}},
		{"begins a hold of it already", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 1), run, person)
			b.Hold(builder.Takes(limit.Resource("x", 1), 1), run, run)
		}},
		{"2 of 1 slots of x are more than it admits", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 2), run, person)
		}},
		{"the input is int", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.TakesBy(limit.Resource("x", 1), 1, func(string) string { return "" }), run, person)
		}},
		{"is nil", func(b *builder.Builder[int], run, person *builder.TaskRef[int, int]) {
			b.Hold(builder.Takes(limit.Resource("x", 1), 1), nil, person)
		}},
	} {
		t.Run(test.want, func(t *testing.T) {
			b := builder.New[int]("w")
			run := builder.Task(b, "run", builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt})
			person := builder.Task(b, "person", builder.Work[int, int]{Input: builder.CaseInput(b)})
			b.Path(b.Start(), run, person, b.End())
			test.hold(b, run, person)
			_, err := b.Build()
			require.ErrorContains(t, err, test.want)
			refused := (*builder.Error)(nil)
			require.True(t, errors.As(err, &refused))
		})
	}
}

// A region that cancels a composite task cancels what is in its place: the net with the tasks of child cases is well-formed, and decided.
func TestHoldsOfChildCasesThatARegionCancels(t *testing.T) {
	cb := builder.New[int]("child")
	tasks := inLine(cb, "first", "second")
	cb.Hold(builder.Takes(limit.Resource("crane", 1), 1), tasks[0], tasks[1])
	child := cb.MustBuild()
	b := builder.New[int]("parent", builder.AllowUnsound(verify.ImproperCompletion, verify.DeadTask, verify.NoOptionToComplete))
	begin := builder.Task(b, "begin", builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt, Split: builder.And})
	stop := builder.Task(b, "stop", builder.Work[int, int]{Input: builder.CaseInput(b), Run: runInt})
	part := builder.Composite(b, "part", child, builder.Cases[int]{Input: builder.CaseInput(b)})
	done := b.Routing("done", builder.Routing{Join: builder.Xor})
	b.Path(b.Start(), begin, part, done, b.End())
	b.Path(begin, stop, done)
	b.Cancels(stop, part, builder.Flow(b, begin, part))
	b.Hold(builder.Takes(limit.Resource("dock", 1), 1), stop, stop)
	w, err := b.Build()
	require.NoError(t, err)
	for _, f := range w.Warnings() {
		require.NotEqual(t, verify.HoldDeadlock, f.Code, f.Text)
	}
}
