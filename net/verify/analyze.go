package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// lowering translates a net into what verification works on.
type lowering interface {
	// reducible makes the net for the reduction rules, and returns the place that holds the last token (-1: no place may
	// hold one). It is nil if the rules would not preserve the meaning of this net. With a trace, what is left of the
	// net can be translated back.
	reducible(traced bool) (r *reduce.Net, end int32)
	// system makes the exact system, which is searched for findings; nil, and the reason, if there is none.
	system() (*statespace.System, Limit)
	// taskOf is the task or transition of a traced move.
	taskOf(t reduce.TracedMove) int32
	// matches reports whether a move of the exact system is what a traced move stands for.
	matches(t reduce.TracedMove, m *statespace.Move) bool
}

// analysis is what verification found before it is put into words.
type analysis struct {
	sound  bool                 // shown to be sound by reduction; nothing below is set but states and joins
	joins  []reduce.RemovedJoin // or-joins that reduction removed
	sys    *statespace.System   // the exact system
	search *statespace.Search   // of all its states
	also   []*statespace.Search // searches that found what that one has not come to
	limit  Limit                // what ran out
	states int                  // explored by all searches together
	run    *foundRun            // a violation that the search did not come to, if it found none
	dead   []int32              // tasks that can never start, if reduction has shown that, and that nothing else is wrong
	late   func() bool          // as in [statespace.Budget]
}

// analyze verifies a net: by reduction first, and where that does not show it to be sound, by a search of the exact
// system, which finds everything that is wrong and shortest runs to it. That search calls the observer, if there is one.
//
// A search that has found nothing in a moderate number of states may not come to an end, and what is wrong may lie too
// deep for it. So a search with stubborn sets is tried before it is resumed, and then single runs. Once anything is
// found, the search of all states is resumed for the rest, as far as the budget for that allows.
func analyze(l lowering, w statespace.Observer, lim statespace.Budget) *analysis {
	j := &analysis{late: lim.Late}
	r, end := l.reducible(false)
	if r != nil {
		plain := r.Plain()
		r.Run()
		j.joins = r.Joins
		if j.sound = r.SoundStateMachine(end); j.sound {
			return j
		}
		var x *statespace.Search
		var firings []reduce.Firing
		if !r.Unsafe {
			x, firings = j.reduced(r, end, lim)
		}
		switch {
		case x == nil:
		case x.Faultless():
			j.sound = true
			return j
		case plain && x.AlwaysCompletes():
			j.dead = neverFired(l, x, r, firings)
		}
	}
	j.joins = nil
	if j.sys, j.limit = l.system(); j.sys == nil {
		return j
	}
	j.search = statespace.NewSearch(j.sys, lim)
	j.search.Observer, j.search.BeyondUnsafe = w, true
	j.search.Run(min(lim.States, firstStates), min(lim.Bytes, fewBytes))
	if j.search.Undecided() && j.dead == nil && !j.deadlocksEarly(lim) {
		j.searchFurther(l, r != nil, lim)
	}
	if j.search.Limit != statespace.NoLimit {
		j.search.Resume(lim.States, lim.Bytes)
	}
	j.deadlocksBeyondUnsafe(lim)
	j.states += j.search.States.Len()
	if j.limit = limitOf(j.search.Limit); j.limit == NoLimit && !j.search.Settled() {
		if j.limit = LimitGrowth; j.searchCounting(lim) {
			j.limit = NoLimit
		}
	}
	return j
}

// What a search may explore before one with stubborn sets is tried, and before single runs are.
const (
	firstStates  = 2000
	fewStates    = 20_000
	fewBytes     = 8 << 20
	moreStubborn = 5000 // by a search with stubborn sets, once something is found
)

// deadlocksEarly looks for a run to a deadlock or to improper completion by a search with stubborn sets, and reports
// whether it found one, and nothing because of which its runs might not be shortest ones.
func (j *analysis) deadlocksEarly(lim statespace.Budget) bool {
	x := stubbornSearch(j.sys, lim)
	if x == nil {
		return false
	}
	j.states += x.States.Len()
	if x.Deadlock < 0 && x.Improper < 0 || len(x.SecondTokens)+len(x.Coverings) > 0 {
		return false
	}
	j.endSoon(lim)
	j.also = append(j.also, x)
	return true
}

// deadlocksBeyondUnsafe looks for such a run behind second tokens, where the search of all states found those and ended
// before it came to a deadlock. No count becomes ω, so that a run leads to every state, and its second tokens are
// findings too.
func (j *analysis) deadlocksBeyondUnsafe(lim statespace.Budget) {
	if j.search.Limit == statespace.NoLimit || len(j.search.SecondTokens) == 0 || j.search.Deadlock >= 0 || len(j.also) > 0 {
		return
	}
	x := statespace.NewStubbornSearch(j.sys, lim)
	if x == nil {
		return
	}
	x.BeyondUnsafe, x.NoOmega = true, true
	x.Run(min(lim.States, moreStubborn), min(lim.Bytes, fewBytes))
	j.states += x.States.Len()
	j.also = append(j.also, x)
}

// endSoon lets the search of all states end soon, for something was found.
func (j *analysis) endSoon(lim statespace.Budget) {
	j.search.Stop = j.search.States.Len() + j.sys.Spent() + lim.MoreStates
}

// stubbornSearch searches a system with stubborn sets; nil if that leaves out nothing.
func stubbornSearch(sys *statespace.System, lim statespace.Budget) *statespace.Search {
	x := statespace.NewStubbornSearch(sys, lim)
	if x != nil {
		x.Run(min(lim.States, fewStates), min(lim.Bytes, fewBytes))
	}
	return x
}

// searchFurther resumes the search for a while, and then tries single runs.
func (j *analysis) searchFurther(l lowering, reducible bool, lim statespace.Budget) {
	j.search.Resume(min(lim.States, fewStates), min(lim.Bytes, fewBytes))
	if !j.search.Undecided() {
		return
	}
	if j.probe(l, reducible, lim); j.run != nil {
		j.endSoon(lim)
	}
}

// searchCounting looks for a deadlock where the search has taken counts for unbounded: a state with few tokens may be
// one, though one with many is not. It reports whether everything is found by that.
func (j *analysis) searchCounting(lim statespace.Budget) bool {
	if !j.search.Exact() {
		return false
	}
	x := statespace.NewSearch(j.sys, lim)
	x.NoOmega, x.BeyondUnsafe, x.Stop = true, true, lim.MoreStates
	x.Run(min(lim.States, lim.MoreStates), lim.Bytes)
	j.states += x.States.Len()
	x.SecondTokens, x.Improper = nil, -1
	j.also = append(j.also, x)
	return x.Deadlock >= 0
}

// reduced searches what reduction has left of the net, up to the first thing that is wrong there.
func (j *analysis) reduced(r *reduce.Net, end int32, lim statespace.Budget) (*statespace.Search, []reduce.Firing) {
	sys, firings := r.System(end, false)
	if sys == nil {
		return nil, nil
	}
	x := statespace.NewSearch(sys, lim)
	x.FirstOnly = true
	x.Run(min(lim.States, firstStates), min(lim.Bytes, fewBytes))
	if x.Undecided() {
		if y := stubbornSearch(sys, lim); y != nil {
			j.states += y.States.Len()
			if y.Violated() {
				return nil, nil
			}
		}
		x.Resume(lim.States, lim.Bytes)
	}
	j.states += x.States.Len()
	return x, firings
}

// neverFired lists the tasks that can never start because a transition of the reduced net can never fire.
//
// Without or-joins and resets, the rules of reduction work both ways: to every run of the net belongs one of the reduced
// net, in which a transition that is left fires whenever the one fires that it was at first. (What it has taken over fires
// behind that.) So if it never fires in the reduced net, neither does that one in the net itself.
func neverFired(l lowering, x *statespace.Search, r *reduce.Net, firings []reduce.Firing) []int32 {
	fired := net.NewBits(len(r.Transitions))
	for k, yes := range x.Fired {
		if yes {
			fired.Add(int(firings[k].Transition))
		}
	}
	var tasks []int32
	for i := range r.Transitions {
		if tr := &r.Transitions[i]; !tr.Removed && !fired.Has(i) {
			tasks = append(tasks, l.taskOf(reduce.TracedMove{Label: tr.Label}))
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}
