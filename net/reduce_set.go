package net

import "slices"

// tokenSet is the attempt to find a set K that proves an or-join free to fire, see [reducer.removeOrJoins]. It begins
// with the join's inputs and takes in what their producers take from, and so on backwards. Where a producer has several
// inputs any of them may serve; the one that is nearest behind the join is tried first, for that is the way round a
// loop.
type tokenSet struct {
	r      *reducer
	groups []int32 // by place, the candidate whose input it is; -1 if none
	in     []bool  // by place
	list   []int32 // the members, in the order in which they came
	steps  int     // what the search may still spend
	spent  int     // what the last one has spent
	ways   ahead   // from the join
}

// The search for one set is bounded. Giving up costs only speed.
const (
	fewSetSteps  = 500
	maxSetSteps  = 20_000
	maxPassSteps = 1_000_000 // of all joins one by one, before each gets few
)

func newTokenSet(r *reducer) *tokenSet {
	return &tokenSet{r: r, groups: filledWith(len(r.places), -1), in: make([]bool, len(r.places))}
}

// group says that the inputs of the join count as one place.
func (k *tokenSet) group(j int32) {
	for _, p := range k.r.trans[j].in {
		k.groups[p] = j
	}
}

func (k *tokenSet) ungroup(j int32) {
	for _, p := range k.r.trans[j].in {
		k.groups[p] = -1
	}
}

func (k *tokenSet) holdsOneToken(j int32, steps int) bool {
	k.undo(0)
	k.steps = steps
	defer func() { k.spent = steps - k.steps }()
	k.ways.begin(k.r, j)
	k.add(k.r.trans[j].in[0])
	if !k.close(0) {
		return false
	}
	marked := 0
	for _, p := range k.list {
		if k.r.places[p].marked {
			marked++
		}
	}
	return marked <= 1
}

// joins lists the candidates whose inputs are in the set.
func (k *tokenSet) joins() []int32 {
	var list []int32
	for _, p := range k.list {
		if j := k.groups[p]; j >= 0 && p == k.r.trans[j].in[0] {
			list = append(list, j)
		}
	}
	return list
}

// add takes in a place, and with it all that counts as one with it.
func (k *tokenSet) add(p int32) {
	if j := k.groups[p]; j >= 0 {
		for _, q := range k.r.trans[j].in {
			k.in[q] = true
			k.list = append(k.list, q)
		}
		return
	}
	k.in[p] = true
	k.list = append(k.list, p)
}

// undo takes out all members but the first n.
func (k *tokenSet) undo(n int) {
	for _, p := range k.list[n:] {
		k.in[p] = false
	}
	k.list = k.list[:n]
}

// close looks at the producers of the members from number i on, and takes in more places until all is well.
func (k *tokenSet) close(i int) bool {
	for ; i < len(k.list); i++ {
		for _, u := range k.r.places[k.list[i]].in {
			tr := &k.r.trans[u]
			if k.steps -= len(tr.out); k.steps < 0 || !k.putsOne(tr) {
				return false
			}
			switch {
			case tr.orTask >= 0 && k.groups[tr.in[0]] < 0:
				for _, p := range tr.in {
					if !k.in[p] {
						k.add(p)
					}
				}
			case slices.ContainsFunc(tr.in, func(p int32) bool { return k.in[p] }):
			case len(tr.in) == 0:
				return false
			case len(tr.in) == 1 || tr.orTask >= 0:
				k.add(tr.in[0])
			default:
				return k.choose(tr, i)
			}
		}
	}
	return true
}

// choose tries the inputs of a producer of member i in turn.
func (k *tokenSet) choose(tr *rtrans, i int) bool {
	inputs := slices.Clone(tr.in)
	slices.SortStableFunc(inputs, func(a, b int32) int { return int(k.ways.to(a)) - int(k.ways.to(b)) })
	n := len(k.list)
	for _, p := range inputs {
		k.add(p)
		if k.close(i) {
			return true
		}
		k.undo(n)
	}
	return false
}

// putsOne reports whether a transition puts no more than one token into the set. All that it puts into the inputs of
// one candidate counts as one.
func (k *tokenSet) putsOne(tr *rtrans) bool {
	one, group := false, int32(-1)
	for _, a := range tr.out {
		switch j := k.groups[a.place]; {
		case !k.in[a.place] || one && j >= 0 && j == group:
		case one:
			return false
		default:
			one, group = true, j
		}
	}
	return true
}

// ahead ranks places by how soon they come behind a transition. It walks on only as far as it is asked.
type ahead struct {
	r       *reducer
	round   int32   // tells the walks apart
	rank    []int32 // by place
	reached []int32 // by place, the round in which rank was set
	passed  []int32 // by transition, likewise
	todo    []int32 // transitions, in the order of the walk
	at      int
}

func (a *ahead) begin(r *reducer, t int32) {
	if a.r == nil {
		a.r = r
		a.rank, a.reached = make([]int32, len(r.places)), make([]int32, len(r.places))
		a.passed = make([]int32, len(r.trans))
	}
	a.round++
	a.todo, a.at = append(a.todo[:0], t), 0
	a.passed[t] = a.round
}

func (a *ahead) to(place int32) int32 {
	for a.reached[place] != a.round {
		if a.at == len(a.todo) {
			return int32(len(a.passed))
		}
		for _, arc := range a.r.trans[a.todo[a.at]].out {
			a.arrive(arc.place)
		}
		a.at++
	}
	return a.rank[place]
}

func (a *ahead) arrive(p int32) {
	if a.reached[p] == a.round {
		return
	}
	a.reached[p], a.rank[p] = a.round, int32(a.at)
	for _, v := range a.r.places[p].out {
		if a.passed[v] != a.round {
			a.passed[v] = a.round
			a.todo = append(a.todo, v)
		}
	}
}
