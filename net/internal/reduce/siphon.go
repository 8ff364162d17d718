package reduce

import "slices"

// siphon searches a set K of places that proves that an or-join is free to fire, see [Net.removeOrJoins]: every
// transition that puts into K takes from K. It begins with the inputs of the join, and adds inputs of their producers,
// and so on backwards. If a producer has several inputs, any of them is sufficient; the one that is nearest after the
// join is tried first, since that closes a loop.
type siphon struct {
	r      *Net
	groups []int32  // by place, the candidate whose input it is; -1 if none
	in     []bool   // by place
	list   []int32  // the members, in the order in which they were added
	steps  int      // the remaining steps of the search
	spent  int      // the steps of the last search
	dist   distance // from the join
}

// Limits of the search for one set. Giving up only costs time.
const (
	fewSetSteps  = 500
	maxSetSteps  = 20_000
	maxPassSteps = 1_000_000 // of all joins one by one, after which each gets few
)

func newSiphon(r *Net) *siphon {
	return &siphon{r: r, groups: slices.Repeat([]int32{-1}, len(r.Places)), in: make([]bool, len(r.Places))}
}

// group makes the inputs of the join count as one place.
func (k *siphon) group(j int32) {
	for _, p := range k.r.Transitions[j].In {
		k.groups[p] = j
	}
}

func (k *siphon) ungroup(j int32) {
	for _, p := range k.r.Transitions[j].In {
		k.groups[p] = -1
	}
}

func (k *siphon) holdsOneToken(j int32, steps int) bool {
	k.undo(0)
	k.steps = steps
	defer func() { k.spent = steps - k.steps }()
	k.dist.begin(k.r, j)
	k.add(k.r.Transitions[j].In[0])
	if !k.close(0) {
		return false
	}
	marked := 0
	for _, p := range k.list {
		if k.r.Places[p].Marked {
			marked++
		}
	}
	return marked <= 1
}

// joins returns the candidates whose inputs are in the set.
func (k *siphon) joins() []int32 {
	var list []int32
	for _, p := range k.list {
		if j := k.groups[p]; j >= 0 && p == k.r.Transitions[j].In[0] {
			list = append(list, j)
		}
	}
	return list
}

// add adds a place, with all places that count as one with it.
func (k *siphon) add(p int32) {
	if j := k.groups[p]; j >= 0 {
		for _, q := range k.r.Transitions[j].In {
			k.in[q] = true
			k.list = append(k.list, q)
		}
		return
	}
	k.in[p] = true
	k.list = append(k.list, p)
}

// undo removes all members but the first n.
func (k *siphon) undo(n int) {
	for _, p := range k.list[n:] {
		k.in[p] = false
	}
	k.list = k.list[:n]
}

// close checks the producers of the members from number i on, and adds places until the set is a siphon.
func (k *siphon) close(i int) bool {
	for ; i < len(k.list); i++ {
		for _, u := range k.r.Places[k.list[i]].in {
			tr := &k.r.Transitions[u]
			if k.steps -= len(tr.Out); k.steps < 0 || !k.putsOne(tr) {
				return false
			}
			switch {
			case tr.OrTask >= 0 && k.groups[tr.In[0]] < 0:
				for _, p := range tr.In {
					if !k.in[p] {
						k.add(p)
					}
				}
			case slices.ContainsFunc(tr.In, func(p int32) bool { return k.in[p] }):
			case len(tr.In) == 0:
				return false
			case len(tr.In) == 1 || tr.OrTask >= 0:
				k.add(tr.In[0])
			default:
				return k.choose(tr, i)
			}
		}
	}
	return true
}

// choose tries the inputs of a producer of member i in turn.
func (k *siphon) choose(tr *Transition, i int) bool {
	inputs := slices.Clone(tr.In)
	slices.SortStableFunc(inputs, func(a, b int32) int { return int(k.dist.to(a)) - int(k.dist.to(b)) })
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

// putsOne reports whether a transition puts at most one token into the set. Tokens for the inputs of one candidate
// count as one.
func (k *siphon) putsOne(tr *Transition) bool {
	one, group := false, int32(-1)
	for _, a := range tr.Out {
		switch j := k.groups[a.Place]; {
		case !k.in[a.Place] || one && j >= 0 && j == group:
		case one:
			return false
		default:
			one, group = true, j
		}
	}
	return true
}

// distance ranks places by how soon they come after a transition. It searches only as far as needed.
type distance struct {
	r       *Net
	round   int32   // the number of the search
	rank    []int32 // by place
	reached []int32 // by place, the round in which rank was set
	passed  []int32 // by transition, likewise
	todo    []int32 // transitions, in the order of the search
	at      int
}

func (a *distance) begin(r *Net, t int32) {
	if a.r == nil {
		a.r = r
		a.rank, a.reached = make([]int32, len(r.Places)), make([]int32, len(r.Places))
		a.passed = make([]int32, len(r.Transitions))
	}
	a.round++
	a.todo, a.at = append(a.todo[:0], t), 0
	a.passed[t] = a.round
}

func (a *distance) to(place int32) int32 {
	for a.reached[place] != a.round {
		if a.at == len(a.todo) {
			return int32(len(a.passed))
		}
		for _, arc := range a.r.Transitions[a.todo[a.at]].Out {
			a.arrive(arc.Place)
		}
		a.at++
	}
	return a.rank[place]
}

func (a *distance) arrive(p int32) {
	if a.reached[p] == a.round {
		return
	}
	a.reached[p], a.rank[p] = a.round, int32(a.at)
	for _, v := range a.r.Places[p].out {
		if a.passed[v] != a.round {
			a.passed[v] = a.round
			a.todo = append(a.todo, v)
		}
	}
}
