package net

import "slices"

// walker plays a game at random, one run after the other, until something goes wrong. It proves nothing, but it is
// fast: a move costs what changes, not what the net holds. Where the states are too many for a search, most of what is
// wrong with a net shows in a few runs, for a join that cannot be satisfied is met by every run that comes there. The
// moves that were made least often go first, so that the runs do not repeat each other.
//
// The choices are those of a generator with a fixed seed: equal nets get equal runs.
type walker struct {
	g       *game
	users   [][]walkUse // by place: the moves that ask what it holds
	rng     dice
	allowed int // what answers may have cost, see [game.spent]
	work    int // moves that were looked at because something changed
	most    int // how much of that is allowed
	state   []uint8
	tokens  int                               // in all places but open ones together
	needs   []int32                           // by move: places that it is told of
	lacks   []int32                           // by move: those of them that hold too little
	bars    []int32                           // by move: places that hold something and must not
	ready   [2][]int32                        // moves that may be made, other and urgent ones, see [walker.can]
	at      []int32                           // by move: where it stands in its list, or -1
	uses    []int32                           // by move: how often it was made
	path    []int32                           // the moves of this run
	rest    []int32                           // scratch
	cleared []int32                           // scratch
	change  func(place int32, old, now uint8) // told of every change; nil for nobody
}

// walkUse says that a move takes need tokens of a place, or, with a need of 0, that it asks for the place to be empty.
type walkUse struct {
	move int32
	need uint8
}

// dice is a generator of numbers that look random (Steele, Lea and Flood's SplitMix). Its value is the seed.
type dice uint64

// below returns a number below n.
func (d *dice) below(n int) int {
	*d += 0x9e3779b97f4a7c15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

// maxTold bounds how many moves are told of every change of a place, such as a lock that all parallel branches share.
// If more take from it, they are told of their other places alone. Nor is a move told of more places that it asks to be
// empty: for xor-joins of thousands of inputs that would be millions.
const maxTold = 64

func newWalker(g *game) *walker {
	w := &walker{
		g: g, users: make([][]walkUse, g.places), rng: 1, state: make([]uint8, g.places),
		needs: make([]int32, len(g.moves)), lacks: make([]int32, len(g.moves)), bars: make([]int32, len(g.moves)), at: make([]int32, len(g.moves)),
		uses: make([]int32, len(g.moves)),
	}
	takers := make([]int32, g.places)
	for k := range g.moves {
		for _, a := range g.moves[k].in {
			takers[a.place]++
		}
	}
	shared := func(a gameArc) bool { return takers[a.place] > maxTold }
	for k := range g.moves {
		m := &g.moves[k]
		all := m.or >= 0 || !slices.ContainsFunc(m.in, func(a gameArc) bool { return !shared(a) })
		for _, a := range m.in {
			if all || !shared(a) {
				w.users[a.place] = append(w.users[a.place], walkUse{int32(k), a.n})
				w.needs[k]++
			}
		}
		if len(m.empty) > maxTold {
			continue
		}
		for _, p := range m.empty {
			w.users[p] = append(w.users[p], walkUse{int32(k), 0})
		}
	}
	return w
}

// restart goes back to the game's start.
func (w *walker) restart() {
	clear(w.state)
	clear(w.bars)
	w.tokens, w.path = 0, w.path[:0]
	w.ready[0], w.ready[1] = w.ready[0][:0], w.ready[1][:0]
	w.work += len(w.g.moves) + len(w.state)
	for k := range w.g.moves {
		w.lacks[k], w.at[k] = w.needs[k], -1
		w.sort(int32(k))
	}
	for p, c := range w.g.start {
		w.set(int32(p), c)
	}
}

// set changes what a place holds.
func (w *walker) set(p int32, c uint8) {
	old := w.state[p]
	if old == c {
		return
	}
	w.state[p] = c
	if !w.g.isOpen(p) {
		w.tokens += int(c) - int(old)
	}
	if w.change != nil {
		w.change(p, old, c)
	}
	w.work += len(w.users[p])
	for _, u := range w.users[p] {
		switch {
		case u.need == 0 && old == 0:
			w.bars[u.move]++
		case u.need == 0 && c == 0:
			w.bars[u.move]--
		case u.need > 0 && old < u.need && c >= u.need:
			w.lacks[u.move]--
		case u.need > 0 && old >= u.need && c < u.need:
			w.lacks[u.move]++
		default:
			continue
		}
		w.sort(u.move)
	}
}

// sort puts a move into the list of those that may be made, or takes it out.
func (w *walker) sort(k int32) {
	m := &w.g.moves[k]
	may := w.bars[k] == 0 && (w.lacks[k] == 0 || m.or >= 0 && int(w.lacks[k]) < len(m.in))
	if may == (w.at[k] >= 0) {
		return
	}
	list := &w.ready[0]
	if m.urgent {
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

// choose picks a move that can be made; -1 if there is none. Or-joins that may have to wait are mostly left until
// nothing else can be done: by then there is less to wait for, and the answer costs less.
func (w *walker) choose() int32 {
	for _, list := range [][]int32{w.ready[1], w.ready[0]} {
		w.rest = append(w.rest[:0], list...)
		w.work += len(list)
		patient := w.rng.below(8) > 0
		for n := len(w.rest); n > 0; {
			i, other := w.rng.below(n), w.rng.below(n)
			if w.uses[w.rest[other]] < w.uses[w.rest[i]] {
				i = other
			}
			k := w.rest[i]
			if !(patient && w.g.moves[k].or >= 0 && w.lacks[k] > 0) && w.can(k) {
				return k
			}
			n--
			w.rest[i], w.rest[n] = w.rest[n], k
			if n == 0 && patient {
				patient, n = false, len(w.rest)
			}
		}
	}
	return -1
}

// can reports whether a move of the lists can be made: an or-join may have to wait, and what it was not told of may
// forbid it.
func (w *walker) can(k int32) bool {
	m := &w.g.moves[k]
	if len(m.empty) > maxTold && slices.ContainsFunc(m.empty, func(p int32) bool { return w.state[p] > 0 }) {
		return false
	}
	if m.or >= 0 {
		return w.g.ask.orEnabled(m, w.state)
	}
	return int(w.needs[k]) == len(m.in) ||
		!slices.ContainsFunc(m.in, func(a gameArc) bool { return w.state[a.place] < a.n })
}

// step makes a move as [game.play] does, and returns a place that would hold more than can be counted, or -1.
func (w *walker) step(k int32) int32 {
	m := &w.g.moves[k]
	w.uses[k]++
	w.path = append(w.path, k)
	for _, a := range m.in {
		if c := w.state[a.place]; m.or < 0 || c > 0 {
			w.set(a.place, c-a.n)
		}
	}
	w.cleared = w.cleared[:0]
	for i := range m.spares {
		if s := &m.spares[i]; w.g.ask.memberEnabled(s, w.state) {
			w.cleared = append(w.cleared, s.clears...)
		}
	}
	for _, p := range w.cleared {
		w.set(p, 0)
	}
	for _, p := range m.resets {
		w.set(p, 0)
	}
	for _, a := range m.out {
		c := w.state[a.place]
		if int(c)+int(a.n) > w.g.most {
			return a.place
		}
		w.set(a.place, c+a.n)
	}
	return -1
}

// ended says how a run ended.
type ended uint8

const (
	going    ended = iota // it has not
	properly              // it is complete
	spilling              // the end is reached with work left over
	crowding              // a second token came into a place of a game that must be safe
	stopping              // no move can be made, and it is not complete
	growing               // tokens pile up beyond counting
	tired                 // nothing is left of what or-joins or moves may cost
)

// run makes moves from the state that was reached, at most so many. It returns the place for crowding and growing.
func (w *walker) run(steps int) (ended, int32) {
	for range steps {
		if how := w.over(); how != going {
			return how, -1
		}
		if w.g.spent() > w.allowed || w.work > w.most {
			return tired, -1
		}
		k := w.choose()
		if k < 0 {
			return stopping, -1
		}
		if how, p := w.take(k); how != going {
			return how, p
		}
	}
	return w.over(), -1
}

// take makes a move and says whether that ended the run, with the place for crowding and growing.
func (w *walker) take(k int32) (ended, int32) {
	if p := w.step(k); p >= 0 {
		return growing, p
	}
	if w.g.safe {
		for _, a := range w.g.moves[k].out {
			if w.state[a.place] > 1 && !w.g.isOpen(a.place) {
				return crowding, a.place
			}
		}
	}
	return w.over(), -1
}

// over says whether the run is complete.
func (w *walker) over() ended {
	switch end := w.g.end; {
	case end < 0 && w.tokens > 0 || end >= 0 && w.state[end] == 0:
		return going
	case end < 0 || w.tokens == 1:
		return properly
	}
	return spilling
}
