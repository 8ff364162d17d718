package net

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const growingLoop = `
start i
end o
condition c r s
task S
task L join=xor split=or
task K
task R
task J join=or
i -> S
S -> L, J, s
L -> L, c
c -> K
r -> K
K -> J
s -> R
R -> r
J -> o`

// A loop can add tokens without bound, and a search that only counts would never end.
func TestOrJoinBesideAGrowingLoop(t *testing.T) {
	requireVerdicts(t, growingLoop, []verdict{
		{"J", "S->L S->J", starting}, // any number of tokens in c, but never one in r
		{"J", "S->L S->J r", waits},
		{"J", "S->L S->J s", waits},
		{"J", "c=300 S->J", starting},
		{"J", "c=300 S->J r", waits},
	})
	// What a loop empties does not grow: c and d never hold a token together, and none is left in K.
	requireVerdicts(t, `
start i
end o
condition c d
task S
task L join=xor
task K
task A
task J join=or
i -> S
S -> L, J
L -> L, c
c -> K, A
K -> d
d -> A
A -> J
J -> o
cancel L: c, d, K`, []verdict{{"J", "S->J L->L", starting}, {"J", "S->J L->L c=2", waits}})
}

// A loop of three moves that begins with the one that empties what the other two fill: each round ends with two tokens in p
// and one in r, but the next one does not add to them. F needs a third token after C and D, and never gets it.
func TestALoopThatEmptiesWhatItFillsDoesNotGrow(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition l m n p r c d
task S
task A join=xor
task B1
task B2
task C
task D
task F
task J join=or
i -> S
S -> J, l
l -> A
A -> m
m -> B1
B1 -> n, p
n -> B2
B2 -> l, p, r
p -> C, D, F
r -> C
C -> c
c -> D
D -> d
d -> F
F -> J
J -> o
cancel A: p, r, c, d, C, D, F`, []verdict{{"J", "S->J l", starting}, {"J", "S->J l p=3 r", waits}})
}

// exclusive has an and-join A for two tokens of which there is only ever one.
const exclusive = `
start i
end o
condition c d e z
task S
task X split=xor
task A
task B join=xor
task J join=or
i -> S
S -> J, z
z -> X
X -> c, d, e
c -> A
d -> A
A -> J
e -> B
B -> z
J -> o`

// Each rung of the ladder knows the answers to some questions, and leaves the others to the next.
func TestOrJoinRungs(t *testing.T) {
	const look, project, plan, forward = 0, 1, 2, 3
	tests := []struct {
		net, marking string
		first        int // the first rung that knows the answer; so do all behind it
		want         answer
	}{
		{orSplitJoin, "flight->pay car", look, yes},
		{orSplitJoin, "flight->pay", look, no},
		{exclusive, "S->J c", project, no},    // d cannot be marked
		{exclusive, "S->J z", forward, no},    // c can, and d can, but not both
		{exclusive, "S->J z c", plan, yes},    // X to d, then A
		{exclusive, "S->J z=2", forward, yes}, // X twice, which no plan says
	}
	for _, tt := range tests {
		n := MustCompile(notation(tt.net))
		join := TaskID(slices.IndexFunc(n.Definition().Tasks, func(t Task) bool { return t.Join == Or }))
		m, busy := marked(n, tt.marking)
		s := ask(n, join, m, busy)
		for rung, got := range append(s.early(n), s.forward(true), s.backward()) {
			want := unknown
			if rung >= tt.first && !(rung == project && tt.want == yes) && !(rung == plan && tt.want == no) {
				want = tt.want
			}
			require.Equal(t, want, got, "rung %d at %s", rung, tt.marking)
		}
	}
}

// A plan makes tasks with regions run when they do least harm: K before q is marked, which it empties, and L after W,
// which it cancels, has completed. It does without M, which empties what J has.
func TestOrJoinPlansAroundRegions(t *testing.T) {
	n := MustCompile(notation(`
start i
end o
condition j q x y
task S split=or
task K
task Q
task L
task W
task A
task M
task X
task J join=or
i -> S
S -> K, Q, L, W, j, x
x -> M, X
M -> y
X -> y
K -> A
Q -> q
q -> A
L -> A
W -> A
y -> A
j -> J
A -> J
J -> o
cancel K: q
cancel L: W
cancel M: j`))
	join, _ := n.TaskByName("J")
	for marking, want := range map[string]answer{
		"j S->K S->Q S->L W x":    yes,
		"j S->K S->Q S->L S->W x": yes,     // W starts and completes: two moves, as L can cancel it in between
		"j S->K q S->L W x":       unknown, // not so: K empties q for good
	} {
		m, busy := marked(n, marking)
		require.Equal(t, []answer{unknown, unknown, want}, ask(n, join, m, busy).early(n), marking)
		require.Equal(t, Decision{Enabled: want == unknown}, n.Enabled(join, m, busy))
	}
}

// early asks the rungs before the searches: look, project and plan.
func (s *search) early(n *Net) []answer {
	answers := []answer{s.look(n), s.project(n), unknown}
	if answers[1] == unknown {
		answers[2] = s.plan()
	}
	return answers
}

// ask is a search that has taken in a question, before its first rung.
func ask(n *Net, join TaskID, m Marking, busy Bits) *search {
	s := &search{}
	s.load(n.orJoin(join), m, busy)
	s.begin(m)
	return s
}

// Beside a loop that adds tokens, the forward search ends because it can say "any number".
func TestOrJoinCountsManyTokens(t *testing.T) {
	n := MustCompile(notation(exclusive + `
condition many
task L join=xor
task K
S -> L
L -> L, many
many -> K
A -> K
K -> J`))
	join, _ := n.TaskByName("J")
	m, busy := marked(n, "S->J S->L z")
	s := ask(n, join, m, busy)
	require.Equal(t, []answer{unknown, unknown}, []answer{s.look(n), s.project(n)})
	require.Equal(t, no, s.forward(true))
	require.Equal(t, unknown, s.forward(false))
	require.Equal(t, no, s.backward())
}

// A search that runs out of its budget makes the join wait, and says so.
func TestOrJoinUndecided(t *testing.T) {
	n, join, m := undecided()
	require.Equal(t, Decision{Undecided: true}, n.Enabled(join, m, nil))
}

// undecided is a question that no budget covers.
func undecided() (*Net, TaskID, Marking) {
	n := MustCompile(hard(40))
	join, _ := n.TaskByName("J")
	m, _ := marked(n, "S->J z")
	for c := range m {
		if strings.HasPrefix(n.ConditionName(ConditionID(c)), "a") {
			m[c] = 1
		}
	}
	return n, join, m
}

// hard is a net with many choices before a joint step that can never be taken, for it needs both p and q. Every task of
// the choices empties something that another one fills.
func hard(width int) *Definition {
	d := notation(`
start i
end o
condition z p q
task S
task X split=xor
task W
task J join=or
i -> S
S -> J, z
z -> X
X -> p, q
p -> W
q -> W
W -> J
J -> o`)
	for i := range width {
		name := func(s string) string { return s + strings.Repeat("x", i+1) }
		next := "a" + strings.Repeat("x", (i+1)%width+1)
		for _, c := range []string{"a", "b"} {
			d.Conditions = append(d.Conditions, Condition{Name: name(c)})
		}
		d.Tasks = append(d.Tasks, Task{Name: name("T"), Cancels: []string{next}, Split: Xor, Join: Xor})
		d.Flows = append(d.Flows, Flow{From: "S", To: name("a")}, Flow{From: name("a"), To: name("T")},
			Flow{From: name("b"), To: name("T")}, Flow{From: name("T"), To: name("b")},
			Flow{From: name("T"), To: next}, Flow{From: name("b"), To: "W"})
	}
	return d
}

func TestOrJoinIsWatchedOnlyOverItsSlice(t *testing.T) {
	n := MustCompile(notation(`
start i
end o
condition c
task A split=or
task B
task C
task J join=or
task Z
i -> A
A -> B, C, c
B -> J
C -> J
c -> Z
J -> Z
Z -> o`))
	var watched, busyWatched []string
	for c := range n.NumConditions() {
		if !watchers(n, singleBit(c), nil).Empty() {
			watched = append(watched, n.ConditionName(ConditionID(c)))
		}
	}
	for u := range n.NumTasks() {
		if !watchers(n, nil, singleBit(u)).Empty() {
			busyWatched = append(busyWatched, n.TaskName(TaskID(u)))
		}
	}
	require.Equal(t, []string{"i", "A->B", "A->C", "B->J", "C->J"}, watched)
	require.Equal(t, []string{"A", "B", "C", "J"}, busyWatched)
}

// A net may be asked by many goroutines at once.
func TestOrJoinConcurrently(t *testing.T) {
	n := MustCompile(notation(orSplitJoin))
	pay, _ := n.TaskByName("pay")
	var wg sync.WaitGroup
	for _, marking := range slices.Repeat([]string{"flight->pay", "flight->pay car"}, 8) {
		m, busy := marked(n, marking)
		wg.Go(func() {
			for range 200 {
				if n.Enabled(pay, m, busy).Enabled != busy.Empty() {
					t.Errorf("wrong at %s", marking)
				}
			}
		})
	}
	wg.Wait()
}
