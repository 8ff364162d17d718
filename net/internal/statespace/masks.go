package statespace

// Long searches execute most moves by masks. A move that only takes and puts, in a safe system of few places, clears
// some bits of a few words and sets others: one pass over the words executes it, detects a second token, and hashes the
// result.
const (
	maskWords = 8   // the maximum size of states for which masks pay
	maskAfter = 256 // states to explore before masks are made, since most searches end earlier
)

// moveMasks has for each move the words to clear and the words to set, one after the other.
type moveMasks struct {
	words []uint64
	can   []bool // by move
}

// makeMasks makes the masks, if the system has moves that allow them.
func (x *Search) makeMasks() {
	w := x.States.width
	if x.States.log != 0 || x.Observer != nil || w > maskWords {
		return
	}
	l := moveMasks{words: make([]uint64, 2*w*len(x.sys.Moves)), can: make([]bool, len(x.sys.Moves))}
	for k := range x.sys.Moves {
		m := &x.sys.Moves[k]
		if len(m.Resets)+len(m.MemberResets) > 0 || m.OrJoin >= 0 {
			continue
		}
		l.can[k] = true
		take, put := l.of(int32(k), w)
		for _, a := range m.In {
			take[a.Place>>6] |= 1 << (a.Place & 63)
		}
		for _, a := range m.Out {
			bit := uint64(1) << (a.Place & 63)
			l.can[k] = l.can[k] && put[a.Place>>6]&bit == 0 // a place that is named twice gets a second token
			put[a.Place>>6] |= bit
		}
	}
	x.masks = l
}

// of returns the masks of a move.
func (l *moveMasks) of(k int32, width int) (take, put []uint64) {
	at := 2 * width * int(k)
	return l.words[at : at+width], l.words[at+width : at+2*width]
}

// makeByMask executes a move from state i in the memory after the last state, and keeps the result if it is new. If a
// place would get a second token, it does nothing, and ok is false.
func (x *Search) makeByMask(i, k int32) (id int32, ok bool) {
	take, put := x.masks.of(k, x.States.width)
	next := x.States.room()
	second, h := uint64(0), hashSeed
	for w, word := range x.States.packed(i) {
		word &^= take[w]
		second |= word & put[w]
		word |= put[w]
		next[w] = word
		h = hashWord(h, word)
	}
	if second != 0 {
		return 0, false
	}
	id, _ = x.States.keep(next, hashEnd(h), i, k)
	return id, true
}
