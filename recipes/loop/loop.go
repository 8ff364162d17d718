// Package loop is the recipe for work that is repeated until it is good enough. A text is translated, and the
// translation is marked. Below the required mark it goes back with the proofreader's remarks, for a limited number of rounds;
// after the last one, a person finishes it.
//
// A loop needs no counter of its own. Every enabling of a task is a new activation with a number, its generation, and
// has its own work items, so the history separates the rounds: proofread.3.1 is the third one.
package loop

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
)

// Text is what a case is about.
type Text struct {
	Text   string `json:"text"   validate:"required"`
	Target string `json:"target" validate:"required"` // language
}

// Round is what a translator gets.
type Round struct {
	Text    Text   `json:"text"`
	Number  int    `json:"number"            validate:"min=1"`
	Before  string `json:"before,omitempty"`  // the translation of the round before
	Remarks string `json:"remarks,omitempty"` // of the proofreader, on that translation
}

// Translation is what a translator gives.
type Translation struct {
	Text string `json:"text" validate:"required"`
}

// Marks are a proofreader's.
type Marks struct {
	Mark    int    `json:"mark" validate:"min=0,max=100"`
	Remarks string `json:"remarks,omitempty"`
}

// Bureau does the work, with models or otherwise.
type Bureau interface {
	Translate(context.Context, Round) (Translation, error)
	Proofread(context.Context, Translation) (Marks, error)
}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Text]
	Translate *builder.TaskRef[Round, Translation]
	Proofread *builder.TaskRef[Translation, Marks]
	Finish    *builder.TaskRef[Translation, Translation] // by a person, in the queue "editors"
}

// New defines the workflow: rounds until the mark is reached, at most so many.
func New(bureau Bureau, mark, rounds int) (r *Recipe, err error) {
	b, r := builder.New[Text]("loop", builder.Describe("a text is translated until it is good enough")), new(Recipe)
	r.Translate = builder.Task(b, "translate", builder.Work[Round, Translation]{
		Input: builder.From(r.round), Run: bureau.Translate, Join: builder.Xor,
	})
	r.Proofread = builder.Task(b, "proofread", builder.Work[Translation, Marks]{
		Input: builder.Output(r.Translate), Run: bureau.Proofread, Split: builder.Xor,
	})
	r.Finish = builder.Task(b, "finish", builder.Work[Translation, Translation]{
		Input: builder.Output(r.Translate), Queue: "editors",
	})
	b.Path(b.Start(), r.Translate, r.Proofread)
	builder.Flow(b, r.Proofread, b.End()).When(func(m Marks) bool { return m.Mark >= mark })
	builder.Flow(b, r.Proofread, r.Translate).If(builder.From(func(_ context.Context, a *activities.Activation) (bool, error) {
		return a.Generation() < rounds, nil
	}))
	builder.Flow(b, r.Proofread, r.Finish).Otherwise()
	b.Path(r.Finish, b.End())
	b.Result(builder.FromCase(r.result))
	r.Workflow, err = b.Build()
	return r, err
}

// round is what the next translator gets: from the second round on with what came of the one before.
func (r *Recipe) round(_ context.Context, a *activities.Activation) (Round, error) {
	text, err := builder.CaseInputOf[Text](a.Case())
	round := Round{Text: text, Number: a.Generation()}
	if err != nil || round.Number == 1 {
		return round, err
	}
	before, err := builder.OutputOf(r.Translate, a.Case())
	if err != nil {
		return round, err
	}
	marks, err := builder.OutputOf(r.Proofread, a.Case())
	round.Before, round.Remarks = before.Text, marks.Remarks
	return round, err
}

// result is the person's work, where one was needed.
func (r *Recipe) result(c *activities.Case) (Translation, error) {
	if c.Case().Outputs(r.Finish.Name()) != nil {
		return builder.OutputOf(r.Finish, c.Case())
	}
	return builder.OutputOf(r.Translate, c.Case())
}
