package verify

import (
	"math"
	"math/bits"
	"slices"
)

// holdCombination looks for stuck states of several cases that block each other.
type holdCombination struct {
	stuck    []stuckState
	capacity map[string]int64
	work     int // the number of sets that may still be examined
	late     func() bool
	chosen   []chosen
}

// chosen is a stuck state with the number of cases in it.
type chosen struct {
	*stuckState
	count int
}

const (
	maxCombinations = 200_000
	maxSlots        = 10_000 // of a limit: with more slots, cases are not counted up to it
	maxChosen       = 6      // different states in a set
	maxInterleaved  = 6      // cases whose steps are tried in any order; with more, cases run one after the other
)

// find returns the smallest set of cases that it finds, by the number of different states.
func (c *holdCombination) find() *Deadlock {
	for most := 1; most <= maxChosen; most++ {
		for i := range c.stuck {
			if d := c.with(&c.stuck[i], 1, most); d != nil {
				return d
			}
		}
	}
	return nil
}

// with looks for sets with that many cases in a state, together with those chosen so far.
func (c *holdCombination) with(s *stuckState, count, most int) *Deadlock {
	if c.work--; c.work <= 0 || c.work%256 == 0 && c.late != nil && c.late() {
		c.work = 0
		return nil
	}
	defer c.choose(s, count)()
	if len(c.chosen) > most || !c.fits() {
		return nil
	}
	want := c.unmet()
	if want == nil {
		return c.order()
	}
	if c.capacityOf(want.Limit) > maxSlots {
		return nil
	}
	lack := c.capacityOf(want.Limit) - want.N + 1 - c.held(want.Limit) // what the others have to hold at least
	for i := range c.stuck {
		n := sum(c.stuck[i].holds, want.Limit)
		if n == 0 {
			continue
		}
		need := int((lack + n - 1) / n)
		for _, count := range slices.Compact([]int{need, 1}) {
			if d := c.with(&c.stuck[i], count, most); d != nil {
				return d
			}
		}
	}
	return nil
}

// choose adds cases in a state to the set, and returns a function that removes them.
func (c *holdCombination) choose(s *stuckState, count int) (undo func()) {
	if i := slices.IndexFunc(c.chosen, func(other chosen) bool { return other.stuckState == s }); i >= 0 {
		c.chosen[i].count += count
		return func() { c.chosen[i].count -= count }
	}
	c.chosen = append(c.chosen, chosen{s, count})
	return func() { c.chosen = c.chosen[:len(c.chosen)-1] }
}

// capacityOf returns the number of slots of a limit; for an unlimited one, more than can be held.
func (c *holdCombination) capacityOf(limit string) int64 {
	if n, ok := c.capacity[limit]; ok {
		return n
	}
	return math.MaxInt64 / 2
}

// held returns how much of a limit the chosen cases hold.
func (c *holdCombination) held(limit string) (n int64) {
	for _, s := range c.chosen {
		n += int64(s.count) * sum(s.holds, limit)
	}
	return n
}

// fits reports whether the chosen cases can hold their slots at the same time.
func (c *holdCombination) fits() bool {
	for _, s := range c.chosen {
		for _, h := range s.holds {
			if c.held(h.Limit) > c.capacityOf(h.Limit) {
				return false
			}
		}
	}
	return true
}

// unmet returns slots that a chosen case waits for and that are free; nil if there are none.
func (c *holdCombination) unmet() *Slot {
	for _, s := range c.chosen {
		for i := range s.waits {
			if w := &s.waits[i]; c.held(w.Limit)+w.N <= c.capacityOf(w.Limit) {
				return w
			}
		}
	}
	return nil
}

func sum(slots []Slot, limit string) (n int64) {
	for _, s := range slots {
		if s.Limit == limit {
			n += s.N
		}
	}
	return n
}

// order returns an order of steps in which the chosen cases reach their states; nil if their runs allow none.
func (c *holdCombination) order() *Deadlock {
	d := &Deadlock{}
	var runs []*stuckState
	for _, s := range c.chosen {
		d.Cases = append(d.Cases, StuckCase{Workflow: s.of.Net.Name(), Count: s.count, Holds: s.holds, Waits: s.waits})
		for range s.count {
			runs = append(runs, s.stuckState)
		}
	}
	w := interleaving{c: c, runs: runs, at: make([]int, len(runs)), held: make(map[string]int64)}
	if len(runs) <= maxInterleaved {
		w.failed = make(map[string]bool)
		if !w.search() {
			return nil
		}
	} else if !w.oneByOne() {
		return nil
	}
	d.Run = w.steps
	return d
}

// interleaving orders the steps of runs so that there are always enough slots.
type interleaving struct {
	c      *holdCombination
	runs   []*stuckState
	at     []int            // the position in each run
	held   map[string]int64 // by limit
	steps  []CaseStep
	failed map[string]bool // positions from which no order was found
}

// oneByOne runs the cases one after the other.
func (w *interleaving) oneByOne() bool {
	for i := range w.runs {
		for w.at[i] < len(w.runs[i].run) {
			if !w.move(i) {
				return false
			}
		}
	}
	return true
}

// search tries all orders, by backtracking.
func (w *interleaving) search() bool {
	key := make([]byte, 0, 2*len(w.at))
	done := true
	for i, at := range w.at {
		key = append(key, byte(at), byte(at>>8))
		done = done && at == len(w.runs[i].run)
	}
	if done {
		return true
	}
	if w.c.work--; w.failed[string(key)] || w.c.work <= 0 {
		return false
	}
	for i := range w.runs {
		if w.at[i] == len(w.runs[i].run) {
			continue
		}
		kept := len(w.steps)
		if w.move(i) {
			if w.search() {
				return true
			}
			w.back(i, kept)
		}
	}
	w.failed[string(key)] = true
	return false
}

// move executes the next move of a case, if there are enough slots.
func (w *interleaving) move(i int) bool {
	e := &w.runs[i].run[w.at[i]]
	for _, s := range e.needs {
		if w.held[s.Limit]+s.N > w.c.capacityOf(s.Limit) {
			return false
		}
	}
	w.change(i, w.before(i), e.after)
	w.at[i]++
	for _, s := range e.steps {
		w.steps = append(w.steps, CaseStep{Case: i + 1, Step: s})
	}
	return true
}

// back takes back the last move of a case.
func (w *interleaving) back(i, steps int) {
	w.at[i]--
	w.change(i, w.runs[i].run[w.at[i]].after, w.before(i))
	w.steps = w.steps[:steps]
}

// before returns what a case holds before its next move.
func (w *interleaving) before(i int) uint64 {
	if w.at[i] == 0 {
		return 0
	}
	return w.runs[i].run[w.at[i]-1].after
}

func (w *interleaving) change(i int, from, to uint64) {
	for both := from ^ to; both != 0; both &= both - 1 {
		n := bits.TrailingZeros64(both)
		h := &w.runs[i].of.Holds[n]
		if to&(1<<n) != 0 {
			w.held[h.Limit] += h.N
		} else {
			w.held[h.Limit] -= h.N
		}
	}
}
