package selection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Missing finds the commands that are rejected since no open engine has a definition that they need.
type Missing struct {
	here  why.Here
	lacks []string          // the fingerprints of the definitions that no open engine has
	names map[string]string // their workflows with the versions
	cases map[workitem.CaseID]*state.Case
	roots map[workitem.CaseID]*Lack // what is missing to cancel a root case; nil until that is asked for
}

// FindMissing returns nil if no definition of the database is missing, as far as that is known.
func FindMissing(ctx context.Context, r store.Reader, here why.Here) (*Missing, error) {
	here, err := here.WithFleet(ctx, r)
	if err != nil || here.Unknown() {
		return nil, err
	}
	all, err := r.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	m := &Missing{here: here, names: make(map[string]string), cases: make(map[workitem.CaseID]*state.Case)}
	for _, d := range all {
		if here.Lacks(d.Fingerprint) {
			m.lacks = append(m.lacks, d.Fingerprint)
			m.names[d.Fingerprint] = strings.TrimSpace(d.Name + " " + d.Version)
		}
	}
	if m.lacks == nil {
		return nil, nil
	}
	return m, nil
}

// find returns a case, and an empty one if it has been removed.
func (m *Missing) find(ctx context.Context, r store.Reader, id workitem.CaseID) (*state.Case, error) {
	if c := m.cases[id]; c != nil {
		return c, nil
	}
	found, err := r.Cases(ctx, store.CaseFilter{ID: id})
	if err != nil {
		return nil, err
	}
	c := &state.Case{ID: id}
	if len(found) > 0 {
		c = found[0]
	}
	m.cases[id] = c
	return c, nil
}

func (m *Missing) lackOf(ctx context.Context, r store.Reader, c *state.Case) (*Lack, error) {
	chain, err := Chain(c, func(id workitem.CaseID) (*state.Case, error) { return m.find(ctx, r, id) })
	if err != nil {
		return nil, err
	}
	return LackOf(&m.here, c, chain), nil
}

// Knows adds a case that has been read.
func (m *Missing) Knows(c *state.Case) {
	if m != nil {
		m.cases[c.ID] = c
	}
}

// Definition returns what is missing for commands on cases of the definition with a fingerprint; nil for nothing, as far as that depends
// on the definition alone.
func (m *Missing) Definition(fingerprint string) *Lack {
	if m == nil || m.names[fingerprint] == "" {
		return nil
	}
	return &Lack{Workflow: m.names[fingerprint], Some: needDefinition}
}

// Incident returns what is missing for a command that resolves an incident; nil for nothing. The retry of an incident about a child case resumes
// that case.
func (m *Missing) Incident(ctx context.Context, r store.Reader, i *store.Incident, word string) (*Lack, error) {
	if m == nil || i.Definition != nil {
		return nil, nil
	}
	of, needs := i.Case, word
	if !i.Child.IsZero() && word != "give-up-incident" {
		of, needs = i.Child, ResumeFailed
	}
	c, err := m.find(ctx, r, of)
	if err != nil {
		return nil, err
	}
	l, err := m.lackOf(ctx, r, c)
	if err != nil || l == nil || !l.Some[needs] {
		return nil, err
	}
	return l, nil
}

// Redrive returns what is missing to redrive the dead letter of a case; nil for nothing.
func (m *Missing) Redrive(ctx context.Context, r store.Reader, c *state.Case) (*Lack, error) {
	if m == nil {
		return nil, nil
	}
	l, err := workflow.LetterOf(activities.CaseInfo{ID: c.ID, Workflow: c.Workflow, Labels: c.Labels, Input: c.Input})
	if err != nil {
		return nil, nil // the command says what is wrong with it
	}
	original, err := m.find(ctx, r, l.Case)
	if err != nil {
		return nil, err
	}
	gone := original.Workflow == ""
	if !l.Item.IsZero() {
		return m.rejected(ctx, r, original, "retry")
	}
	// The case of a single function that has ended is started again, with the present version of its workflow.
	if !gone && !(original.State.Final() && original.IsFunction()) {
		return m.rejected(ctx, r, original, ResumeFailed)
	}
	can, err := Startable(ctx, r, &m.here, l.Workflow)
	if err != nil || can {
		return nil, err
	}
	return redriveLack(l.Workflow), nil
}

func (m *Missing) rejected(ctx context.Context, r store.Reader, c *state.Case, word string) (*Lack, error) {
	l, err := m.lackOf(ctx, r, c)
	if err != nil || l == nil || !l.Some[word] {
		return nil, err
	}
	return redriveLack(l.Workflow), nil
}

func redriveLack(name string) *Lack {
	return &Lack{Workflow: name, Some: map[string]bool{"redrive": true},
		Text: fmt.Sprintf("No open engine has workflow %s, in which the work failed: the letter cannot be redriven until a program with it is open.", name)}
}

// Item returns what is missing for an action on a work item; nil for nothing.
func (m *Missing) Item(ctx context.Context, r store.Reader, it *workitem.Item, do workitem.Action) (*Lack, error) {
	if m == nil {
		return nil, nil
	}
	c, err := m.find(ctx, r, it.Case)
	if err != nil {
		return nil, err
	}
	l, err := m.lackOf(ctx, r, c)
	if err != nil || !l.Rejects("item-"+do.String(), "item") {
		return nil, err
	}
	return l, nil
}

// restart returns what is missing to start a case again: its workflow, in any version.
func (m *Missing) restart(ctx context.Context, r store.Reader, c *state.Case) (*Lack, error) {
	can, err := Startable(ctx, r, &m.here, c.Workflow)
	if err != nil || can {
		return nil, err
	}
	return &Lack{Workflow: c.Workflow, Some: map[string]bool{"restart": true}}, nil
}

// Case returns what is missing for a bulk action on a root case; nil for nothing.
func (m *Missing) Case(ctx context.Context, r store.Reader, c *state.Case, kind workflow.Kind) (*Lack, error) {
	switch {
	case m == nil:
		return nil, nil
	case kind == workflow.KindResume && c.State == state.CaseFailed:
		return m.lackOf(ctx, r, c)
	case kind == workflow.KindRedrive:
		return m.Redrive(ctx, r, c)
	case kind == workflow.KindRestart:
		return m.restart(ctx, r, c)
	case kind != workflow.KindCancel || c.State.Final():
		return nil, nil
	}
	if m.roots == nil {
		if err := m.readRoots(ctx, r); err != nil {
			return nil, err
		}
	}
	return m.roots[c.ID], nil
}

// readRoots finds the root cases with a live case, themselves or one below, whose definition is missing.
func (m *Missing) readRoots(ctx context.Context, r store.Reader) error {
	m.roots = make(map[workitem.CaseID]*Lack)
	for _, fingerprint := range m.lacks {
		live := store.CaseFilter{Fingerprint: fingerprint, States: []state.CaseState{state.CaseStarted}}
		for c, err := range store.AllCases(ctx, store.ViewerOf(r), live) {
			if err != nil {
				return err
			}
			m.roots[c.Root] = &Lack{Workflow: versioned(c), Some: map[string]bool{"cancel": true}}
		}
	}
	return nil
}

// Lacking are targets that are left out, since no open engine has a definition that the action needs.
type Lacking struct {
	N         int
	Workflows []string // with their versions
}

// Add counts a target.
func (l *Lacking) Add(lack *Lack) {
	l.N++
	if i, found := slices.BinarySearch(l.Workflows, lack.Workflow); !found {
		l.Workflows = slices.Insert(l.Workflows, i, lack.Workflow)
	}
}

// Workflow returns what is missing for all cases of a workflow, or of its version with a fingerprint if that is not empty: "" if nothing is.
func (m *Missing) Workflow(ctx context.Context, r store.Reader, name, fingerprint string) (string, error) {
	if m == nil || name == "" && fingerprint == "" {
		return "", nil
	}
	all, err := r.Definitions(ctx)
	if err != nil {
		return "", err
	}
	missing := ""
	for _, d := range all {
		switch {
		case name != "" && d.Name != name, fingerprint != "" && d.Fingerprint != fingerprint:
		case !m.here.Lacks(d.Fingerprint):
			return "", nil
		default:
			missing = strings.TrimSpace(d.Name + " " + d.Version)
		}
	}
	return missing, nil
}

// maxNamed is how many missing workflows are named.
const maxNamed = 3

// Names lists the workflows that are missing.
func (l *Lacking) Names() string {
	names := l.Workflows
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
