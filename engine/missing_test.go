package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

type ruling struct{ OK bool }

// A review that times out has no verdict that its split could read. The case ends, and does not wait for one.
func TestAReviewThatTimesOutEndsTheCase(t *testing.T) {
	b := builder.New[any]("reviewed")
	review := builder.Task(b, "review", builder.Work[any, ruling]{Split: builder.Xor, Timeout: time.Hour})
	publish := builder.Task(b, "publish", builder.Work[any, any]{})
	b.Path(b.Start(), review)
	b.Path(publish, b.End())
	builder.Flow(b, review, publish).When(func(v ruling) bool { return v.OK })
	builder.Flow(b, review, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	e.Advance(time.Hour)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, workitem.CodeTimeout, c.Failure.Code)
	require.Equal(t, []string{"review.1.1 failed 1 timeout"}, items(t, e, id))
	require.Empty(t, incidents(t, e, id))
}

// One whose task continues without it is refused where its verdict is read.
func TestAReviewThatMayFailIsNoSourceOfAnInput(t *testing.T) {
	b := builder.New[any]("reviewed")
	review := builder.Task(b, "review", builder.Work[any, ruling]{Timeout: time.Hour, Policy: workitem.ContinueOnFailure()})
	publish := builder.Task(b, "publish", builder.Work[ruling, any]{Input: builder.Output(review)})
	b.Path(b.Start(), review, publish, b.End())
	_, err := b.Build()
	var unsound *builder.UnsoundError
	require.ErrorAs(t, err, &unsound)
	require.Equal(t, builder.NoOutput, unsound.Code)
	require.Equal(t, "review; then review->publish 1", unsound.Witness.String())
}

// approvals is a payment that waits for an approval, which may be dropped.
func approvals(t *testing.T) *builder.Workflow[any] {
	t.Helper()
	b := builder.New[any]("payment")
	approve := builder.Task(b, "approve", builder.Work[any, ruling]{Split: builder.Xor, CancelAfter: time.Hour})
	pay := builder.Task(b, "pay", builder.Work[ruling, any]{Input: builder.Output(approve)})
	remind := builder.Task(b, "remind", builder.Work[builder.Optional[ruling], any]{Input: builder.OptionalOutput(approve)})
	b.Path(b.Start(), approve)
	b.Path(pay, b.End())
	b.Path(remind, b.End())
	builder.Flow(b, approve, pay).When(func(v ruling) bool { return v.OK })
	builder.Flow(b, approve, b.End()).Otherwise()
	builder.Flow(b, approve, remind).WithoutOutput()
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

func TestAPaymentDoesNotRunWithoutItsApproval(t *testing.T) {
	w := approvals(t)
	e := enginetest.New(t, w)
	late, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, []string{"approve.1.1 canceled 1 timeout", "remind.1.1 initialized 1"}, items(t, e, late))
	require.JSONEq(t, `{}`, string(live(t, e, late, "remind").Input), "it sees that there is none")

	approved, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	enginetest.CompleteItem(e, approved, "approve.1.1", ruling{OK: true})
	e.Advance(time.Hour)
	require.Equal(t, []string{"approve.1.1 completed 1", "pay.1.1 initialized 1"}, items(t, e, approved))
	require.JSONEq(t, `{"OK":true}`, string(live(t, e, approved, "pay").Input))
}
