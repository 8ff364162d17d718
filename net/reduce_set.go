package net

import "slices"

// tokenSet is the attempt to find a set K that proves an or-join free to fire, see [reducer.removeOrJoins]. It begins with
// the join's inputs and takes in what their producers take from, and so on backwards. Where a producer has several inputs
// any of them may serve; the one that is nearest behind the join is tried first, for that is the way round a loop.
type tokenSet struct {
	r     *reducer
	join  int32
	in    []bool  // by place
	list  []int32 // the members, in the order in which they came
	ahead []int32 // by place, distance from the join; made when first needed
	steps int     // what the search may still spend
}

// maxSetSteps bounds the search for one set. Giving up costs only speed.
const maxSetSteps = 100_000

func (r *reducer) holdsOneToken(j int32) bool {
	k := &tokenSet{r: r, join: j, in: make([]bool, len(r.places)), steps: maxSetSteps}
	for _, p := range r.trans[j].in {
		k.add(p)
	}
	if !k.close(0) {
		return false
	}
	marked := 0
	for _, p := range k.list {
		if r.places[p].marked {
			marked++
		}
	}
	return marked <= 1
}

func (k *tokenSet) add(p int32) {
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
			if k.steps--; k.steps < 0 || k.puts(u) > 1 {
				return false
			}
			tr := &k.r.trans[u]
			switch {
			case u != k.join && tr.orTask >= 0:
				for _, p := range tr.in {
					if !k.in[p] {
						k.add(p)
					}
				}
			case slices.ContainsFunc(tr.in, func(p int32) bool { return k.in[p] }):
			case len(tr.in) == 1:
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
	k.measure()
	inputs := slices.Clone(tr.in)
	slices.SortStableFunc(inputs, func(a, b int32) int { return int(k.ahead[a]) - int(k.ahead[b]) })
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

// puts counts the tokens that a transition puts into the set; those into the inputs of the join count as one.
func (k *tokenSet) puts(u int32) int {
	n, joined := 0, false
	for _, a := range k.r.trans[u].out {
		switch {
		case !k.in[a.place]:
		case slices.Contains(k.r.trans[k.join].in, a.place):
			joined = true
		default:
			n++
		}
	}
	if joined {
		n++
	}
	return n
}

// measure finds the distance of every place from the join, forwards.
func (k *tokenSet) measure() {
	if k.ahead != nil {
		return
	}
	k.ahead = make([]int32, len(k.r.places))
	for p := range k.ahead {
		k.ahead[p] = int32(len(k.ahead))
	}
	reached := make([]bool, len(k.r.trans))
	todo := []int32{k.join}
	reached[k.join] = true
	for at := 0; at < len(todo); at++ {
		for _, a := range k.r.trans[todo[at]].out {
			if int(k.ahead[a.place]) < len(k.ahead) {
				continue
			}
			k.ahead[a.place] = int32(at)
			for _, v := range k.r.places[a.place].out {
				if !reached[v] {
					reached[v] = true
					todo = append(todo, v)
				}
			}
		}
	}
}
