package builder

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// DeadLetter sets the workflow or function that handles cases that failed: when a root case or a run fails, it starts a case of w in the
// same transaction, with a [workflow.Letter] as its input. [Letters] makes a workflow that queues dead letters for people. A child case
// that fails starts none; its parent handles the failure. An engine that is opened with the workflow also has the dead-letter workflow.
//
//	letters := builder.MustLetters("letters")
//	charge := builder.MustFunc("charge", bank.charge, builder.DeadLetter(letters))
//
// Work.DeadLetter is the same for the items of a task. See [workflow.Redrive] for what can be done with a letter.
func DeadLetter(w Startable[workflow.Letter]) Option {
	return func(d *draft) {
		if d.deadLetter != nil {
			d.problem(Conflict, d.name, d.pos, "workflow %q has two dead letters; give one", d.name)
		}
		d.deadLetter = d.letters(w, "workflow "+d.name, d.name, d.pos)
	}
}

// letters is the definition of a workflow of dead letters. what names what has it in a problem.
func (d *draft) letters(w Startable[workflow.Letter], what, subject string, pos net.Pos) *workflow.Definition {
	var of *workflow.Definition
	if given, is := w.(interface{ Untyped() *workflow.Definition }); is {
		of = given.Untyped()
	}
	if of == nil {
		d.problem(NilHandle, subject, pos, "the dead letter of %s is nil; build that workflow first", what)
	}
	return of
}

// lettersOf is the name of a workflow of dead letters; "" of none.
func lettersOf(w *workflow.Definition) string {
	if w == nil {
		return ""
	}
	return w.Name
}

// Letters defines a workflow of dead letters that wait for a person: one work item for each, in the queue with the name of the workflow.
// The person completes the item when the letter is dealt with, or restarts the original with [workflow.Redrive]. The error is an
// [*Error].
func Letters(name string, opts ...Option) (*Workflow[workflow.Letter], error) {
	b := newBuilder[workflow.Letter](name, caller(), opts)
	b.Path(b.Start(), newTask(b, "letter", b.draft().pos, Work[workflow.Letter, struct{}]{Input: CaseInput(b), Queue: name}), b.End())
	return b.Build()
}

// MustLetters is like [Letters] but panics if the definition has a problem.
func MustLetters(name string, opts ...Option) *Workflow[workflow.Letter] {
	w, err := Letters(name, opts...)
	if err != nil {
		panic(err)
	}
	return w
}
