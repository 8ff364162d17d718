package builder

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// DeadLetter names the workflow, or the function, that what is given up goes to: a root case or a run that fails starts a case of it, in
// the same transaction, with a [workflow.Letter] as its input. [Letters] makes one that is a queue for people. A child case that fails
// leaves no letter of its own; its parent answers the failure. An engine that has the one workflow has the other, too.
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
// Who has dealt with one completes its item, or has the original started again with [workflow.Redrive]. The error is an [*Error].
func Letters(name string, opts ...Option) (*Workflow[workflow.Letter], error) {
	b := newBuilder[workflow.Letter](name, caller(), opts)
	b.Path(b.Start(), newTask(b, "letter", b.d.pos, Work[workflow.Letter, struct{}]{Input: CaseInput(b), Queue: name}), b.End())
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
