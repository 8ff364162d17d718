package net

import (
	"cmp"
	"fmt"
	"slices"
)

// warnings lists what is probably not meant, without the silenced codes.
func warnings(l *netLowering, w *netWatcher, j *judgement, rep *Report, opts VerifyOptions) []Finding {
	f := &warner{netLowering: l}
	f.circles()
	if j.sound {
		f.simplified(j.joins)
		w = f.lookAgain()
	} else if j.x != nil {
		w.whole = j.x.exact() && !l.undecided
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
	var joins []TaskID
	for t := range f.n.tasks {
		if f.orJoin(TaskID(t)) {
			joins = append(joins, TaskID(t))
		}
	}
	before := func(a, b TaskID) bool { return slices.Contains(f.n.BusyWatchers(a), b) }
	told := NewBits(len(f.n.tasks))
	for i, a := range joins {
		if told.Has(int(a)) {
			continue
		}
		var others []Element
		for _, b := range joins[i+1:] {
			if before(a, b) && before(b, a) {
				told.Add(int(b))
				others = append(others, f.task(int32(b)))
			}
		}
		if e := f.task(int32(a)); len(others) > 0 {
			f.add(OrJoinCircle, e, fmt.Sprintf(
				"the or-joins %q and %q lie on a circle: each waits for a token that may have to pass the other", e.Name, others[0].Name),
				"use an xor-join where the loop comes back, or keep or-joins out of loops", others...)
		}
	}
}

// simplified tells what reduction learned about or-joins.
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
	f.add(OrJoinIsAnd, e, fmt.Sprintf("the or-join of %q always gets a token in every input", e.Name), "make it an and-join")
}

func (f *warner) isXor(t TaskID) {
	e := f.task(int32(t))
	f.add(OrJoinIsXor, e, fmt.Sprintf("the or-join of %q never gets a token in more than one input", e.Name),
		"make it an xor-join")
}

// maxLookAgain bounds the search of a sound net for the sake of warnings about its regions alone.
const maxLookAgain = 3000

// lookAgain searches a net that was proved sound without a search, if it has regions.
func (f *warner) lookAgain() *netWatcher {
	if !f.regions {
		return nil
	}
	g, _ := f.game()
	if g == nil {
		return nil
	}
	w := newNetWatcher(f.netLowering)
	x := newExplorer(g, searchLimits{states: maxLookAgain, more: maxLookAgain})
	x.watch = w
	x.run()
	w.whole = x.exact() && !f.undecided
	f.undecided = false
	w.joins = nil // reduction has told of them
	return w
}

// watched tells what a search of the net has shown.
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
	for t := range f.n.tasks {
		if e := f.task(int32(t)); w.twice.Has(t) {
			f.add(XorJoinTwice, e, fmt.Sprintf("the xor-join of %q can hold two tokens at once, and then runs once for each", e.Name),
				"make it an and- or or-join if it is meant to run once")
		}
		if w.whole && w.fired.Has(t) {
			f.useless(TaskID(t), w)
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
		if !w.hit[t].Has(len(tasks) + i) {
			tell(f.condition(c))
		}
	}
}
