package net

// Petri is a plain place/transition net with weights, an initial marking and reset arcs: what a PNML file holds and
// what package net/verify verifies. Unlike a [Definition] it needs no single start and end, has no rules of joins and splits, and its
// transitions fire in one step. It is plain data; the numbers in it are indexes into its own slices.
//
// Firing a transition needs Weight tokens instead of each of its In arcs. In this order it takes them, empties the
// places of Resets, and puts Weight tokens into the place of each of its Out arcs. So a transition may empty a place
// and then mark it, and resets never matter for what is enabled.
//
// Final markings. A sink is a place that some transition puts into and none takes from, see [Petri.Sinks]. A run is
// complete when every place that is not a sink is empty, whatever the sinks hold: a process model with several ends
// reaches one of them in one run and another in the next, or two together. A net with a single sink is the classical
// workflow net if that sink then holds exactly one token. A place without any arc is no sink: it changes nothing while
// it is empty, and a token in it stays there.
//
// The zero value is a net without any node. Slices of the net may be shared by copies of it; treat them as immutable
// once the net has been passed on.
type Petri struct {
	Name        string            // name or id of the net in its source
	Places      []PetriPlace      // in the order of their declaration
	Transitions []PetriTransition // in the order of their declaration
	Pos         Pos               // where the net was declared
}

// PetriPlace holds tokens.
type PetriPlace struct {
	Name    string // unique among places and transitions of its net
	Initial int    // tokens in the initial marking, zero or more
	Pos     Pos    // where it was declared
}

// PetriTransition moves tokens.
type PetriTransition struct {
	Name   string     // unique among places and transitions of its net
	In     []PetriArc // what it takes, one arc a place
	Out    []PetriArc // what it puts, one arc a place
	Resets []int      // places that it empties, each named once
	Pos    Pos        // where it was declared
}

// PetriArc joins a transition to a place.
type PetriArc struct {
	Place  int // index into [Petri.Places]
	Weight int // tokens moved, one or more
}

// Initial returns the initial marking: the tokens of every place, by its index. The slice is fresh.
func (p *Petri) Initial() []int {
	m := make([]int, len(p.Places))
	for i, place := range p.Places {
		m[i] = place.Initial
	}
	return m
}

// Sinks lists the places that some transition puts into and none takes from, in rising order.
func (p *Petri) Sinks() []int {
	return p.places(func(taken, put bool) bool { return put && !taken })
}

// Sources lists the places that some transition takes from and none puts into, in rising order.
func (p *Petri) Sources() []int {
	return p.places(func(taken, put bool) bool { return taken && !put })
}

// Isolated lists the places that no transition takes from or puts into, in rising order.
func (p *Petri) Isolated() []int {
	return p.places(func(taken, put bool) bool { return !taken && !put })
}

// places lists the places of one kind.
func (p *Petri) places(kind func(taken, put bool) bool) []int {
	taken, put := NewBits(len(p.Places)), NewBits(len(p.Places))
	for i := range p.Transitions {
		for _, a := range p.Transitions[i].In {
			taken.Add(a.Place)
		}
		for _, a := range p.Transitions[i].Out {
			put.Add(a.Place)
		}
	}
	var list []int
	for i := range p.Places {
		if kind(taken.Has(i), put.Has(i)) {
			list = append(list, i)
		}
	}
	return list
}
