package statespace

import "slices"

// Walker makes random walks through the state space, one run after the other, until something goes wrong. It proves
// nothing, but it is fast: a move costs what changes, not what the net holds. Where the states are too many for a
// search, most of what is wrong with a net shows in a few runs, for a join that cannot be satisfied is met by every run
// that comes there. The moves that were made least often go first, so that the runs do not repeat each other.
//
// The choices are those of a generator with a fixed seed: equal systems get equal runs.
type Walker struct {
	sys       *System
	users     [][]placeUse // by place: the moves whose enabling depends on what it holds
	rng       random
	allowed   int // what decisions may have cost, see [System.Spent]
	Work      int // moves that were looked at because something changed
	Most      int // how much of that is allowed
	State     []uint8
	tokens    int                               // in all places but open ones together
	needs     []int32                           // by move: places that it is notified of
	missing   []int32                           // by move: those of them that hold too little
	inhibited []int32                           // by move: places that hold something and must not
	ready     [2][]int32                        // moves that may be made, other and urgent ones, see [Walker.can]
	at        []int32                           // by move: where it stands in its list, or -1
	uses      []int32                           // by move: how often it was made
	Path      []int32                           // the moves of this run
	rest      []int32                           // scratch
	cleared   []int32                           // scratch
	OnChange  func(place int32, old, now uint8) // is called for every change; nil for none
}

// placeUse says that a move takes need tokens of a place, or, with a need of 0, has an inhibitor arc from it.
type placeUse struct {
	move int32
	need uint8
}

// random is a generator of numbers that look random (Steele, Lea and Flood's SplitMix). Its value is the seed.
type random uint64

// below returns a number below n.
func (d *random) below(n int) int {
	*d += 0x9e3779b97f4a7c15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

// maxNotified bounds how many moves are notified of every change of a place, such as a lock that all parallel branches
// share. If more take from it, they are notified of their other places alone. Nor is a move notified of more inhibitor
// arcs: xor-joins of thousands of inputs would have millions.
const maxNotified = 64

// NewWalker makes a walker. A run stops when decisions have cost what is allowed, see [System.Spent], or more than most
// moves were looked at.
func NewWalker(sys *System, allowed, most int) *Walker {
	w := &Walker{
		sys: sys, allowed: allowed, Most: most, users: make([][]placeUse, sys.Places), rng: 1, State: make([]uint8, sys.Places),
		needs: make([]int32, len(sys.Moves)), missing: make([]int32, len(sys.Moves)),
		inhibited: make([]int32, len(sys.Moves)), at: make([]int32, len(sys.Moves)), uses: make([]int32, len(sys.Moves)),
	}
	takers := make([]int32, sys.Places)
	for k := range sys.Moves {
		for _, a := range sys.Moves[k].In {
			takers[a.Place]++
		}
	}
	shared := func(a Arc) bool { return takers[a.Place] > maxNotified }
	for k := range sys.Moves {
		m := &sys.Moves[k]
		all := m.OrJoin >= 0 || !slices.ContainsFunc(m.In, func(a Arc) bool { return !shared(a) })
		for _, a := range m.In {
			if all || !shared(a) {
				w.users[a.Place] = append(w.users[a.Place], placeUse{int32(k), a.Weight})
				w.needs[k]++
			}
		}
		if len(m.Inhibitors) > maxNotified {
			continue
		}
		for _, p := range m.Inhibitors {
			w.users[p] = append(w.users[p], placeUse{int32(k), 0})
		}
	}
	return w
}

// Restart goes back to the initial marking, and must be called before the first run.
func (w *Walker) Restart() {
	clear(w.State)
	clear(w.inhibited)
	w.tokens, w.Path = 0, w.Path[:0]
	w.ready[0], w.ready[1] = w.ready[0][:0], w.ready[1][:0]
	w.Work += len(w.sys.Moves) + len(w.State)
	for k := range w.sys.Moves {
		w.missing[k], w.at[k] = w.needs[k], -1
		w.update(int32(k))
	}
	for p, c := range w.sys.Start {
		w.set(int32(p), c)
	}
}

// set changes what a place holds.
func (w *Walker) set(p int32, c uint8) {
	old := w.State[p]
	if old == c {
		return
	}
	w.State[p] = c
	if !w.sys.isOpen(p) {
		w.tokens += int(c) - int(old)
	}
	if w.OnChange != nil {
		w.OnChange(p, old, c)
	}
	w.Work += len(w.users[p])
	for _, u := range w.users[p] {
		switch {
		case u.need == 0 && old == 0:
			w.inhibited[u.move]++
		case u.need == 0 && c == 0:
			w.inhibited[u.move]--
		case u.need > 0 && old < u.need && c >= u.need:
			w.missing[u.move]--
		case u.need > 0 && old >= u.need && c < u.need:
			w.missing[u.move]++
		default:
			continue
		}
		w.update(u.move)
	}
}

// update puts a move into the list of those that may be made, or takes it out.
func (w *Walker) update(k int32) {
	m := &w.sys.Moves[k]
	may := w.inhibited[k] == 0 && (w.missing[k] == 0 || m.OrJoin >= 0 && int(w.missing[k]) < len(m.In))
	if may == (w.at[k] >= 0) {
		return
	}
	list := &w.ready[0]
	if m.Urgent {
		list = &w.ready[1]
	}
	if may {
		w.at[k] = int32(len(*list))
		*list = append(*list, k)
		return
	}
	last := (*list)[len(*list)-1]
	(*list)[w.at[k]], w.at[last] = last, w.at[k]
	*list, w.at[k] = (*list)[:len(*list)-1], -1
}

// Choose picks a move that can be made; -1 if there is none. Or-joins that may have to wait are mostly left until
// nothing else can be done: by then there is less to wait for, and the answer costs less.
func (w *Walker) Choose() int32 {
	for _, list := range [][]int32{w.ready[1], w.ready[0]} {
		w.rest = append(w.rest[:0], list...)
		w.Work += len(list)
		postpone := w.rng.below(8) > 0
		for n := len(w.rest); n > 0; {
			i, other := w.rng.below(n), w.rng.below(n)
			if w.uses[w.rest[other]] < w.uses[w.rest[i]] {
				i = other
			}
			k := w.rest[i]
			if !(postpone && w.sys.Moves[k].OrJoin >= 0 && w.missing[k] > 0) && w.can(k) {
				return k
			}
			n--
			w.rest[i], w.rest[n] = w.rest[n], k
			if n == 0 && postpone {
				postpone, n = false, len(w.rest)
			}
		}
	}
	return -1
}

// Enabled reports whether a move can be made now, urgent moves that must go first apart.
func (w *Walker) Enabled(k int32) bool { return w.at[k] >= 0 && w.can(k) }

// UrgentEnabled reports whether an urgent move can be made now; then no other may.
func (w *Walker) UrgentEnabled() bool { return slices.ContainsFunc(w.ready[1], w.can) }

// can reports whether a move of the lists can be made: an or-join may have to wait, and it may be disabled by a
// place that it is not notified of.
func (w *Walker) can(k int32) bool {
	m := &w.sys.Moves[k]
	if len(m.Inhibitors) > maxNotified && slices.ContainsFunc(m.Inhibitors, func(p int32) bool { return w.State[p] > 0 }) {
		return false
	}
	if m.OrJoin >= 0 {
		return w.sys.Decider.OrJoinEnabled(m, w.State)
	}
	return int(w.needs[k]) == len(m.In) ||
		!slices.ContainsFunc(m.In, func(a Arc) bool { return w.State[a.Place] < a.Weight })
}

// Step makes a move, as [System.Fire] does, and returns a place that would hold more than can be counted, or -1.
func (w *Walker) Step(k int32) int32 {
	m := &w.sys.Moves[k]
	w.uses[k]++
	w.Path = append(w.Path, k)
	for _, a := range m.In {
		if c := w.State[a.Place]; m.OrJoin < 0 || c > 0 {
			w.set(a.Place, c-a.Weight)
		}
	}
	w.cleared = w.cleared[:0]
	for i := range m.MemberResets {
		if s := &m.MemberResets[i]; w.sys.Decider.MemberEnabled(s, w.State) {
			w.cleared = append(w.cleared, s.Clears...)
		}
	}
	for _, p := range w.cleared {
		w.set(p, 0)
	}
	for _, p := range m.Resets {
		w.set(p, 0)
	}
	for _, a := range m.Out {
		c := w.State[a.Place]
		if int(c)+int(a.Weight) > w.sys.MaxTokens {
			return a.Place
		}
		w.set(a.Place, c+a.Weight)
	}
	return -1
}

// Ending is how a run ended.
type Ending uint8

// The endings.
const (
	Running             Ending = iota // it has not
	Completed                         // it is complete
	CompletedImproperly               // the end is reached with work left over
	SecondTokenReached                // a second token came into a place of a system that must be safe
	Deadlocked                        // no move can be made, and it is not complete
	Overflowed                        // tokens pile up beyond counting
	OutOfBudget                       // nothing is left of what or-joins or moves may cost
)

// Run makes moves from the state that was reached, at most so many. It returns the place of a second token or
// of an overflow, else -1.
func (w *Walker) Run(steps int) (Ending, int32) {
	for range steps {
		if how := w.ending(); how != Running {
			return how, -1
		}
		if w.sys.Spent() > w.allowed || w.Work > w.Most {
			return OutOfBudget, -1
		}
		k := w.Choose()
		if k < 0 {
			return Deadlocked, -1
		}
		if how, p := w.Take(k); how != Running {
			return how, p
		}
	}
	return w.ending(), -1
}

// Take makes a move and returns whether that ended the run, and the place as [Walker.Run] does.
func (w *Walker) Take(k int32) (Ending, int32) {
	if p := w.Step(k); p >= 0 {
		return Overflowed, p
	}
	if w.sys.Safe {
		for _, a := range w.sys.Moves[k].Out {
			if w.State[a.Place] > 1 && !w.sys.isOpen(a.Place) {
				return SecondTokenReached, a.Place
			}
		}
	}
	return w.ending(), -1
}

// ending is how the run has ended, if it is complete.
func (w *Walker) ending() Ending {
	switch end := w.sys.End; {
	case end < 0 && w.tokens > 0 || end >= 0 && w.State[end] == 0:
		return Running
	case end < 0 || w.tokens == 1:
		return Completed
	}
	return CompletedImproperly
}
