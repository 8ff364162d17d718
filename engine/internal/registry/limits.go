package registry

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Limits returns the limits that the functions of all definitions use, and the configured ones, by name. Different limits with one name are an
// error, since they share one state.
func (r *Registry) Limits(configured []limit.Limit) ([]limit.Limit, error) {
	type found struct {
		limit limit.Limit
		by    string
	}
	byName := make(map[string]found)
	add := func(by string, uses []workflow.Use) error {
		for _, u := range uses {
			other, known := byName[u.Limit.Name]
			if known && other.limit != u.Limit {
				return fmt.Errorf("limit %q is %v for %s, and %v for %s: give both the same definition, or another name",
					u.Limit.Name, other.limit, other.by, u.Limit, by)
			}
			byName[u.Limit.Name] = found{u.Limit, by}
		}
		return nil
	}
	for by, uses := range r.uses() {
		if err := add(by, uses); err != nil {
			return nil, err
		}
	}
	for _, l := range configured {
		if err := add("engine.Config.Limits", []workflow.Use{{Limit: l}}); err != nil {
			return nil, err
		}
	}
	var all []limit.Limit
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name].limit)
	}
	return all, nil
}

// Keyless reports whether functions use a limit, and all of them without a key. The keys of steps are only known when they run, so a limit
// that is declared for steps may have keys.
func (r *Registry) Keyless(name string) bool {
	taken := false
	for _, uses := range r.uses() {
		for _, u := range uses {
			if u.Limit.Name != name {
				continue
			}
			if u.Key != nil || u.Any != nil || u.Steps {
				return false
			}
			taken = true
		}
	}
	return taken
}

// HeldLimits returns the names of the limits that cases hold over several tasks.
func (r *Registry) HeldLimits() map[string]bool {
	names := make(map[string]bool)
	for _, d := range r.byFingerprint {
		for i := range d.Holds {
			names[d.Holds[i].Limit.Name] = true
		}
	}
	return names
}

// Takes returns, by the fingerprint of the definition, what its functions acquire of limits, and which are scheduled fairly; definitions
// without either are omitted.
func (r *Registry) Takes() map[string]store.TakesValue {
	all := make(map[string]store.TakesValue)
	for fingerprint, d := range r.byFingerprint {
		v := store.TakesValue{Tasks: make(map[string][]store.Takes), Calls: make(map[string][]store.Takes)}
		for i := range d.Tasks {
			if list := append(heldTakes(d, net.TaskID(i)), takesOf(d.Tasks[i].Limits)...); len(list) > 0 {
				v.Tasks[d.Net.TaskName(net.TaskID(i))] = list
			}
			if d.Tasks[i].FairBy != nil {
				v.FairTasks = append(v.FairTasks, d.Net.TaskName(net.TaskID(i)))
			}
		}
		for name, call := range d.Calls {
			if list := takesOf(call.Limits); len(list) > 0 {
				v.Calls[name] = list
			}
			if call.FairBy != nil {
				v.FairCalls = append(v.FairCalls, name)
			}
		}
		slices.Sort(v.FairTasks)
		slices.Sort(v.FairCalls)
		if !v.IsZero() {
			all[fingerprint] = v
		}
	}
	return all
}

// heldFrom lists the limits that a case must hold before a job of a task starts.
func heldFrom(d *workflow.Definition, t net.TaskID) (uses []workflow.Use) {
	for i := range d.Holds {
		if d.Holds[i].From == t {
			uses = append(uses, d.Holds[i].Use)
		}
	}
	return uses
}

// heldTakes returns what a case must hold before a job of a task starts, and until when.
func heldTakes(d *workflow.Definition, t net.TaskID) (list []store.Takes) {
	for i := range d.Holds {
		if h := &d.Holds[i]; h.From == t {
			held := takesOf([]workflow.Use{h.Use})[0]
			held.Until = d.Net.TaskName(h.To)
			list = append(list, held)
		}
	}
	return list
}

// takesOf returns what an attempt acquires, without the limits that only its steps acquire.
func takesOf(uses []workflow.Use) (list []store.Takes) {
	for i := range uses {
		u := &uses[i]
		if u.Steps {
			continue
		}
		t := store.Takes{Limit: u.Limit.Name, N: cmp.Or(u.N, u.Limit.Each), Keyed: u.Key != nil, Any: u.Any}
		if u.Amount != nil {
			t.N = 0
		}
		list = append(list, t)
	}
	return list
}

// uses returns the uses of limits by the functions of all definitions, with the display name of each function, in the order of the
// definitions.
func (r *Registry) uses() iter.Seq2[string, []workflow.Use] {
	return func(yield func(string, []workflow.Use) bool) {
		for _, d := range slices.SortedFunc(maps.Values(r.byFingerprint), byNameAndVersion) {
			for i := range d.Tasks {
				t := net.TaskID(i)
				if !yield(fmt.Sprintf("task %s of %s", d.Net.TaskName(t), d.Name), slices.Concat(heldFrom(d, t), d.Tasks[i].Limits)) {
					return
				}
			}
			for _, name := range slices.Sorted(maps.Keys(d.Calls)) {
				if !yield(fmt.Sprintf("function %s of %s", name, d.Name), d.Calls[name].Limits) {
					return
				}
			}
		}
	}
}

func byNameAndVersion(a, b *workflow.Definition) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}
