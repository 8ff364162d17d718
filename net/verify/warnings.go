package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/graph"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// warnings returns the warnings, without the silenced codes.
func warnings(l *netLowering, w *observer, j *analysis, rep *Report, opts Options) []Finding {
	f := &collector{netLowering: l}
	f.orJoinCycles()
	f.routingCycles()
	if j.sound {
		f.simplified(j.joins)
		w = f.searchRegions(opts.budget(0).Late)
	} else if j.search != nil {
		w.whole = j.search.Exact()
	}
	if w != nil {
		f.observed(w)
	}
	if rep.Verdict != Sound {
		f.mismatches()
	}
	list := slices.DeleteFunc(f.list, func(x Finding) bool { return slices.Contains(opts.Silence, x.Code) })
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

// collector collects warnings.
type collector struct {
	*netLowering
	list []Finding
}

func (f *collector) add(code net.Code, subject Element, text, fix string, others ...Element) {
	f.list = append(f.list, Finding{
		Code: code, Subject: subject.Name, Text: text, Fix: fix, Elements: append([]Element{subject}, others...),
	})
}

// orJoinCycles finds or-joins on one cycle.
func (f *collector) orJoinCycles() {
	if !f.orJoins {
		return
	}
	component := graph.Components(f.n.NumConditions()+f.n.NumTasks(), f.successors)
	first := map[int]int{} // by component: the index of its warning
	for t := range net.TaskID(f.n.NumTasks()) {
		if !f.orJoin(t) {
			continue
		}
		e, k := f.task(int32(t)), component[f.n.NumConditions()+int(t)]
		i, known := first[k]
		if !known {
			first[k] = len(f.list)
			f.add(OrJoinCircle, e, "", "use an xor-join where the loop comes back, or keep or-joins out of loops")
			continue
		}
		w := &f.list[i]
		w.Elements = append(w.Elements, e)
		w.Text = fmt.Sprintf("the or-joins %s lie on a circle: each may wait for a token that has to pass another",
			listed(w.Elements))
	}
	f.list = slices.DeleteFunc(f.list, func(w Finding) bool { return w.Code == OrJoinCircle && len(w.Elements) == 1 })
}

// routingCycles repeats the warning of [net.Definition.Check] about cycles of only routing tasks, which do not prevent
// a net from being compiled.
func (f *collector) routingCycles() {
	if !slices.ContainsFunc(f.n.Definition().Tasks, func(t net.Task) bool { return t.Kind == net.Routing }) {
		return
	}
	for _, p := range f.n.Definition().Check() {
		if p.Code == net.RoutingCycle {
			f.add(p.Code, Element{Name: p.Subject, Pos: p.Pos}, p.Text, "put a task with work items into the cycle")
		}
	}
}

// simplified reports what reduction showed about or-joins.
func (f *collector) simplified(joins []reduce.RemovedJoin) {
	for _, j := range joins {
		switch j.Kind {
		case reduce.JoinAnd:
			f.isAnd(j.Task)
		case reduce.JoinXor:
			f.isXor(j.Task)
		}
	}
}

func (f *collector) isAnd(t net.TaskID) {
	e := f.task(int32(t))
	f.add(OrJoinIsAnd, e, fmt.Sprintf("whenever the or-join of %q starts, there is a token in every input", e.Name),
		"make it an and-join")
}

func (f *collector) isXor(t net.TaskID) {
	e := f.task(int32(t))
	f.add(OrJoinIsXor, e, fmt.Sprintf("whenever the or-join of %q starts, there is a token in only one input", e.Name),
		"make it an xor-join")
}

// maxLookAgain bounds the search of a sound net only for warnings about its regions, in states and in bytes.
const (
	maxLookAgain      = 3000
	maxLookAgainBytes = 2 << 20
	maxPlacesPerState = 4
)

// searchRegions searches a net that was proved sound without a search, if it has regions.
func (f *collector) searchRegions(late func() bool) *observer {
	if !f.regions {
		return nil
	}
	places := f.n.NumConditions() + f.netLowering.split.Len()
	states := min(maxLookAgain, maxLookAgainBytes/places)
	if places > maxPlacesPerState*states {
		return nil // the search will hardly be complete, and shows nothing otherwise
	}
	sys, _ := f.system()
	if sys == nil {
		return nil
	}
	w := newObserver(f.netLowering)
	x := statespace.NewSearch(sys, statespace.Budget{States: states, MoreStates: states, Bytes: fewBytes, Late: late})
	x.Observer = w
	x.Run(sys.Spent()+states, fewBytes)
	w.whole = x.Exact()
	w.joins = nil // reduction has reported them
	return w
}

// observed reports what a search of the net has shown.
func (f *collector) observed(w *observer) {
	for _, t := range w.joins {
		switch seen := w.seen[t]; {
		case !w.whole:
		case seen == allMarked:
			f.isAnd(t)
		case seen == oneMarked:
			f.isXor(t)
		}
	}
	for t := range net.TaskID(f.n.NumTasks()) {
		if e := f.task(int32(t)); w.twice.Has(int(t)) {
			f.add(XorJoinTwice, e,
				fmt.Sprintf("the xor-join of %q can hold two tokens at once, and takes only one when it starts", e.Name),
				"make it an and- or or-join if it is meant to run once")
		}
		if run, ok := w.runs[t]; ok && !w.twice.Has(int(t)) {
			e, behind := f.task(int32(t)), f.task(int32(run))
			f.add(XorJoinTwice, e, fmt.Sprintf("the xor-join of %q passes on each token that it gets, so %q can get two at once, and run twice",
				e.Name, behind.Name), "make it an and- or or-join if what follows is meant to run once", behind)
		}
		if w.whole && w.fired.Has(int(t)) {
			f.uselessMembers(t, w)
		}
	}
}

// uselessMembers reports members of a region that were never present when it fired.
func (f *collector) uselessMembers(t net.TaskID, w *observer) {
	owner := f.task(int32(t))
	tasks, conditions := f.n.Region(t)
	report := func(e Element) {
		f.add(RegionUseless, e, fmt.Sprintf("the region of %q can never take anything from %q", owner.Name, e.Name),
			fmt.Sprintf("take %q out of the region of %q", e.Name, owner.Name), owner)
	}
	for i, u := range tasks {
		if !w.hit[t].Has(i) {
			report(f.task(int32(u)))
		}
	}
	for i, c := range conditions {
		// An input of the owner is in the region because of tokens that may be left there; it is no mistake that the
		// owner has taken the only one.
		if !w.hit[t].Has(len(tasks)+i) && !slices.Contains(f.n.Inputs(t), c) {
			report(f.condition(c))
		}
	}
}
