// Package fanout is the recipe for asking several parties at once and continuing when all of them have answered.
// An insurer has a claim to decide. Which reports it needs depends on what happened: a garage's for damage, a
// doctor's for an injury, the police's for a theft; one of them, two, or all.
//
// The or-split asks the parties that the claim concerns, the or-join waits for exactly those: not for all three, and not
// only for the first. "tasq why CASE decide" lists the missing reports. The decision gathers the delivered ones.
package fanout

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
)

// Claim is what happened, and to what it led. At least one of damage, injury and theft makes a claim.
type Claim struct {
	Policy string `json:"policy" validate:"required"`
	Damage bool   `json:"damage"`
	Injury bool   `json:"injury"`
	Theft  bool   `json:"theft" validate:"required_without_all=Damage Injury"`
}

// Report is what one party found.
type Report struct {
	Finding string `json:"finding" validate:"required"`
	Cents   int64  `json:"cents"   validate:"gte=0"` // what it comes to
}

// File is what the decision is based on.
type File struct {
	Claim   Claim             `json:"claim"`
	Reports map[string]Report `json:"reports" validate:"required,min=1"` // by the task that delivered
	Cents   int64             `json:"cents"`                             // in all
}

// Decision is what the insurer pays.
type Decision struct {
	Cents int64 `json:"cents" validate:"gte=0"`
}

// Recipe is the workflow, with the handles of its tasks. All of them are done by people, each in a queue of its own.
type Recipe struct {
	*builder.Workflow[Claim]
	Garage, Doctor, Police *builder.TaskRef[Claim, Report]
	Decide                 *builder.TaskRef[File, Decision]
}

// New defines the workflow.
func New() (r *Recipe, err error) {
	b, r := builder.New[Claim]("fanout", builder.Describe("a claim is decided on the reports that it needs")), new(Recipe)
	ask := b.Routing("ask", builder.Routing{Split: builder.Or})
	r.Decide = builder.Task(b, "decide", builder.Work[File, Decision]{
		Input: builder.From(r.gather), Queue: "insurer", Join: builder.Or,
	})
	report := func(name string, needed func(Claim) bool) *builder.TaskRef[Claim, Report] {
		t := builder.Task(b, name, builder.Work[Claim, Report]{Input: builder.CaseInput(b), Queue: name})
		builder.Flow(b, ask, t).If(builder.Map(builder.CaseInput(b), needed))
		b.Path(t, r.Decide)
		return t
	}
	r.Garage = report("garage", func(c Claim) bool { return c.Damage })
	r.Doctor = report("doctor", func(c Claim) bool { return c.Injury })
	r.Police = report("police", func(c Claim) bool { return c.Theft })
	b.Path(b.Start(), ask)
	b.Path(r.Decide, b.End())
	b.Result(builder.Output(r.Decide))
	r.Workflow, err = b.Build()
	return r, err
}

// gather collects the reports that were asked for; the others have no output.
func (r *Recipe) gather(_ context.Context, a *activities.Activation) (File, error) {
	c, err := builder.CaseInputOf[Claim](a.Case())
	f := File{Claim: c, Reports: make(map[string]Report)}
	for _, t := range []*builder.TaskRef[Claim, Report]{r.Garage, r.Doctor, r.Police} {
		if err != nil || a.Case().Outputs(t.Name()) == nil {
			continue
		}
		var report Report
		report, err = builder.OutputOf(t, a.Case())
		f.Reports[t.Name()] = report
		f.Cents += report.Cents
	}
	return f, err
}
