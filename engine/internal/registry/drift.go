package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// CheckDrift returns [ErrDrift] for each definition that differs from the stored one with the same name and version, if
// running cases depend on that.
func (r *Registry) CheckDrift(ctx context.Context, v store.Viewer) error {
	return v.View(ctx, func(reader store.Reader) error {
		stored, err := reader.Definitions(ctx)
		if err != nil {
			return err
		}
		var drifts []error
		for _, old := range stored {
			d := r.version(old.Name, old.Version)
			if d == nil || r.byFingerprint[old.Fingerprint] != nil {
				continue
			}
			running, err := reader.Cases(ctx, store.CaseFilter{Fingerprint: old.Fingerprint,
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

// differences returns descriptions of where two documents differ, by path, at most eight:
//
//	tasks[review].queue was "editors" and is "staff"
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
		compareFields(path, mx, my, diffs)
		return
	}
	lx, okx := x.([]any)
	ly, oky := y.([]any)
	if okx && oky && compareElements(path, lx, ly, diffs) {
		return
	}
	before, okx := brief(x)
	after, oky := brief(y)
	if okx && oky {
		*diffs = append(*diffs, fmt.Sprintf("%s was %s and is %s", path, before, after))
		return
	}
	*diffs = append(*diffs, path+" was changed")
}

func compareFields(path string, x, y map[string]any, diffs *[]string) {
	keys := make(map[string]bool)
	for k := range x {
		keys[k] = true
	}
	for k := range y {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		compare(strings.TrimPrefix(path+"."+k, "."), x[k], y[k], diffs)
	}
}

// compareElements compares lists by the names of their elements, so that one added task is reported as such, and not as
// a change of all tasks after it. It reports false if an element has no name, or a name occurs twice.
func compareElements(path string, x, y []any, diffs *[]string) bool {
	before, okx := byName(x)
	after, oky := byName(y)
	if !okx || !oky {
		return false
	}
	found := len(*diffs)
	for _, e := range x {
		if name := nameOf(e); after[name] == nil {
			*diffs = append(*diffs, fmt.Sprintf("%s[%s] was removed", path, name))
		}
	}
	for _, e := range y {
		name := nameOf(e)
		if before[name] == nil {
			*diffs = append(*diffs, fmt.Sprintf("%s[%s] was added", path, name))
			continue
		}
		compare(fmt.Sprintf("%s[%s]", path, name), before[name], e, diffs)
	}
	if len(*diffs) == found {
		*diffs = append(*diffs, path+" are in another order")
	}
	return true
}

func byName(list []any) (map[string]any, bool) {
	named := make(map[string]any, len(list))
	for _, e := range list {
		name := nameOf(e)
		if name == "" || named[name] != nil {
			return nil, false
		}
		named[name] = e
	}
	return named, true
}

// nameOf returns what identifies an element in its list: its name, "from->to" for a flow, a string itself; "" for
// anything else.
func nameOf(x any) string {
	if text, ok := x.(string); ok {
		return text
	}
	m, _ := x.(map[string]any)
	if name, ok := m["name"].(string); ok {
		return name
	}
	from, _ := m["from"].(string)
	to, _ := m["to"].(string)
	if from == "" || to == "" {
		return ""
	}
	return from + "->" + to
}

// brief returns a value as JSON, and whether that is short enough for an error.
func brief(x any) (string, bool) {
	if x == nil {
		return "absent", true
	}
	data, err := json.Marshal(x)
	return string(data), err == nil && len(data) <= 60
}
