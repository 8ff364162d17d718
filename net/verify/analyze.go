package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// lowering translates a net into the forms that verification works on.
type lowering interface {
	// reducible returns the net for the reduction rules, and the place that has the last token (-1: no place may have
	// one). It is nil if the rules would not preserve soundness of this net. With a trace, runs of the reduced net can
	// be translated back.
	reducible(traced bool) (r *reduce.Net, end int32)
	// system returns the exact system, which is searched for findings; nil, and the reason, if there is none.
	system() (*statespace.System, Limit)
	// taskOf returns the task or transition of a traced move.
	taskOf(t reduce.TracedMove) int32
	// matches reports whether a move of the exact system corresponds to a traced move.
	matches(t reduce.TracedMove, m *statespace.Move) bool
}

// analysis is the result of verification before it is put into words.
type analysis struct {
	sound  bool                 // proved sound by reduction; then only states and joins are set below
	joins  []reduce.RemovedJoin // or-joins that reduction removed
	sys    *statespace.System   // the exact system
	search *statespace.Search   // of all states
	also   []*statespace.Search // searches that found something that search has not reached
	limit  Limit                // the exhausted limit
	states int                  // explored by all searches together
	run    *foundRun            // a violation that no search has reached
	dead   []int32              // tasks that can never start, if reduction proved that, and nothing else is wrong
	late   func() bool          // see [statespace.Budget]
	// settled is set if the structure of the net shows that search, also and second have all that can be found; else nil.
	settled *statespace.Outlook
	second  []int32 // places that can get a second token, of which only single runs were seen
}

// analyze verifies a net. Reduction is tried first. If it does not prove soundness, the exact system is searched, which
// finds every violation and a shortest run to each. That search calls the observer, if there is one.
//
// A search that has found nothing after a moderate number of states may never finish, and a violation may be too deep
// for it. So a search with stubborn sets is tried before it is resumed, and then single runs. Once a violation is
// known, the search of all states is resumed for the others, within Options.MoreStates.
func analyze(l lowering, w statespace.Observer, lim statespace.Budget) *analysis {
	j := &analysis{late: lim.Late}
	r, end := l.reducible(false)
	if r != nil {
		if j.reduce(l, r, end, lim); j.sound {
			return j
		}
	}
	j.joins = nil
	if j.sys, j.limit = l.system(); j.sys == nil {
		return j
	}
	j.search = statespace.NewSearch(j.sys, lim)
	j.search.Observer, j.search.BeyondUnsafe = w, true
	if w == nil {
		j.search.Pause = soonStates
	}
	j.search.Run(min(lim.States, firstStates), min(lim.Bytes, fewBytes))
	if j.search.Pause = 0; w == nil && j.settle(lim) {
		j.states += j.search.States.Len()
		return j
	}
	if j.search.Undecided() && j.dead == nil && !j.deadlocksEarly(lim) {
		j.searchFurther(l, r != nil, lim)
	}
	if j.search.Limit != statespace.NoLimit {
		j.search.Resume(lim.States, lim.Bytes)
	}
	if j.search.Limit != statespace.NoLimit && len(j.search.SecondTokens) > 0 && j.search.Deadlock < 0 && len(j.also) == 0 {
		j.deadlocksBeyondUnsafe(lim)
	}
	j.states += j.search.States.Len()
	if j.limit = limitOf(j.search.Limit); j.limit == NoLimit && !j.search.Settled() {
		if j.limit = LimitGrowth; j.searchCounting(lim) {
			j.limit = NoLimit
		}
	}
	return j
}

// reduce reduces the net, and searches what is left. It sets what that proves.
func (j *analysis) reduce(l lowering, r *reduce.Net, end int32, lim statespace.Budget) {
	plain := r.Plain()
	r.Run()
	j.joins = r.Joins
	if j.sound = r.SoundStateMachine(end); j.sound || r.Unsafe {
		return
	}
	x, firings := j.reduced(r, end, lim)
	switch {
	case x == nil:
		return
	case x.Faultless():
		j.sound = true
	case plain && x.AlwaysCompletes():
		j.dead = neverFired(l, x, r, firings)
	}
	x.Release()
}

// The states that a search may explore before one with stubborn sets is tried, and before single runs are.
const (
	firstStates  = 2000
	fewStates    = 20_000
	fewBytes     = 8 << 20
	moreStubborn = 5000 // by a search with stubborn sets, once a violation is known
)

// deadlocksEarly looks for a run to a deadlock or to improper completion by a search with stubborn sets. It reports
// whether it found one, and nothing that could make its runs longer than the shortest.
func (j *analysis) deadlocksEarly(lim statespace.Budget) bool {
	x := stubbornSearch(j.sys, lim)
	if x == nil {
		return false
	}
	j.states += x.States.Len()
	if x.Deadlock < 0 && x.Improper < 0 || len(x.SecondTokens)+len(x.Coverings) > 0 {
		x.Release()
		return false
	}
	j.endSoon(lim)
	j.also = append(j.also, x)
	return true
}

// deadlocksBeyondUnsafe looks for such a run behind second tokens, which the search of all states found before it reached
// a deadlock. No count becomes ω, so every state has a run that leads to it, and its second tokens are findings too. It
// returns nil if no moves can be left out.
func (j *analysis) deadlocksBeyondUnsafe(lim statespace.Budget) *statespace.Search {
	x := statespace.NewStubbornSearch(j.sys, lim)
	if x == nil {
		return nil
	}
	x.BeyondUnsafe, x.NoOmega = true, true
	x.Run(min(lim.States, moreStubborn), min(lim.Bytes, fewBytes))
	j.states += x.States.Len()
	j.also = append(j.also, x)
	return x
}

// release gives back the memory of the searches.
func (j *analysis) release() {
	if j.search == nil {
		return
	}
	j.search.Release()
	for _, x := range j.also {
		x.Release()
	}
}

// endSoon limits the rest of the search of all states, since a violation is known.
func (j *analysis) endSoon(lim statespace.Budget) {
	j.search.Stop = j.search.States.Len() + j.sys.Spent() + lim.MoreStates
}

// stubbornSearch searches a system with stubborn sets; nil if these leave out nothing.
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

// searchCounting looks for a deadlock where the search has taken counts for unbounded: a state with few tokens may be a
// deadlock, although one with many is not. It reports whether this completes the findings.
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

// reduced searches the reduced net, up to the first violation.
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
			y.Release()
			if y.Violated() {
				x.Release()
				return nil, nil
			}
		}
		x.Resume(lim.States, lim.Bytes)
	}
	j.states += x.States.Len()
	return x, firings
}

// neverFired returns the tasks that can never start because a transition of the reduced net can never fire.
//
// Without or-joins and resets, the rules of reduction work in both directions: for every run of the net there is one of
// the reduced net in which a remaining transition fires whenever its original transition fires. (Transitions that it
// has absorbed fire after that.) So if it never fires in the reduced net, the original never fires in the net.
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
