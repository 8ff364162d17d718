package net

// Long searches make most of their moves by masks. A move that only takes and puts, in a safe game of few places,
// clears some bits of a few words and sets others: one pass over the words makes it, sees whether a place gets a second
// token, and hashes the result.
const (
	leapWords = 8   // the widest states for which it pays
	leapAfter = 256 // states to look at before masks are made, since most searches end before
)

// leaps holds for each move the words to clear and the words to set, one after the other.
type leaps struct {
	masks []uint64
	can   []bool // by move
}

// makeLeaps makes the masks, if the game has moves that can be made so.
func (x *explorer) makeLeaps() {
	w := x.s.width
	if x.s.log != 0 || x.watch != nil || w > leapWords {
		return
	}
	l := leaps{masks: make([]uint64, 2*w*len(x.g.moves)), can: make([]bool, len(x.g.moves))}
	for k := range x.g.moves {
		m := &x.g.moves[k]
		if len(m.resets)+len(m.spares) > 0 || m.or >= 0 {
			continue
		}
		l.can[k] = true
		take, put := l.of(int32(k), w)
		for _, a := range m.in {
			take[a.place>>6] |= 1 << (a.place & 63)
		}
		for _, a := range m.out {
			bit := uint64(1) << (a.place & 63)
			l.can[k] = l.can[k] && put[a.place>>6]&bit == 0 // a place that is named twice gets a second token
			put[a.place>>6] |= bit
		}
	}
	x.leaps = l
}

func (l *leaps) of(k int32, width int) (take, put []uint64) {
	at := 2 * width * int(k)
	return l.masks[at : at+width], l.masks[at+width : at+2*width]
}

// leap makes a move from state i into the room behind the last state, and keeps the result if it is new. It does
// nothing, and says so, if a place would get a second token.
func (x *explorer) leap(i, k int32) (id int32, ok bool) {
	take, put := x.leaps.of(k, x.s.width)
	next := x.s.room()
	crowd, h := uint64(0), hashSeed
	for w, word := range x.s.packed(i) {
		word &^= take[w]
		crowd |= word & put[w]
		word |= put[w]
		next[w] = word
		h = hashWord(h, word)
	}
	if crowd != 0 {
		return 0, false
	}
	id, _ = x.s.keep(next, hashEnd(h), i, k)
	return id, true
}
