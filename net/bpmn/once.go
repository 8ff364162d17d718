package bpmn

// An end event consumes each token as it arrives, and a process ends when it has no token left. An or-join that joins
// the ends waits for every input that can still be marked, but not for a second token of an input. So it must be known
// for each end whether it can be reached a second time.
//
// The argument is an invariant. Take the set of an end and everything that leads to it; of a parallel gateway, which
// needs all its inputs, one input is enough. If no element of this set starts two branches in it, no element makes two
// tokens of one, and the number of tokens that reach the end is the number that begin in the set: one.

// maxOnce limits the search for such sets. Beyond it, an end counts as one that can be reached again, and the net has
// some unnecessary elements.
const maxOnce = 1 << 22

// onceSearch determines what happens at most once in a scope.
type onceSearch struct {
	joins  map[*node]bool    // inclusive gateways that run once; false for those in progress
	opened map[*node]*node   // the node after which the branches of an inclusive gateway begin; nil if there is none
	begins map[*node]bool    // where a token begins: true for one of several alternatives
	wakers map[*node][]*node // the senders of messages that start a process
	visits int
}

func newOnceSearch() *onceSearch {
	return &onceSearch{joins: map[*node]bool{}, opened: map[*node]*node{}, begins: map[*node]bool{},
		wakers: map[*node][]*node{}}
}

// addStarts records where tokens begin in a scope and, in a collaboration, where its messages start other processes.
func (o *onceSearch) addStarts(s *scope) {
	alternatives, all := s.starts()
	for _, n := range all {
		o.begins[n] = false
	}
	for _, n := range alternatives {
		if !n.isWoken() {
			o.begins[n] = len(n.thrown) == 0
		}
	}
	for _, n := range s.nodes {
		for _, to := range n.sends {
			o.wakers[to] = append(o.wakers[to], n)
		}
		if n.sub != nil {
			o.addStarts(n.sub)
		}
	}
}

// settleEnds determines how the ends of a scope are joined: whether one of them may be reached again, and which end
// events wait for all their flows themselves.
func (s *scope) settleEnds(search *onceSearch) {
	s.again = false
	if !s.parallel || s.loose {
		return
	}
	for _, n := range s.nodes {
		switch {
		case n.handler || !n.isEnd() || n.endsAll() || search.runsOnce(n):
		case n.kind == endEvent && n.moves() && len(n.in) > 1 && search.eachOnce(n, nil):
			n.gathers = true
		default:
			s.again = true
		}
	}
}

// settleAllEnds also does so for the inner scopes.
func (s *scope) settleAllEnds(search *onceSearch) {
	for _, n := range s.nodes {
		if n.sub != nil {
			n.sub.settleAllEnds(search)
		}
	}
	s.settleEnds(search)
}

// runsOnce reports whether an end is reached at most once.
func (o *onceSearch) runsOnce(n *node) bool {
	switch {
	case len(n.in) > 1 && n.kind == parallel:
		return o.once(n, n.in[:1], nil)
	case n.isOrJoin():
		if open := o.opening(n); open != nil {
			return o.runsOnce(open)
		}
		return o.joinOnce(n)
	}
	return o.once(n, n.in, nil)
}

func (n *node) isOrJoin() bool {
	return len(n.in) > 1 && (n.kind == inclusive || n.kind == complexGateway)
}

// endsAll reports whether an end event cancels every other token.
func (n *node) endsAll() bool {
	return n.kind == endEvent && (n.trigger == "terminate" || n.isThrow() && n.trigger != "escalation")
}

// eachOnce reports whether at most one token arrives by each flow to a node; if open is not nil, for each time that
// open runs.
func (o *onceSearch) eachOnce(n, open *node) bool {
	for i := range n.in {
		if !o.once(n, n.in[i:i+1], open) {
			return false
		}
	}
	return true
}

// once reports whether at most one token arrives at a node by the given flows; if open is not nil, for each time that
// open runs. It may be false although that is the case.
func (o *onceSearch) once(n *node, by []*flow, open *node) bool {
	set := &onceSet{branches: map[*node]int{}, forks: map[*node]bool{}, seen: map[*node]bool{n: true},
		chosen: map[*scope]bool{}}
	if len(by) == len(n.in) {
		set.begin(o, n)
	}
	set.before(by)
	for len(set.open) > 0 {
		m := set.open[len(set.open)-1]
		set.open = set.open[:len(set.open)-1]
		if o.visits++; o.visits > maxOnce || len(m.thrown) > 0 && !m.interrupting {
			return false // a catcher that does not interrupt may catch several throws
		}
		if m == open {
			set.sources++
			continue
		}
		set.begin(o, m)
		switch {
		case len(m.in) > 1 && m.kind == parallel:
			set.before(m.in[:1])
		case m.isOrJoin():
			if begin := o.opening(m); begin != nil {
				set.visit(begin, begin.forks())
			} else if o.joinOnce(m) {
				set.sources++
			} else {
				return false
			}
		default:
			set.before(m.in)
		}
		for _, l := range m.linkedFrom {
			set.visit(l, false)
		}
		if m.host != nil {
			set.visit(m.host, !m.interrupting)
		}
	}
	return set.sources < 2 && set.branches[n] == 0 && !set.splits()
}

// onceSet is the set of elements that lead to an element.
type onceSet struct {
	open     []*node
	seen     map[*node]bool
	branches map[*node]int   // number of branches of a node that lead to the element
	forks    map[*node]bool  // several branches of the node are taken together
	sources  int             // tokens that begin in the set
	chosen   map[*scope]bool // it includes one of several alternative starts
}

func (s *onceSet) visit(n *node, fork bool) {
	s.branches[n]++
	s.forks[n] = s.forks[n] || fork
	if !s.seen[n] {
		s.seen[n] = true
		s.open = append(s.open, n)
	}
}

func (s *onceSet) before(in []*flow) {
	for _, f := range in {
		s.visit(f.from, f.from.forks())
	}
}

func (s *onceSet) begin(o *onceSearch, n *node) {
	alternative, begins := o.begins[n]
	switch {
	case !begins || alternative && s.chosen[n.scope]:
	default:
		s.sources++
		s.chosen[n.scope] = alternative
	}
	if n.isWoken() {
		for _, w := range o.wakers[n] {
			s.visit(w, true)
		}
	}
}

// splits reports whether some element starts two branches in the set.
func (s *onceSet) splits() bool {
	for n, k := range s.branches {
		if k > 1 && s.forks[n] {
			return true
		}
	}
	return false
}

// joinOnce reports whether an inclusive gateway runs once. It waits for all tokens that can still arrive, so it does if
// each of its flows brings one token and none returns to it.
func (o *onceSearch) joinOnce(n *node) bool {
	if once, known := o.joins[n]; known {
		return once
	}
	o.joins[n] = false
	o.joins[n] = o.eachOnce(n, nil)
	return o.joins[n]
}

// opening returns the node after which the branches begin that an inclusive gateway joins: whenever it runs, each flow
// to the gateway brings at most one token, and all its tokens come from there. It returns nil if none is found.
func (o *onceSearch) opening(n *node) *node {
	if open, known := o.opened[n]; known {
		return open
	}
	o.opened[n] = nil
	const far = 100 // maximum number of steps back
	seen := map[*node]bool{n: true}
	at := n
	for range far {
		if len(at.in) == 0 || seen[at.in[0].from] {
			break
		}
		at = at.in[0].from
		seen[at] = true
		if len(at.out) > 1 && o.eachOnce(n, at) {
			o.opened[n] = at
			break
		}
	}
	return o.opened[n]
}

// forks reports whether several branches of a node are taken together.
func (n *node) forks() bool {
	return n.kind != exclusive && (n.kind != eventBased || n.several)
}
