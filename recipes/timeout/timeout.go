// Package timeout is the recipe for work with a time limit. A customer asks the support desk a question. If
// it is not answered in time, a second work item for the same question goes to the supervisors, with a higher
// priority; the first answer counts, and the other item is canceled. If there is no answer before the final
// deadline, both are canceled, and the customer gets an apology.
//
// Timers belong to the task: they are jobs in the database, survive a restart, and are canceled with the task.
package timeout

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/workitem"
)

// Question is a customer's.
type Question struct {
	Customer string `json:"customer" validate:"required"`
	Text     string `json:"text"     validate:"required"`
}

// Answer is what the customer gets.
type Answer struct {
	Text string `json:"text" validate:"required"`
}

// Limits says how long a question may wait, both counted from its arrival.
type Limits struct {
	Escalate time.Duration // before the supervisors see it too
	GiveUp   time.Duration // before the customer gets an apology
}

// Office are the limits of an ordinary day.
var Office = Limits{Escalate: 4 * time.Hour, GiveUp: 24 * time.Hour}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Question]
	Answer    *builder.TaskRef[Question, Answer] // in the queue "support", then also in "supervisors"
	Apologise *builder.TaskRef[Question, struct{}]
}

// New defines the workflow. The function sends the apology. It is an error if the limits leave no time to answer.
func New(l Limits, apologise func(context.Context, Question) (struct{}, error)) (r *Recipe, err error) {
	if l.Escalate <= 0 || l.GiveUp <= l.Escalate {
		return nil, errors.New("timeout: Escalate must be above zero, and GiveUp above Escalate")
	}
	b, r := builder.New[Question]("timeout", builder.Describe("a question is answered in time, or escalated")), new(Recipe)
	r.Answer = builder.Task(b, "answer", builder.Work[Question, Answer]{
		Input: builder.CaseInput(b), Queue: "support", Split: builder.Xor,
		Policy: first,
		Timers: []activities.Timer{
			{Name: "escalate", After: l.Escalate, Task: escalate},
			activities.CancelTaskAfter(l.GiveUp),
		},
	})
	r.Apologise = builder.Task(b, "apologise", builder.Work[Question, struct{}]{
		Input: builder.CaseInput(b), Run: apologise,
	})
	b.Path(b.Start(), r.Answer)
	builder.Flow(b, r.Answer, b.End()).Otherwise()
	builder.Flow(b, r.Answer, r.Apologise).WithoutOutput()
	b.Path(r.Apologise, b.End())
	r.Workflow, err = b.Build()
	return r, err
}

// first ends the task with the first answer, or when nothing is left to be answered.
var first = workitem.NewPolicy("first-answer", func(o workitem.Outcome) (workitem.Verdict, error) {
	if o.State.Final() && (o.Tally.Completed > 0 || o.Tally.Live() == 0) {
		return workitem.CompleteTask, nil
	}
	return workitem.Continue, nil
})

// escalate gives the supervisors the same question.
func escalate(ctx context.Context, a *activities.Activation) error {
	_, err := a.NewItem(ctx, activities.NewItem{Input: a.Case().Input, Queue: "supervisors", Priority: 10})
	return err
}
