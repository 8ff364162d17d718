package net

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// warnings lists what is probably not meant, without the silenced codes.
func warnings(l *netLowering, w *netWatcher, j *judgement, rep *Report, opts VerifyOptions) []Finding {
	f := &warner{netLowering: l}
	f.circles()
	f.routingCycles()
	if j.sound {
		f.simplified(j.joins)
		w = f.lookAgain(opts.limits(0).late)
	} else if j.x != nil {
		w.whole = j.x.exact()
	}
	if w != nil {
		f.watched(w)
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

// warner collects warnings.
type warner struct {
	*netLowering
	list []Finding
}

func (f *warner) add(code Code, subject Element, text, fix string, others ...Element) {
	f.list = append(f.list, Finding{
		Code: code, Subject: subject.Name, Text: text, Fix: fix, Elements: append([]Element{subject}, others...),
	})
}

// circles finds or-joins each of which lies before another and behind it.
func (f *warner) circles() {
	if !f.orJoins {
		return
	}
	component := graph.Components(f.n.NumConditions()+f.n.NumTasks(), f.successors)
	first := map[int]int{} // by component, where its warning is
	for t := range TaskID(f.n.NumTasks()) {
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

// routingCycles repeats what [Definition.Check] says of cycles of routing tasks alone, which do not keep a net from
// being compiled.
func (f *warner) routingCycles() {
	if !slices.ContainsFunc(f.n.Definition().Tasks, func(t Task) bool { return t.Kind == Routing }) {
		return
	}
	for _, p := range f.n.Definition().Check() {
		if p.Code == RoutingCycle {
			f.add(p.Code, Element{Name: p.Subject, Pos: p.Pos}, p.Text, "put a task with work items into the cycle")
		}
	}
}

// simplified reports what reduction learned about or-joins.
func (f *warner) simplified(joins []removedJoin) {
	for _, j := range joins {
		switch j.kind {
		case joinAlike:
			f.isAnd(j.task)
		case joinExclusive:
			f.isXor(j.task)
		}
	}
}

func (f *warner) isAnd(t TaskID) {
	e := f.task(int32(t))
	f.add(OrJoinIsAnd, e, fmt.Sprintf("whenever the or-join of %q starts, there is a token in every input", e.Name),
		"make it an and-join")
}

func (f *warner) isXor(t TaskID) {
	e := f.task(int32(t))
	f.add(OrJoinIsXor, e, fmt.Sprintf("whenever the or-join of %q starts, there is a token in only one input", e.Name),
		"make it an xor-join")
}

// maxLookAgain bounds the search of a sound net for the sake of warnings about its regions alone, in states and in
// bytes.
const (
	maxLookAgain      = 3000
	maxLookAgainBytes = 2 << 20
	maxPlacesPerState = 4
)

// lookAgain searches a net that was proved sound without a search, if it has regions.
func (f *warner) lookAgain(late func() bool) *netWatcher {
	if !f.regions {
		return nil
	}
	places := f.n.NumConditions() + f.netLowering.split.Len()
	states := min(maxLookAgain, maxLookAgainBytes/places)
	if places > maxPlacesPerState*states {
		return nil // it will hardly be whole, and then it says nothing
	}
	g, _ := f.game()
	if g == nil {
		return nil
	}
	w := newNetWatcher(f.netLowering)
	x := newExplorer(g, searchLimits{states: states, more: states, bytes: fewBytes, late: late})
	x.watch = w
	x.run(g.spent()+states, fewBytes)
	w.whole = x.exact()
	w.joins = nil // reduction has told of them
	return w
}

// watched reports what a search of the net has shown.
func (f *warner) watched(w *netWatcher) {
	for _, t := range w.joins {
		switch seen := w.seen[t]; {
		case !w.whole:
		case seen == allMarked:
			f.isAnd(t)
		case seen == oneMarked:
			f.isXor(t)
		}
	}
	for t := range TaskID(f.n.NumTasks()) {
		if e := f.task(int32(t)); w.twice.Has(int(t)) {
			f.add(XorJoinTwice, e,
				fmt.Sprintf("the xor-join of %q can hold two tokens at once, and takes only one when it starts", e.Name),
				"make it an and- or or-join if it is meant to run once")
		}
		if w.whole && w.fired.Has(int(t)) {
			f.useless(t, w)
		}
	}
}

// useless tells of members of a region that were never there when it fired.
func (f *warner) useless(t TaskID, w *netWatcher) {
	owner := f.task(int32(t))
	tasks, conditions := f.n.Region(t)
	tell := func(e Element) {
		f.add(RegionUseless, e, fmt.Sprintf("the region of %q can never take anything from %q", owner.Name, e.Name),
			fmt.Sprintf("take %q out of the region of %q", e.Name, owner.Name), owner)
	}
	for i, u := range tasks {
		if !w.hit[t].Has(i) {
			tell(f.task(int32(u)))
		}
	}
	for i, c := range conditions {
		// An input of the owner is named for the token that may be left there; that it took the only one is no mistake.
		if !w.hit[t].Has(len(tasks)+i) && !slices.Contains(f.n.Inputs(t), c) {
			tell(f.condition(c))
		}
	}
}
