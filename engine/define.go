package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// registerAll takes the workflows that an engine is opened with, and those that their composite tasks run. Two that are built
// apart under one name and version are refused: cases of the one would run the code of the other, now or when the engine is
// opened next. Only of a child that two workflows have built alike, the first one serves for both.
func (e *Engine) registerAll(workflows []Workflow) error {
	for i, w := range workflows {
		if w == nil || w.Untyped() == nil {
			return fmt.Errorf("workflow %d of %d is nil: look at the error of its Build", i+1, len(workflows))
		}
		for _, other := range workflows[:i] {
			if a, b := other.Untyped(), w.Untyped(); a != b && a.Fingerprint == b.Fingerprint {
				return twins(a, b)
			}
		}
		if err := e.register(w.Untyped()); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) register(d *workflow.Definition) error {
	if d == nil || e.byPrint[d.Fingerprint] != nil {
		return nil
	}
	if other := e.version(d.Name, d.Version); other != nil {
		return twins(other, d)
	}
	e.byPrint[d.Fingerprint] = d
	e.byName[d.Name] = d
	e.warn(d)
	for i := range d.Tasks {
		for _, child := range d.Tasks[i].Of {
			if err := e.register(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// warn logs what verification noticed of a workflow as it was built, where somebody sees it who did not ask.
func (e *Engine) warn(d *workflow.Definition) {
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
		e.log.Warn(w.Text+"; builder.Silence leaves this out", args...)
	}
}

// maxLoggedSteps bounds a run in the log; Workflow.Warnings has all of it.
const maxLoggedSteps = 20

// version finds a version of a workflow that the engine was opened with; nil if there is none.
func (e *Engine) version(name, version string) *workflow.Definition {
	for _, d := range e.byPrint {
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

// origin says where the first task of a workflow was declared, " (orders.go:12)"; "" if nobody knows.
func origin(d *workflow.Definition) string {
	if len(d.Tasks) == 0 || d.Net.Task(0).Pos.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s)", d.Net.Task(0).Pos)
}

// Workflow finds a workflow that the engine was opened with, by name: the last one given, if there are several versions.
// It is nil if there is none.
func (e *Engine) Workflow(name string) *workflow.Definition { return e.byName[name] }

// definitions lists what is registered in the form that the database keeps.
func (e *Engine) definitions() []*store.Definition {
	var defs []*store.Definition
	for _, d := range e.byPrint {
		defs = append(defs, &store.Definition{
			Name: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Net: d.Net.Definition(),
			Document: d.Document, Code: d.Code, Created: e.now(),
		})
	}
	slices.SortFunc(defs, func(a, b *store.Definition) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	return defs
}

// checkDrift refuses a definition that differs from the one of the same name and version that running cases depend on.
func (e *Engine) checkDrift(ctx context.Context) error {
	return e.store.View(ctx, func(r store.Reader) error {
		stored, err := r.Definitions(ctx)
		if err != nil {
			return err
		}
		var drifts []error
		for _, old := range stored {
			d := e.version(old.Name, old.Version)
			if d == nil || e.byPrint[old.Fingerprint] != nil {
				continue
			}
			running, err := r.Cases(ctx, store.CaseFilter{Fingerprint: old.Fingerprint,
				States: []state.CaseState{state.CaseStarted}, Page: store.Page{Limit: 1}})
			if err != nil {
				return err
			}
			if len(running) > 0 {
				drifts = append(drifts, drift(old, d, running[0]))
			}
		}
		return errors.Join(drifts...)
	})
}

func drift(old *store.Definition, d *workflow.Definition, c *state.Case) error {
	version := ""
	if d.Version != "" {
		version = " version " + d.Version
	}
	return fmt.Errorf("%w: workflow %s%s is not what case %s runs on: %s; give the changed workflow a new version, and open "+
		"the engine with the old one too until its cases have ended",
		ErrDrift, d.Name, version, c.ID, strings.Join(differences(old.Document, d.Document), "; "))
}

// differences says where two documents differ, by path.
func differences(a, b json.RawMessage) []string {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return []string{"the definition"}
	}
	var diffs []string
	compare("", x, y, &diffs)
	if len(diffs) > 8 {
		diffs = append(diffs[:8], fmt.Sprintf("and %d more", len(diffs)-8))
	}
	return diffs
}

func compare(path string, x, y any, diffs *[]string) {
	if reflect.DeepEqual(x, y) {
		return
	}
	mx, okx := x.(map[string]any)
	my, oky := y.(map[string]any)
	if okx && oky {
		keys := make(map[string]bool)
		for k := range mx {
			keys[k] = true
		}
		for k := range my {
			keys[k] = true
		}
		for _, k := range sorted(keys) {
			compare(strings.TrimPrefix(path+"."+k, "."), mx[k], my[k], diffs)
		}
		return
	}
	lx, okx := x.([]any)
	ly, oky := y.([]any)
	if okx && oky && len(lx) == len(ly) {
		for i := range lx {
			compare(fmt.Sprintf("%s[%s]", path, nameOf(lx[i], i)), lx[i], ly[i], diffs)
		}
		return
	}
	*diffs = append(*diffs, fmt.Sprintf("%s was %s and is %s", path, brief(x), brief(y)))
}

func sorted(keys map[string]bool) []string {
	var s []string
	for k := range keys {
		s = append(s, k)
	}
	slices.Sort(s)
	return s
}

func nameOf(x any, i int) string {
	if m, ok := x.(map[string]any); ok {
		if name, ok := m["name"].(string); ok {
			return name
		}
	}
	return fmt.Sprint(i)
}

func brief(x any) string {
	if x == nil {
		return "absent"
	}
	data, err := json.Marshal(x)
	if err != nil || len(data) > 60 {
		return "another value"
	}
	return string(data)
}
