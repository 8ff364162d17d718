package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// flattened is the net of a definition with those of child cases instead of the composite tasks that run them, as far as they hold slots:
//
//	                ┌─▶ deliver/ship/start ─▶ deliver/ship/load ─▶ deliver/ship/end ─┐
//	deliver.begin ──┤                                                                ├──▶ deliver
//	                └─▶ deliver/send/start ─▶ deliver/send/post ─▶ deliver/send/end ─┘
//
// The join of the composite task is that of the task which begins it, and its split and region stay with the task of its name.
type flattened struct {
	net      net.Definition
	holds    []flatHold
	takes    []flatTake
	parts    map[string][]string // of a composite task by its name: all that is in its place
	capacity map[string]int64
}

// flatHold and flatTake name tasks, as these have no numbers before the net is compiled.
type flatHold struct {
	*Hold
	from string
	to   []string
}

type flatTake struct {
	*Use
	task string
}

// maxDepth is how deep child cases are looked into.
const maxDepth = 4

// flatten makes a net of a definition, and adds the slots of its limits to capacity.
func flatten(d *Definition, capacity map[string]int64) (verify.Holder, error) {
	f := flattened{net: net.Definition{Name: d.Name, Pos: d.Net.Definition().Pos}, parts: make(map[string][]string), capacity: capacity}
	f.add(d, "", maxDepth, nil)
	n, err := net.Compile(&f.net)
	if err != nil {
		return verify.Holder{}, err
	}
	number := func(task string) net.TaskID {
		t, _ := n.TaskByName(task)
		return t
	}
	h := verify.Holder{Net: n}
	for _, hold := range f.holds {
		v := verify.Hold{Limit: hold.Limit.Name, N: hold.N, From: number(hold.from), Pos: hold.Pos}
		for _, to := range hold.to {
			v.To = append(v.To, number(to))
		}
		h.Holds = append(h.Holds, v)
	}
	for _, t := range f.takes {
		h.Takes = append(h.Takes, verify.Take{Limit: t.Limit.Name, N: cmp.Or(t.N, t.Limit.Each, 1), Task: number(t.task)})
	}
	return h, nil
}

// add adds the elements of a definition, their names behind a prefix, and returns the names. A case of it ends with the tasks given.
func (f *flattened) add(d *Definition, prefix string, depth int, ends []string) (names []string) {
	written := d.Net.Definition()
	for _, c := range written.Conditions {
		if c.Name = prefix + c.Name; prefix != "" {
			c.Role = net.Inner
		}
		f.net.Conditions, names = append(f.net.Conditions, c), append(names, c.Name)
	}
	own := len(f.net.Tasks)
	for i, t := range written.Tasks {
		t.Name = prefix + t.Name
		if part := f.children(&d.Tasks[i], &t, depth); part != nil {
			f.parts[t.Name], names = part, append(names, part...)
		}
		f.net.Tasks, names = append(f.net.Tasks, t), append(names, t.Name)
	}
	for i := own; i < len(f.net.Tasks); i++ {
		if t := &f.net.Tasks[i]; slices.ContainsFunc(written.Tasks, func(w net.Task) bool { return prefix+w.Name == t.Name }) {
			t.Cancels = f.region(t.Cancels, prefix)
		}
	}
	for _, flow := range written.Flows {
		flow.From, flow.To = prefix+flow.From, f.entry(prefix+flow.To)
		f.net.Flows, names = append(f.net.Flows, flow), append(names, net.ImplicitName(flow.From, flow.To))
	}
	f.uses(d, prefix, ends)
	return names
}

// children puts the nets of the child cases instead of a composite task, and returns the names of what they have; nil if none of them holds
// anything.
func (f *flattened) children(spec *Task, t *net.Task, depth int) (names []string) {
	holds := func(of *Definition) bool { return of.hasHolds(depth - 1) }
	if depth == 0 || !slices.ContainsFunc(slices.Collect(maps.Values(spec.Of)), holds) {
		return nil
	}
	begin := net.Task{Name: t.Name + ".begin", Kind: net.Routing, Join: t.Join, Split: net.Xor, Pos: t.Pos}
	f.net.Tasks, names = append(f.net.Tasks, begin), append(names, begin.Name)
	t.Kind, t.Join = net.Routing, net.Xor
	for _, name := range slices.Sorted(maps.Keys(spec.Of)) {
		child := spec.Of[name]
		prefix := t.Name + "/" + child.Name + "/"
		names = append(names, f.add(child, prefix, depth-1, []string{t.Name})...)
		start, end := child.Net.ConditionName(child.Net.Start()), child.Net.ConditionName(child.Net.End())
		f.net.Flows = append(f.net.Flows, net.Flow{From: begin.Name, To: prefix + start}, net.Flow{From: prefix + end, To: t.Name})
	}
	return names
}

// entry is the task that begins a composite task, if child cases are in its place.
func (f *flattened) entry(name string) string {
	if f.parts[name] != nil {
		return name + ".begin"
	}
	return name
}

// region names the members of a cancellation region as they are called here, with all that is instead of a composite task.
func (f *flattened) region(members []string, prefix string) (all []string) {
	for _, name := range members {
		if from, to, implicit := strings.Cut(name, "->"); implicit {
			all = append(all, net.ImplicitName(prefix+from, f.entry(prefix+to)))
			continue
		}
		all = append(append(all, prefix+name), f.isThere(f.parts[prefix+name])...)
	}
	return all
}

// isThere leaves out the names of implicit conditions that are none: those of flows from or to a condition.
func (f *flattened) isThere(names []string) []string {
	task := func(name string) bool {
		return slices.ContainsFunc(f.net.Tasks, func(t net.Task) bool { return t.Name == name })
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		from, to, flow := strings.Cut(name, "->")
		return flow && (!task(from) || !task(to))
	})
}

// uses notes what the cases of a definition hold, and what the attempts of its tasks take.
func (f *flattened) uses(d *Definition, prefix string, ends []string) {
	for i := range d.Holds {
		h := &d.Holds[i]
		if h.Limit.Algorithm == limit.Slots && h.Limit.N > 0 {
			f.capacity[h.Limit.Name] = h.Limit.N
		}
		to := append([]string{prefix + d.Net.TaskName(h.To)}, ends...)
		f.holds = append(f.holds, flatHold{h, f.entry(prefix + d.Net.TaskName(h.From)), to})
	}
	for t := range d.Tasks {
		for i := range d.Tasks[t].Limits {
			if u := &d.Tasks[t].Limits[i]; !u.Steps && u.Any == nil {
				f.takes = append(f.takes, flatTake{u, prefix + d.Net.TaskName(net.TaskID(t))})
			}
		}
	}
}
