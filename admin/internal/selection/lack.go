package selection

import (
	"context"
	"fmt"
	"iter"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Lack is a definition that no open engine has, as far as that is known, and the commands that are rejected without it.
type Lack struct {
	Text     string
	Workflow string          // with its version
	All      bool            // all on cases and items: a program that owns the database rejects those that others send for the whole tree of cases
	Some     map[string]bool // these, by word
}

// needDefinition are the commands on a case, its items and jobs for which the engine needs the definition of the case. To resume a failed case
// it needs it, too; see [ResumeFailed].
var needDefinition = map[string]bool{"cancel": true, "move": true, "fork": true, "retry": true, "retry-incident": true, "skip": true, "give-up": true, "give-up-incident": true,
	"item-start": true, "item-complete": true, "item-fail": true, "item-cancel": true, "item-reset": true}

// ResumeFailed is the word of the resume of a failed case in the sets of a [Lack]: that of a suspended case needs no definition.
const ResumeFailed = "resume-failed"

// Rejects reports whether a command is rejected; l may be nil. target is what the command is about: a "case", an "item", and so on.
func (l *Lack) Rejects(word, target string) bool {
	return l != nil && (l.Some[word] || l.All && (target == "case" || target == "item"))
}

// LackOf returns what is missing for commands on a case; nil for nothing. chain is the case and those above it whose state its end changes.
func LackOf(here *why.Here, c *state.Case, chain iter.Seq[*state.Case]) *Lack {
	reads := here.Definition == nil
	for above := range chain {
		if above.Fingerprint == "" || !here.Lacks(above.Fingerprint) { // "": it has been removed meanwhile
			continue
		}
		what, of := versioned(above), "the case"
		if above != c {
			of = "case " + above.ID.String() + " above"
		}
		if c.State.Final() {
			return &Lack{Workflow: what, Some: map[string]bool{ResumeFailed: true, "retry": true, "skip": true},
				Text: fmt.Sprintf("No open engine has workflow %s of %s: it cannot be resumed until a program with this version is open.", what, of)}
		}
		return &Lack{Workflow: what, All: reads, Some: needDefinition,
			Text: fmt.Sprintf("No open engine has workflow %s of %s: nothing happens in it, and commands that need the workflow are rejected. Open a program with this version.", what, of)}
	}
	return nil
}

// LackBelow returns what is missing to cancel a case with its child cases; nil for nothing.
func LackBelow(here *why.Here, c *state.Case, tree *state.Tree) *Lack {
	for _, id := range c.Children {
		child := tree.Case(id)
		if child == nil || child.State.Final() {
			continue
		}
		if here.Lacks(child.Fingerprint) {
			return &Lack{Workflow: versioned(child), All: here.Definition == nil, Some: map[string]bool{"cancel": true},
				Text: fmt.Sprintf("No open engine has workflow %s of child case %s: the case cannot be canceled until a program with this version is open.",
					versioned(child), id)}
		}
		if l := LackBelow(here, child, tree); l != nil {
			return l
		}
	}
	return nil
}

func versioned(c *state.Case) string {
	if c.Version == "" {
		return c.Workflow
	}
	return c.Workflow + " " + c.Version
}

// Startable reports whether an engine has any version of a workflow, as far as that is known.
func Startable(ctx context.Context, r store.Reader, here *why.Here, workflow string) (bool, error) {
	if here.Unknown() {
		return true, nil
	}
	all, err := r.Definitions(ctx)
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

// Chain returns the case and those above it whose state its end changes, as [state.Tree.Chain] does of a tree. find returns a case by its id.
func Chain(of *state.Case, find func(workitem.CaseID) (*state.Case, error)) (iter.Seq[*state.Case], error) {
	chain := []*state.Case{of}
	for c := of; !c.Parent.IsZero() && c.Caller.IsZero(); chain = append(chain, c) {
		var err error
		if c, err = find(c.Parent); err != nil {
			return nil, err
		}
	}
	return func(yield func(*state.Case) bool) {
		for _, c := range chain {
			if !yield(c) {
				return
			}
		}
	}, nil
}
