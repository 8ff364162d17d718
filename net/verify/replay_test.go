package verify_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// replayPetri plays a witness on a plain net by the definition of firing alone, and checks that it shows what it
// claims.
func replayPetri(t *testing.T, p *net.Petri, f verify.Finding) {
	t.Helper()
	byName := map[string]*net.PetriTransition{}
	for i := range p.Transitions {
		byName[p.Transitions[i].Name] = &p.Transitions[i]
	}
	m := p.Initial()
	for i, s := range f.Witness.Steps {
		require.True(t, firePetri(m, byName[s.Task]), "%s: step %d, %s, is not enabled", f, i, s)
	}
	isSink := map[int]bool{}
	for _, s := range p.Sinks() {
		isSink[s] = true
	}
	inner, most := 0, 0
	for i, c := range m {
		if most = max(most, c); !isSink[i] {
			inner += c
		}
	}
	switch f.Code {
	case verify.ImproperCompletion:
		require.Len(t, isSink, 1)
		require.True(t, inner > 0 || most > 1, "nothing is left over")
	case verify.Unsafe:
		require.Greater(t, most, 1)
	case verify.NoOptionToComplete:
		require.False(t, canComplete(p, m), "%s: %s: the run can be completed after all: %+v", f, f.Witness, p)
	case verify.Unbounded:
		at := slices.IndexFunc(p.Places, func(p net.PetriPlace) bool { return p.Name == f.Subject })
		require.Greater(t, m[at], 1)
		for range min(3, 3*f.Witness.Repeats) {
			before := m[at]
			for _, s := range f.Witness.Steps[len(f.Witness.Steps)-f.Witness.Repeats:] {
				require.True(t, firePetri(m, byName[s.Task]))
			}
			require.Greater(t, m[at], before)
		}
	}
}

// firePetri fires a transition, if it is enabled.
func firePetri(m []int, t *net.PetriTransition) bool {
	for _, a := range t.In {
		if m[a.Place] < a.Weight {
			return false
		}
	}
	for _, a := range t.In {
		m[a.Place] -= a.Weight
	}
	for _, p := range t.Resets {
		m[p] = 0
	}
	for _, a := range t.Out {
		m[a.Place] += a.Weight
	}
	return true
}

// canComplete searches for a final marking, naively and not far: a token in the only sink, or none but in sinks.
func canComplete(p *net.Petri, from []int) bool {
	sinks := p.Sinks()
	isSink := map[int]bool{}
	for _, s := range sinks {
		isSink[s] = true
	}
	seen := map[string]bool{}
	todo := [][]int{from}
	for len(todo) > 0 && len(seen) < 3000 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := make([]byte, len(m))
		left := 0
		for i, c := range m {
			if key[i] = byte(c); isSink[i] {
				key[i] = 0
			} else {
				left += c
			}
		}
		if len(sinks) == 1 && m[sinks[0]] > 0 || len(sinks) != 1 && left == 0 {
			return true
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		for i := range p.Transitions {
			next := append([]int(nil), m...)
			if firePetri(next, &p.Transitions[i]) {
				todo = append(todo, next)
			}
		}
	}
	return false
}

// replayNet plays a witness with the interpreter, and checks that it shows what it claims.
func replayNet(t *testing.T, n *net.Net, f verify.Finding) {
	t.Helper()
	if f.Witness == nil {
		require.Contains(t, []net.Code{verify.DeadTask, verify.Unbounded}, f.Code, "%s has no witness: %s", f, describe(n))
		return
	}
	r := replay(t, n, f.Witness)
	in, s := r.in, r.state
	over, proper := in.over(s)
	switch f.Code {
	case verify.ImproperCompletion:
		require.True(t, over && !proper, "%s: %s ends properly", f, f.Witness)
	case verify.NoOptionToComplete:
		require.False(t, over)
		require.False(t, reachesEnd(in, s), "%s: %s: the case can complete after all", f, f.Witness)
	case verify.Unbounded:
		c, _ := n.ConditionByName(f.Subject)
		require.Greater(t, s.tokens[c], int32(1))
		for range min(3, 3*f.Witness.Repeats) {
			before := r.state.tokens[c]
			for _, step := range f.Witness.Steps[len(f.Witness.Steps)-f.Witness.Repeats:] {
				r.play(step)
			}
			require.Greater(t, r.state.tokens[c], before, "%s does not grow: %s", f, f.Witness)
		}
	}
}

// replayed is a case that a witness was played in, step by step.
type replayed struct {
	t     *testing.T
	in    interpreter
	w     *verify.Witness
	state caseState
}

// replay plays a witness, and checks that it comes to where it says.
func replay(t *testing.T, n *net.Net, w *verify.Witness) *replayed {
	t.Helper()
	r := &replayed{t: t, in: interpreter{n}, w: w}
	r.state = r.in.first()
	for _, step := range w.Steps {
		r.play(step)
	}
	requireState(t, n, r.state, w)
	return r
}

func (r *replayed) play(step verify.Step) {
	r.t.Helper()
	n := r.in.n
	task, ok := n.TaskByName(step.Task)
	require.True(r.t, ok)
	if step.Moment != verify.Completes {
		require.Contains(r.t, r.in.enabled(r.state), task, "step %s of %s is not enabled: %s", step, r.w, describe(n))
		if step.Input != "" {
			taken := n.Consumes(nil, task, r.state.tokens)
			require.Equal(r.t, step.Input, n.ConditionName(taken[0]))
		}
		r.state = r.in.do(r.state, event{task: task, start: true})
	}
	if step.Moment != verify.Starts {
		require.True(r.t, r.state.busy.Has(int(task)), "step %s of %s completes what is not started", step, r.w)
		into := n.Outputs(task)
		if len(step.Outputs) > 0 {
			into = nil
			for _, name := range step.Outputs {
				c, ok := n.Target(task, name)
				require.True(r.t, ok, "%s is no target of %s", name, step.Task)
				into = append(into, c)
			}
		}
		r.state = r.in.do(r.state, event{task: task, into: into})
	}
}

// requireState compares the state that a witness claims with the one that was reached.
func requireState(t *testing.T, n *net.Net, s caseState, w *verify.Witness) {
	t.Helper()
	var marked []verify.Tokens
	for c, tokens := range s.tokens {
		if tokens > 0 {
			marked = append(marked, verify.Tokens{Condition: n.ConditionName(net.ConditionID(c)), Count: int(tokens)})
		}
	}
	require.Equal(t, marked, w.Marking)
	var busy []string
	s.busy.Each(func(t int) { busy = append(busy, n.TaskName(net.TaskID(t))) })
	require.Equal(t, busy, w.Busy)
}

// reachesEnd searches for the end, not far.
func reachesEnd(in interpreter, from caseState) bool {
	seen := map[string]bool{}
	for todo := []caseState{from}; len(todo) > 0 && len(seen) < 2000; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if over, _ := in.over(s); over {
			return true
		}
		if seen[s.key()] {
			continue
		}
		seen[s.key()] = true
		for _, e := range in.events(s) {
			todo = append(todo, in.do(s, e))
		}
	}
	return false
}
