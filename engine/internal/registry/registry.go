// Package registry has the definitions that an engine was opened with. It checks them against each other and against
// those in the database, and answers questions about all of them: which limits they use, which queues are fair, which
// have batches.
package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// ErrDrift says that a definition differs from the stored one with the same name and version, on which running
// cases depend.
var ErrDrift = errors.New("the definition changed under running cases")

// ErrNotLoaded says that a job belongs to a workflow that the engine was not opened with.
var ErrNotLoaded = fmt.Errorf("%w: the job is left for a program that has it", workflow.ErrUnknown)

// Registry finds definitions by fingerprint and by name. Make one with [New]; it does not change afterwards, so it is safe
// for concurrent use.
type Registry struct {
	log           *slog.Logger
	byFingerprint map[string]*workflow.Definition
	byName        map[string]*workflow.Definition // the last one given of each name
}

// New returns a registry of the workflows that an engine is opened with, including the workflows of their composite
// tasks and dead letters. Two different workflows with one name and version are an error, since cases of one would run
// the code of the other, now or after a restart. Only a child workflow that two workflows have built identically may
// occur twice; the first one is used. New logs the warnings of verification.
func New(log *slog.Logger, workflows []*workflow.Definition) (*Registry, error) {
	r := &Registry{log: log, byFingerprint: make(map[string]*workflow.Definition), byName: make(map[string]*workflow.Definition)}
	for i, d := range workflows {
		if d == nil {
			return nil, fmt.Errorf("workflow %d of %d is nil: look at the error of its Build", i+1, len(workflows))
		}
		if d.Net == nil || d.Fingerprint == "" {
			return nil, fmt.Errorf("workflow %d of %d (%q) was not built: make it with a builder", i+1, len(workflows), d.Name)
		}
		for _, other := range workflows[:i] {
			if other != d && other.Fingerprint == d.Fingerprint {
				return nil, twins(other, d)
			}
		}
		if err := r.add(d); err != nil {
			return nil, err
		}
		r.byName[d.Name] = r.byFingerprint[d.Fingerprint] // also if a parent that was given before has brought it along
	}
	return r, nil
}

func (r *Registry) add(d *workflow.Definition) error {
	if d == nil || r.byFingerprint[d.Fingerprint] != nil {
		return nil
	}
	if other := r.version(d.Name, d.Version); other != nil {
		return twins(other, d)
	}
	r.byFingerprint[d.Fingerprint] = d
	r.byName[d.Name] = d
	r.warn(d)
	if err := r.add(d.DeadLetter); err != nil {
		return err
	}
	for i := range d.Tasks {
		if err := r.add(d.Tasks[i].DeadLetter); err != nil {
			return err
		}
		for _, child := range d.Tasks[i].Of {
			if err := r.add(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// Definition returns the definition with a fingerprint; nil if the engine was not opened with it.
func (r *Registry) Definition(fingerprint string) *workflow.Definition {
	return r.byFingerprint[fingerprint]
}

// Named returns the workflow with a name: the last one, if there are several versions; nil if there is none.
func (r *Registry) Named(name string) *workflow.Definition { return r.byName[name] }

// Names lists the names of all workflows, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// warn logs the warnings of verification, so that operators see them.
func (r *Registry) warn(d *workflow.Definition) {
	for _, w := range d.Verification.Warnings {
		args := []any{"workflow", d.Name, "code", w.Code}
		if len(w.Elements) > 0 {
			args = append(args, "at", w.Elements[0].Pos.String())
		}
		if w.Witness != nil {
			args = append(args, "run", w.Witness.Brief(maxLoggedSteps))
		}
		if w.Fix != "" {
			args = append(args, "fix", w.Fix)
		}
		r.log.Warn(w.Text+"; builder.Silence leaves this out", args...)
	}
}

// maxLoggedSteps bounds a run in the log; Workflow.Warnings has all of it.
const maxLoggedSteps = 20

// version returns a version of a workflow that the engine was opened with; nil if there is none.
func (r *Registry) version(name, version string) *workflow.Definition {
	for _, d := range r.byFingerprint {
		if d.Name == name && d.Version == version {
			return d
		}
	}
	return nil
}

func twins(a, b *workflow.Definition) error {
	name := a.Name
	if a.Version != "" {
		name += " version " + a.Version
	}
	return fmt.Errorf("there are two workflows %s%s and %s%s: build one once and pass it to all who need it, or give the other "+
		"another name, or another version if it follows it", name, origin(a), name, origin(b))
}

// origin returns the position of the first task of a workflow, " (orders.go:12)"; "" if it is unknown.
func origin(d *workflow.Definition) string {
	if len(d.Tasks) == 0 || d.Net.Task(0).Pos.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s)", d.Net.Task(0).Pos)
}

// Stored returns the definitions in their stored form, sorted by fingerprint.
func (r *Registry) Stored(now time.Time) []*store.Definition {
	var defs []*store.Definition
	for _, fingerprint := range slices.Sorted(maps.Keys(r.byFingerprint)) {
		d := r.byFingerprint[fingerprint]
		defs = append(defs, &store.Definition{
			Name: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Net: d.Net.Definition(),
			Document: d.Document, Code: d.Code, Created: now,
		})
	}
	return defs
}
