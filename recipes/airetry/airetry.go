// Package airetry is the recipe for work that a language model does and an editor reviews. A model often fails: it is
// busy, it closes the connection, it returns nonsense. Each attempt is a work item, which keeps its failure. A retry is a new
// item, due after 1 s, 2 s, 4 s, or when the server says; the last failure fails the case. The editor approves, or
// rejects with a note for the model, which enables the task again, with new attempts. Each attempt also has a
// record, written in the transaction that changes the work item, so that the two always agree.
package airetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Model answers a prompt. A [chat.Client] is one. An error that is no *[chat.Error] is worth another attempt.
type Model interface {
	Complete(ctx context.Context, prompt string) (chat.Reply, error)
}

// Prompt is what a case is started with.
type Prompt struct {
	Text string `json:"text" validate:"required"`
}

// Draft is what the model wrote. A text too short to be one breaks a rule, which is a failed attempt like any other.
type Draft struct {
	Text  string `json:"text"  validate:"required,min=20"`
	Model string `json:"model" validate:"required"`
}

// Verdict is what the editor thinks of a draft. A rejection needs a note.
type Verdict struct {
	Approved bool   `json:"approved"`
	Note     string `json:"note,omitempty" validate:"required_unless=Approved true"`
}

// Job is the record of one attempt.
type Job struct {
	Prompt  string `json:"prompt"  validate:"required"`
	Attempt int    `json:"attempt" validate:"min=1"`
	Status  string `json:"status"  validate:"oneof=pending completed failed canceled"`
	Result  string `json:"result,omitempty"` // the draft's text
	Error   string `json:"error,omitempty"`  // why the attempt failed or was canceled
}

// Jobs holds a record for each work item of the task that generates.
var Jobs = domain.Collection[workitem.ID, Job]{Name: "ai_jobs"}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Prompt]
	Generate *builder.TaskRef[Prompt, Draft]
	Review   *builder.TaskRef[Draft, Verdict] // in the queue "editors"
}

// New defines the workflow. The policy says when a failed attempt is made again: retry.Exponential(5, time.Second).
func New(m Model, again retry.Policy) (r *Recipe, err error) {
	b, r := builder.New[Prompt]("airetry", builder.Describe("a model writes, an editor reviews")), new(Recipe)
	r.Generate = builder.Task(b, "generate", builder.Work[Prompt, Draft]{
		Input: builder.From(r.prompt), Run: generate(m), RunTimeout: 5 * time.Minute, Queue: "models",
		Initialize: func(ctx context.Context, it *activities.Item, p Prompt) error {
			return Jobs.Put(ctx, it.DB(), it.ID, Job{Prompt: p.Text, Attempt: it.Attempt, Status: "pending"})
		},
		Complete: record(func(j *Job, d Draft) { j.Status, j.Result = "completed", d.Text }),
		Fail:     record(func(j *Job, f *workitem.Failure) { j.Status, j.Error = "failed", f.String() }),
		Item: activities.ItemHooks{OnCanceled: func(ctx context.Context, it *activities.Item) error { // also with its case
			return record(func(j *Job, f *workitem.Failure) { j.Status, j.Error = "canceled", f.String() })(ctx, it, it.Failure)
		}},
		Join:                   builder.Xor, // from the start, or back from the review
		OnWorkItemStateChanged: activities.Retry(again),
	})
	r.Review = builder.Task(b, "review", builder.Work[Draft, Verdict]{
		Input: builder.Output(r.Generate), Queue: "editors", Split: builder.Xor, // no Run: a person completes it
	})
	b.Path(b.Start(), r.Generate, r.Review)
	builder.Flow(b, r.Review, b.End()).When(func(v Verdict) bool { return v.Approved })
	builder.Flow(b, r.Review, r.Generate).Otherwise()
	b.Result(builder.Output(r.Generate))
	r.Workflow, err = b.Build()
	return r, err
}

// record writes what became of an attempt.
func record[P any](change func(*Job, P)) func(context.Context, *activities.Item, P) error {
	return func(ctx context.Context, it *activities.Item, p P) error {
		return Jobs.Update(ctx, it.DB(), it.ID, func(j *Job) error { change(j, p); return nil })
	}
}

// prompt is what the case was started with, and from the second activation on the editor's note besides.
func (r *Recipe) prompt(_ context.Context, a *activities.Activation) (Prompt, error) {
	p, err := builder.CaseInputOf[Prompt](a.Case())
	if err != nil || a.Generation() == 1 {
		return p, err
	}
	v, err := builder.OutputOf(r.Review, a.Case())
	return Prompt{Text: p.Text + "\n\nAn editor says of your last draft: " + v.Note}, err
}

// generate asks the model, and says in the words of the process what an error means.
func generate(m Model) func(context.Context, Prompt) (Draft, error) {
	return func(ctx context.Context, p Prompt) (Draft, error) {
		reply, err := m.Complete(ctx, p.Text)
		if e, ok := errors.AsType[*chat.Error](err); ok {
			err = retry.After(e.RetryAfter, workitem.Failf(cmp.Or(e.Code, fmt.Sprint("http-", e.Status)), "%v", e))
			if !e.Temporary {
				err = workitem.Fatal(err)
			}
		}
		return Draft{Text: reply.Text, Model: reply.Model}, err
	}
}
