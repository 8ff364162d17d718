package view

import (
	"fmt"

	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// lack is what is missing for the commands that a page offers.
type lack = selection.Lack

// lack returns what is missing for commands on a case of the shown tree.
func (c *casePage) lack(of *state.Case) *lack {
	if of == nil || c.past {
		return nil
	}
	if l := selection.LackOf(&c.here, of, c.tree.Chain(of)); l != nil || of.State.Final() {
		return l
	}
	return selection.LackBelow(&c.here, of, c.tree)
}

// itemLack returns what is missing for commands on an item of a case.
func (s *Site) itemLack(r *Request, of *state.Case) (*lack, error) {
	here, err := s.Backend.Here().WithFleet(r, r.R)
	if err != nil {
		return nil, err
	}
	chain, err := selection.Chain(of, func(id workitem.CaseID) (*state.Case, error) { return caseOf(r, nil, id) })
	if err != nil {
		return nil, err
	}
	return selection.LackOf(&here, of, chain), nil
}

// presentButtons returns the commands on the shown case, which is in its present state, and what is missing for others.
func (c *casePage) presentButtons() ([]Link, *lack, error) {
	l := c.lack(c.c)
	if l != nil && c.c.State.Final() {
		can, err := selection.Startable(c.r, c.r.R, &c.here, c.c.Workflow)
		if err != nil {
			return nil, nil, err
		}
		if l.Some["restart"] = !can; !can {
			l.Text = fmt.Sprintf("No open engine has workflow %s: the case can be neither resumed nor restarted until a program with it is open.", c.c.Workflow)
		}
	}
	letter, err := c.letterLack()
	if err != nil {
		return nil, nil, err
	}
	all := c.buttons(c.r).lacking(l).ofCase(c.c, letter == nil)
	if l != nil && c.c.State.Final() && c.c.State != state.CaseFailed && !l.Some["restart"] {
		l = nil // nothing that could be done is missing
	}
	if l == nil {
		l = letter
	}
	return all, l, nil
}

// letterLack returns what is missing to redrive the shown case, if it is a dead letter that can be redriven; nil for nothing.
func (c *casePage) letterLack() (*lack, error) {
	if !redrivable(c.c) {
		return nil, nil
	}
	m, err := selection.FindMissing(c.r, c.r.R, c.Backend.Here())
	if err != nil {
		return nil, err
	}
	return m.Redrive(c.r, c.r.R, c.c)
}

// redrivable reports whether a case is a dead letter that was not redriven.
func redrivable(c *state.Case) bool {
	return c.Labels[workflow.LabelLetter] != "" && !(c.State == state.CaseCanceled && c.Failure.Code == workflow.CodeRedriven)
}
