package net

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A verdict is what an or-join does at a marking; see marked for its words.
type verdict struct {
	join, marking string
	enabled       bool
}

const (
	starting = true
	waits    = false
)

// requireVerdicts checks decisions, and that no rung of the ladder knows better, whichever task is the first of the definition: tasks
// and conditions share one numbering, in which the first task is at its edge.
func requireVerdicts(t *testing.T, net string, verdicts []verdict) {
	t.Helper()
	d := notation(net)
	for range d.Tasks {
		d.Tasks = append(d.Tasks[1:], d.Tasks[0])
		requireVerdictsOf(t, MustCompile(d), verdicts)
	}
}

func requireVerdictsOf(t *testing.T, n *Net, verdicts []verdict) {
	t.Helper()
	for _, v := range verdicts {
		join, ok := n.TaskByName(v.join)
		require.True(t, ok, v.join)
		m, busy := marked(n, v.marking)
		require.Equal(t, Decision{Enabled: v.enabled}, n.Enabled(join, m, busy), "%s at %s", v.join, v.marking)
		if !partly(n, join, m) {
			continue
		}
		want := map[bool]answer{starting: no, waits: yes}[v.enabled]
		s := ask(n, join, m, busy)
		for rung, got := range append(s.early(n), s.forward(true), s.forward(false), s.backward()) {
			if got != unknown {
				require.Equal(t, want, got, "rung %d of %s at %s", rung, v.join, v.marking)
			}
		}
	}
}

const orSplitJoin = `
start i
end o
task register split=or
task flight
task car
task pay join=or
i -> register
register -> flight, car
flight -> pay
car -> pay
pay -> o`

func TestOrJoinWaitsForTheBranchesThatRun(t *testing.T) {
	requireVerdicts(t, orSplitJoin, []verdict{
		{"pay", "i", waits}, // no input is marked
		{"pay", "flight->pay", starting},
		{"pay", "flight->pay car->pay", starting},
		{"pay", "flight->pay register->car", waits},
		{"pay", "flight->pay car", waits}, // car is busy
		{"pay", "flight->pay register", waits},
		{"pay", "flight->pay register->flight", starting}, // one more token for an input that has one
		{"pay", "flight->pay=2", starting},
	})
	n := MustCompile(notation(orSplitJoin))
	pay, _ := n.TaskByName("pay")
	m, busy := marked(n, "flight->pay car->pay pay")
	require.Equal(t, Decision{}, n.Enabled(pay, m, busy), "a busy task is not enabled")
}

// The or-joins of the corpus that a system of this kind is tested with, and their exact verdicts.
func TestOrJoinCorpus(t *testing.T) {
	t.Run("cancellation region", func(t *testing.T) {
		requireVerdicts(t, `
start i
end o
condition bToB bToDAndE
task A
task B join=xor
task C
task D
task E
task F
task G join=or
i -> A
A -> B, C
B -> bToB, bToDAndE
bToB -> B
bToDAndE -> D, E
C -> G
D -> F
E -> F
F -> G
G -> o
cancel D: bToB`, []verdict{
			{"G", "A->B C->G", waits},
			{"G", "bToB bToDAndE C->G", waits},
			{"G", "bToB C->G E->F", waits},
			{"G", "C->G D->F E->F", waits},
			{"G", "C->G F->G", starting},
			{"G", "C->G D->F", starting}, // D emptied bToB, so nothing comes to E any more
		})
	})
	t.Run("several or-joins 1", func(t *testing.T) {
		requireVerdicts(t, `
start i
end o
task A
task B
task C split=or
task D
task E join=or
task F join=or
i -> A
A -> B, C
B -> F
C -> D, E
D -> E
E -> F
F -> o`, []verdict{
			{"F", "B->F A->C", waits},
			{"E", "B->F C->D C->E", waits},
			{"F", "B->F C->D C->E", waits},
			{"E", "B->F C->E D->E", starting},
			{"F", "E->F A->B", waits},
		})
	})
	t.Run("several or-joins 2", func(t *testing.T) {
		requireVerdicts(t, `
start i
end o
task A
task B split=xor
task C join=or
task D join=or
i -> A
A -> B, C
B -> C, D
C -> D
D -> o`, []verdict{
			{"C", "A->B A->C", waits},
			{"C", "A->C B->D", starting},
			{"D", "A->C B->D", waits},
			{"D", "C->D", starting},
		})
	})
}

// Without the rule that a busy task does not start again, C could run twice at once and fill c3 while D fills c2, and E
// would wait without end.
func TestOrJoinKnowsThatBusyTasksDoNotStart(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition c1 c2 c3
task A
task B
task C
task D
task E join=or
i -> A
A -> c1
c1 -> B
B -> c2
c2 -> C, E
C -> c3
c3 -> D, E
D -> c1, c2
E -> o
cancel C: B, c1, c2`, []verdict{
		{"E", "c2", starting},
		{"E", "c3", starting},
		{"E", "c1 c2", starting},
		{"E", "c2 c3", starting},
		{"E", "c2=2", starting}, // C takes one of them, and then empties c2
	})
}

// A cancellation region does not make an or-join start too early just because what it names is empty.
func TestOrJoinBehindAnEmptyRegion(t *testing.T) {
	const net = `
start i
end o
condition c1 w x j1 j2
task S
task B
task X
task J join=or
task K
i -> S
S -> c1, w, j2
c1 -> B
B -> j1
w -> X
X -> x
x -> K
K -> o
j1 -> J
j2 -> J
J -> o`
	requireVerdicts(t, net, []verdict{{"J", "c1 j2", waits}})
	requireVerdicts(t, net+"\ncancel B: x", []verdict{
		{"J", "c1 j2", waits}, {"J", "c1 j2 x", waits}, {"J", "j2 x", starting},
	})
	requireVerdicts(t, net+"\ncancel B: j2", []verdict{{"J", "c1 j2", starting}}) // B brings j1, but takes j2
	requireVerdicts(t, net+"\ncancel X: c1, B", []verdict{{"J", "c1 j2 w", waits}, {"J", "j2 X", starting}})
}

// The markings that YAWL's own tests ask about, in its net of long loops and a nested or-join.
func TestOrJoinLongLoops(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition cA cB cC
task a join=or
task b join=xor
task c join=xor split=xor
task d
task f join=or
task q join=xor
task w join=xor
i -> q
q -> cC, cA, f, cB
cA -> a
cB -> b
cC -> c
c -> q
a -> d
b -> w
w -> d
d -> f
f -> o`, []verdict{
		{"f", "d->f=2 cC", waits},
		{"f", "d->f cA", starting},
		{"f", "cC", waits},
		{"f", "i d->f", waits},
		{"f", "d->f b->w", starting},
		{"f", "d d->f", starting},
		{"f", "cA cB q->f", waits},
		{"f", "cA cB cC q->f", waits},
	})
}

// What a region does to the idle tasks in it.
func TestOrJoinRegionsOverIdleTasks(t *testing.T) {
	const net = `
start i
end o
condition p1 p2 t0 x y
task S
task U join=GATE
task T
task W
task J join=or
i -> S
S -> p1, p2, t0, J
p1 -> U
p2 -> U
t0 -> T
U -> x
T -> y
x -> W
y -> W
W -> J
J -> o
cancel T: U, x`
	// W needs what U and T deliver, and T cancels U and empties x. U must deliver after T: from tokens that T left.
	requireVerdicts(t, strings.Replace(net, "GATE", "xor", 1), []verdict{
		{"J", "S->J p1 T", starting}, // U is enabled, so T empties p1
		{"J", "S->J p1=2 T", waits},  // unless U starts before, and is what T cancels: the other token stays
		{"J", "S->J p1 U T", waits},  // U is busy, so p1 is not touched, and U can start again
	})
	requireVerdicts(t, strings.Replace(net, "GATE", "and", 1), []verdict{
		{"J", "S->J p1 T", starting},    // U cannot start
		{"J", "S->J p1 p2 T", starting}, // U is enabled, or busy: T ends it either way
		{"J", "S->J p1=2 p2=2 T", waits},
		{"J", "S->J p1 p2 U T", waits}, // U is busy, so p1 and p2 are not touched, and U can start again
	})
}

// A region may take a marked input away, and what follows may put it back: the join waits if both are marked in the
// end.
func TestOrJoinTokensGoAndComeBack(t *testing.T) {
	const net = `
start i
end o
condition a b x y
task S
task R
task L split=xor
task K
task J join=or
i -> S
S -> a, x
x -> R
R -> L
L -> BACK
y -> K
K -> a, b
a -> J
b -> J
J -> o
cancel R: a`
	again := strings.Replace(net, "BACK", "y", 1)
	requireVerdicts(t, again, []verdict{
		{"J", "a x", waits}, {"J", "a R", waits}, {"J", "a R->L", waits}, {"J", "a y", waits}, {"J", "a", starting},
		{"J", "b x", waits}, // from b, too: K brings both
	})
	either := strings.Replace(net, "BACK", "y, b", 1)
	requireVerdicts(t, either, []verdict{{"J", "a x", waits}, {"J", "a R->L", waits}})
	gone := strings.Replace(strings.Replace(net, "BACK", "y", 1), "K -> a, b", "K -> b", 1)
	requireVerdicts(t, gone, []verdict{
		{"J", "a x", starting},   // R takes a away, and b comes alone
		{"J", "a=2 x", starting}, // it takes both
		{"J", "a y", waits},
	})
}

// A token inside a busy task is safe from a region that empties the conditions before and after the task.
func TestOrJoinTokensHideInBusyTasks(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition p x
task S
task T
task R
task W
task J join=or
i -> S
S -> p, R, J
p -> T
T -> x
x -> W
R -> W
W -> J
J -> o
cancel R: p, x`, []verdict{
		{"J", "S->J p R", waits}, // T starts, R completes, T completes
		{"J", "S->J x R", starting},
		{"J", "S->J T R", waits},
	})
}

// A task with several ways to start may be needed for one while another one is open.
func TestOrJoinTasksCanStartInAnyOrder(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition a b c
task S
task T join=xor split=xor
task J join=or
i -> S
S -> a, b
a -> T, J
b -> T
T -> c, a
c -> J
J -> o
cancel T: a`, []verdict{
		{"J", "a b", waits}, // T takes a and makes c, then takes b and makes a
		{"J", "a", starting},
		{"J", "a=2", starting},
	})
}

// A task that stands in its own region has ended by then: it loses nothing.
func TestOrJoinRegionsOverTheirOwner(t *testing.T) {
	requireVerdicts(t, `
start i
end o
condition p c d
task S
task T split=xor
task A
task J join=or
i -> S
S -> p, J
p -> T
T -> c, d
c -> A
d -> A
A -> J
J -> o
cancel T: T`, []verdict{{"J", "S->J p=2", waits}, {"J", "S->J p", starting}, {"J", "S->J p T", waits}})
}
