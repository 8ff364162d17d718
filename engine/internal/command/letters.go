package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// GivenUp starts the cases of the dead letters of work items without further attempts.
func (x *Executor) GivenUp(tx *commit.Tx, u *commit.TreeWrite, items []kernel.GivenUp) error {
	for _, g := range items {
		it := g.Attempts[len(g.Attempts)-1]
		l := letterOf(tx, u.Tree.Case(it.Case), g.Attempts)
		l.Item, l.Input, l.Failure = it.ID, it.Input, g.Failure
		if err := x.startLetter(tx, u, l, g.To); err != nil {
			return err
		}
	}
	return nil
}

// The dead letter of an item has the item's input and failure, that of a case those of the case: a letter has what is
// needed to do the work again without the original, which may be removed before anyone decides.

// caseLetter starts the case of the dead letter of a failed root case.
func (x *Executor) caseLetter(tx *commit.Tx, u *commit.TreeWrite, c *state.Case, to *workflow.Definition) error {
	var last *workitem.Item
	for it := range c.Items.All() {
		if it.State == workitem.Failed && it.Successor.IsZero() {
			last = it
		}
	}
	l := letterOf(tx, c, kernel.Attempts(c, last))
	l.Input, l.Failure = c.Input, c.Failure
	return x.startLetter(tx, u, l, to)
}

// letterOf returns a letter with the fields of its case, and the attempts of the failed item.
func letterOf(tx *commit.Tx, c *state.Case, attempts []*workitem.Item) workflow.Letter {
	l := workflow.Letter{Workflow: c.Workflow, Case: c.ID, At: tx.Now(), BusinessKey: c.Key, Labels: c.Labels, Priority: c.Priority,
		Options: c.Options}
	for _, it := range attempts {
		l.Task = it.Task
		l.Attempts = append(l.Attempts, workflow.LetterAttempt{Item: it.ID, Attempt: it.Attempt, Failure: it.Failure, Started: it.Started,
			Ended: it.Ended})
	}
	return l
}

// startLetter starts the case of a letter, and records it in the journal of the original case.
func (x *Executor) startLetter(tx *commit.Tx, u *commit.TreeWrite, l workflow.Letter, to *workflow.Definition) error {
	input, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("dead letter of case %s (%s): %w", l.Case, l.Workflow, err)
	}
	code := ""
	if l.Failure != nil {
		code = l.Failure.Code
	}
	fresh := &state.Case{Priority: l.Priority, Labels: workflow.LetterLabels(l.Workflow, code)}
	start := workflow.Start(to.Name, input)
	result, err := x.begin(tx, fresh, to, &start, commit.Operation{Command: start.String()}, nil)
	if err != nil {
		return fmt.Errorf("dead letter of case %s (%s): %w", l.Case, l.Workflow, err)
	}
	text := fmt.Sprintf("it is given up; its dead letter is case %s of %s", result.Case, to.Name)
	return tx.Run(u, "", func(m *kernel.Machine) error { return m.DeadLetter(l.Case, l.Task, text) })
}

// redrive repeats the work of a dead letter, and cancels the case of the letter unless that has ended by itself. It is refused for a letter
// that was redriven before: of two people, or actions, that redrive one letter, the second one would start a run beside that of the first.
func (x *Executor) redrive(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	var none workflow.Result
	u, err := x.openRoot(tx, c)
	if err != nil {
		return none, err
	}
	at := u.Tree.Case(c.Case)
	l, err := workflow.LetterOf(kernel.Info(at))
	if err != nil {
		return none, err
	}
	if err := redrivenBefore(tx, at, l); err != nil {
		return none, err
	}
	result, err := x.redriven(tx, l, c)
	if err != nil {
		return none, fmt.Errorf("redrive the dead letter of %s: %w", l.Workflow, err)
	}
	if !at.State.Final() {
		reason := &workitem.Failure{Code: workflow.CodeRedriven, Message: fmt.Sprintf("case %s goes on", result.Case)}
		if c.Reason != nil {
			reason.Message += ": " + c.Reason.String()
		}
		if _, err = tx.On(u, o.Unkeyed(), result, func(m *kernel.Machine) error { return m.Cancel(c.Case, reason) }); err != nil {
			return none, err
		}
	} else if err := tx.Remember(u, redriveOf(at, o), result); err != nil {
		return none, err
	}
	return result, tx.Remember(u, o, result)
}

// redrivenBefore returns an error if a letter was redriven before. The reason for which its case was canceled says so. The case of a letter
// that had ended until then cannot be changed anymore: there the journal has the command, see [redriveOf].
func redrivenBefore(tx *commit.Tx, letter *state.Case, l workflow.Letter) error {
	goesOn := ""
	switch first, done, err := tx.Answered(redriveOf(letter, commit.Operation{})); {
	case err != nil:
		return err
	case done:
		goesOn = fmt.Sprintf("case %s goes on", first.Case)
	case letter.State == state.CaseCanceled && letter.Failure != nil && letter.Failure.Code == workflow.CodeRedriven:
		goesOn = letter.Failure.Message
	default:
		return nil
	}
	return fmt.Errorf("the dead letter of %s is redriven already: case %s %w; %s", l.Workflow, letter.ID, activities.ErrInactive, goesOn)
}

// redriveOf returns the operation that redrives a letter whose case has ended. It has an idempotency key of the letter, so the store finds it; the
// prefix keeps it apart from the keys of callers.
func redriveOf(letter *state.Case, o commit.Operation) commit.Operation {
	o.Key, o.Hash = "tasq-redrive "+letter.ID.String(), ""
	return o
}

// redriven repeats the original work of a letter. What it does depends on what failed, and on whether the original case
// still exists:
//
//	an item failed                               ──▶ retry the item; an error if its case was removed
//	a case of a single function failed           ──▶ restart it: a new case takes over the completed steps
//	another case failed                          ──▶ resume it
//	a case failed, and was removed               ──▶ start a new case with the input in the letter
func (x *Executor) redriven(tx *commit.Tx, l workflow.Letter, c *workflow.Command) (workflow.Result, error) {
	again := workflow.Command{Actor: c.Actor}
	root, err := tx.RootOfCase(l.Case)
	switch {
	case errors.Is(err, store.ErrNotFound) && l.Item.IsZero():
		again.Kind, again.Workflow, again.Payload = workflow.KindStart, l.Workflow, l.Input
		return x.startAgain(tx, l, &again, operationOf(&again))
	case err != nil:
		return workflow.Result{}, fmt.Errorf("the case in which it failed: %w", err)
	case !l.Item.IsZero():
		again.Kind, again.Item, again.Reason = workflow.KindRetry, l.Item, c.Reason
		return x.repairItem(tx, &again, operationOf(&again))
	}
	u, err := tx.Open(root)
	if err != nil {
		return workflow.Result{}, err
	}
	again.Case = l.Case
	if old := u.Tree.Case(l.Case); old.IsFunction() && old.State.Final() {
		again.Kind = workflow.KindRestart
		return x.restart(tx, &again, operationOf(&again))
	}
	again.Kind, again.Reason = workflow.KindResume, c.Reason
	return x.resume(tx, &again, operationOf(&again))
}

// startAgain starts a case with what the letter has of a case that was removed.
func (x *Executor) startAgain(tx *commit.Tx, l workflow.Letter, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	d, err := x.definition(c)
	if err != nil {
		return workflow.Result{}, err
	}
	fresh := &state.Case{Priority: l.Priority, Key: l.BusinessKey, Labels: l.Labels, Options: l.Options}
	options, err := workflow.OptionsOf(kernel.Info(fresh))
	if err != nil {
		return workflow.Result{}, err
	}
	if options.Queued {
		c.IfTaken = workflow.Queued
	}
	return x.begin(tx, fresh, d, c, o, nil)
}

// operationOf returns the operation of a command that another command executes as its part.
func operationOf(c *workflow.Command) commit.Operation {
	return commit.Operation{Command: c.String(), Actor: c.Actor}
}
