package verify

import "github.com/tasq-dev/tasq/net/internal/statespace"

// soonStates is how many states a search of all states explores after the first violation before [analysis.settle] is
// tried. Most searches end earlier. Tests change it.
var soonStates = 200

// settle tries to find what a search has not found yet, after a violation, without exploring all states. It reports
// whether there is nothing left to find:
//
//   - the structure of the net bounds what can be found, see [statespace.Outlook];
//   - deadlocks and improper completion are found, or excluded, by a search with stubborn sets;
//   - what then remains, transitions that fire and places with a second token, is found by directed runs.
//
// What has a witness has a shortest one: of several unsafe places, the first that the search finds. If something that the
// structure allows is not found, the search continues, but not for long.
func (j *analysis) settle(lim statespace.Budget) bool {
	if j.search.Limit != statespace.LimitStates || !j.search.Violated() || !j.sys.NoLivelock {
		return false
	}
	o := statespace.NewOutlook(j.sys)
	if o == nil || !o.Growing.Empty() || !j.settleEnds(lim) {
		return false
	}
	goals := j.search.Unseen(o)
	j.second = goals.Pursue(j.sys, workOfGoals)
	if !goals.Reached() {
		if o.Second.Empty() || len(j.search.SecondTokens) > 0 {
			j.search.Stop = j.search.States.Len() + lim.MoreStates/partOfMore
		}
		return false
	}
	if len(j.second) > 0 && len(j.search.SecondTokens) == 0 {
		j.search.UntilSecond = true
		j.search.Resume(lim.States, lim.Bytes)
		if j.search.UntilSecond = false; len(j.search.SecondTokens) == 0 {
			return false
		}
	}
	j.settled = o
	return true
}

// partOfMore divides the number of further states where directed runs have looked for what these would show.
const partOfMore = 3

// workOfGoals bounds the work of directed runs, see [statespace.Walker].
const workOfGoals = 200_000

// settleEnds finds runs to a deadlock and to improper completion, or shows that there are none. Since there is no
// livelock, every run can complete if there is no deadlock.
func (j *analysis) settleEnds(lim statespace.Budget) bool {
	improper := j.sys.End < 0 || j.search.Improper >= 0
	if improper && j.search.Deadlock >= 0 {
		return true
	}
	x := j.deadlocksBeyondUnsafe(lim)
	return x != nil && (x.Limit == statespace.NoLimit || (improper || x.Improper >= 0) && (j.search.Deadlock >= 0 || x.Deadlock >= 0))
}
