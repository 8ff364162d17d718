package view

import (
	"fmt"
	"iter"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store/state"
)

// lack is a definition that no open engine has, as far as that is known, and the commands that are rejected without it.
type lack struct {
	Text string
	all  bool            // all on cases and items: a program that owns the database rejects those that others send for the whole tree of cases
	some map[string]bool // these, by word
}

// needDefinition are the commands on a case, its items and jobs for which the engine needs the definition of the case. To resume a failed case
// it needs it, too; see [Site.caseButtons].
var needDefinition = map[string]bool{"cancel": true, "move": true, "fork": true, "retry": true, "retry-incident": true, "skip": true, "give-up": true, "give-up-incident": true,
	"item-start": true, "item-complete": true, "item-fail": true, "item-cancel": true, "item-reset": true}

// resumeFailed is the word of the resume of a failed case in the sets of a lack: that of a suspended case needs no definition.
const resumeFailed = "resume-failed"

// rejects reports whether a command is rejected; l may be nil.
func (l *lack) rejects(word string) bool {
	target := actions[word].target
	return l != nil && (l.some[word] || l.all && (target == "case" || target == "item"))
}

// lackOf returns what is missing for commands on a case; nil for nothing. chain is the case and those above it whose state its end changes.
func lackOf(here *why.Here, c *state.Case, chain iter.Seq[*state.Case]) *lack {
	reads := here.Definition == nil
	for above := range chain {
		if above.Fingerprint == "" || !here.Lacks(above.Fingerprint) { // "": it has been removed meanwhile
			continue
		}
		what, of := above.Workflow+version(above.Version), "the case"
		if above != c {
			of = "case " + above.ID.String() + " above"
		}
		if c.State.Final() {
			return &lack{some: map[string]bool{resumeFailed: true, "retry": true, "skip": true},
				Text: fmt.Sprintf("No open engine has workflow %s of %s: it cannot be resumed until a program with this version is open.", what, of)}
		}
		return &lack{all: reads, some: needDefinition,
			Text: fmt.Sprintf("No open engine has workflow %s of %s: nothing happens in it, and commands that need the workflow are rejected. Open a program with this version.", what, of)}
	}
	return nil
}

// lackBelow returns what is missing to cancel a case with its child cases; nil for nothing.
func lackBelow(here *why.Here, c *state.Case, tree *state.Tree) *lack {
	for _, id := range c.Children {
		child := tree.Case(id)
		if child == nil || child.State.Final() {
			continue
		}
		if here.Lacks(child.Fingerprint) {
			return &lack{all: here.Definition == nil, some: map[string]bool{"cancel": true},
				Text: fmt.Sprintf("No open engine has workflow %s of child case %s: the case cannot be canceled until a program with this version is open.",
					child.Workflow+version(child.Version), id)}
		}
		if l := lackBelow(here, child, tree); l != nil {
			return l
		}
	}
	return nil
}

// lack returns what is missing for commands on a case of the shown tree.
func (c *shown) lack(of *state.Case) *lack {
	if of == nil || c.past {
		return nil
	}
	if l := lackOf(&c.here, of, c.tree.Chain(of)); l != nil || of.State.Final() {
		return l
	}
	return lackBelow(&c.here, of, c.tree)
}

// startable reports whether an engine has any version of a workflow, as far as that is known.
func startable(r *Request, here *why.Here, workflow string) (bool, error) {
	if here.Unknown() {
		return true, nil
	}
	all, err := r.R.Definitions(r)
	if err != nil {
		return false, err
	}
	for _, d := range all {
		if d.Name == workflow && !here.Lacks(d.Fingerprint) {
			return true, nil
		}
	}
	return false, nil
}

// itemLack returns what is missing for commands on an item of a case.
func (s *Site) itemLack(r *Request, of *state.Case) (*lack, error) {
	here, err := s.Backend.Here().WithFleet(r, r.R)
	if err != nil {
		return nil, err
	}
	chain := []*state.Case{of}
	for c := of; !c.Parent.IsZero() && c.Caller.IsZero(); chain = append(chain, c) {
		if c, err = caseOf(r, nil, c.Parent); err != nil {
			return nil, err
		}
	}
	return lackOf(&here, of, func(yield func(*state.Case) bool) {
		for _, c := range chain {
			if !yield(c) {
				return
			}
		}
	}), nil
}

// presentButtons returns the commands on the shown case, which is in its present state, and what is missing for others.
func (s *Site) presentButtons(r *Request, c *shown) ([]Link, *lack, error) {
	l := c.lack(c.c)
	if l != nil && c.c.State.Final() {
		can, err := startable(r, &c.here, c.c.Workflow)
		if err != nil {
			return nil, nil, err
		}
		if l.some["restart"] = !can; !can {
			l.Text = fmt.Sprintf("No open engine has workflow %s: the case can be neither resumed nor restarted until a program with it is open.", c.c.Workflow)
		}
	}
	all := s.caseButtons(r.lacking(l), c.c)
	if l != nil && c.c.State.Final() && c.c.State != state.CaseFailed && !l.some["restart"] {
		l = nil // nothing that could be done is missing
	}
	return all, l, nil
}
