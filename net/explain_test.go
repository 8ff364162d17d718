package net

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestExplain(t *testing.T) {
	n := MustCompile(notation(orSplitJoin + `
task both
pay -> both
car -> both
both -> o
task either join=xor
pay -> either
car -> either
either -> o`))
	tests := []struct{ task, marking, want string }{
		{"register", "", `and-join "register" waits for a token in i`},
		{"register", "i", `and-join "register" can start: there is a token in i`},
		{"register", "i register", `task "register" is busy and cannot start again before it has completed`},
		{"both", "car->both", `and-join "both" waits for a token in pay->both`},
		{"either", "", `xor-join "either" waits for a token in any of pay->either, car->either`},
		{"either", "car->either", `xor-join "either" can start: there is a token in car->either`},
		{"pay", "", `or-join "pay" waits for a token in any of flight->pay, car->pay`},
		{"pay", "car->pay flight->pay", `or-join "pay" can start: there is a token in flight->pay, car->pay`},
		{"pay", "car->pay", `or-join "pay" can start: there is a token in car->pay, ` +
			`and none can come to flight->pay any more`},
		{"pay", "flight->pay car", `or-join "pay" waits: there is a token in flight->pay, but one can still come` +
			"\n\tto car->pay: from car when car completes"},
		{"pay", "flight->pay i", `or-join "pay" waits: there is a token in flight->pay, but one can still come` +
			"\n\tto car->pay: from i when register, then car complete"},
	}
	for _, tt := range tests {
		task, _ := n.TaskByName(tt.task)
		m, busy := marked(n, tt.marking)
		require.Equal(t, tt.want, n.Explain(task, m, busy).String(), "%s at %s", tt.task, tt.marking)
	}
}

// A run names every source that it needs, and nothing that it can do without.
func TestExplainBehindAnAndJoin(t *testing.T) {
	n := MustCompile(notation(`
start i
end o
condition c d
task S
task L join=xor split=xor
task K
task A
task J join=or
i -> S
S -> J, L, c
L -> L, d
c -> K
d -> A
K -> A
A -> J
J -> o`))
	join, _ := n.TaskByName("J")
	m, busy := marked(n, "S->J L c")
	e := n.Explain(join, m, busy)
	require.Equal(t, []string{"S->J"}, e.Marked)
	require.Equal(t, []string{"A->J"}, e.Empty)
	require.Len(t, e.Waits, 1)
	require.Equal(t, "A->J", e.Waits[0].Input)
	require.ElementsMatch(t, []string{"L", "c"}, e.Waits[0].From)
	require.ElementsMatch(t, []string{"L", "K", "A"}, e.Waits[0].Path)
	require.Equal(t, "A", e.Waits[0].Path[2])
}

func TestExplainUndecided(t *testing.T) {
	n, join, m := undecided()
	e := n.Explain(join, m, nil)
	require.True(t, e.Undecided)
	require.Equal(t, `or-join "J" waits: there is a token in S->J, but whether one can still come to W->J is not decided`,
		e.String())
}

// Every explanation of a wait is a run that the plain rules of the net allow, and it ends with a token where it says.
func TestExplainedRunsReplay(t *testing.T) {
	waits, steps := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawnNet(t, rapid.Bool().Draw(t, "regions"))
		for u := range n.NumTasks() {
			join := TaskID(u)
			if n.Task(join).Join != Or || len(n.Inputs(join)) < 2 {
				continue
			}
			m, busy := drawnState(t, n, join)
			e := n.Explain(join, m, busy)
			d := n.Enabled(join, m, busy)
			require.Equal(t, d.Enabled, e.Enabled)
			require.Equal(t, !d.Enabled, len(e.Waits) > 0 || e.Undecided)
			for _, w := range e.Waits {
				require.NotEmpty(t, w.From)
				require.True(t, replays(n, join, m, busy, w), "%v at %s", w, describe(n, m, busy))
				waits, steps = waits+1, steps+len(w.Path)
			}
		}
	})
	t.Logf("%d runs, %d steps", waits, steps)
}

// replays plays the completions of a run in their order, with any starts between them.
func replays(n *Net, join TaskID, m Marking, busy Bits, w Wait) bool {
	type place struct {
		v  snapshot
		at int
	}
	o := oracle{n: n, join: join}
	input, _ := n.ConditionByName(w.Input)
	first := snapshot{tokens: slices.Clone(m), busy: make([]bool, n.NumTasks())}
	for t := range first.busy {
		first.busy[t] = busy.Has(t)
	}
	seen := map[string]bool{}
	for stack := []place{{v: first}}; len(stack) > 0; {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if key := p.v.key() + string(rune(p.at)); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if p.at == len(w.Path) {
			if o.reached(m, p.v) && p.v.tokens[input] > 0 {
				return true
			}
			continue
		}
		next, _ := n.TaskByName(w.Path[p.at])
		if p.v.busy[next] {
			for _, v := range o.ends(p.v, next) {
				stack = append(stack, place{v, p.at + 1})
			}
		}
		for u := range n.NumTasks() {
			if !p.v.busy[u] && TaskID(u) != join {
				for _, v := range o.starts(p.v, TaskID(u)) {
					stack = append(stack, place{v, p.at})
				}
			}
		}
	}
	return false
}
