package verify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// verified is one net with what is to be found in it.
type verified struct {
	name     string
	net      string
	verdict  verify.Verdict
	findings []string
	warnings []string
	witness  string // of the first finding that has one
}

// classics are the cases of every textbook, in the shape that people write them.
var classics = []verified{
	{name: "sequence", verdict: verify.Sound, net: `
		start s
		end e
		task A
		task B
		flow s -> A
		flow A -> B
		flow B -> e`},
	{name: "and-split, and-join", verdict: verify.Sound, net: `
		start s
		end e
		task A
		task B
		task C
		task D
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`},
	{
		name: "and-split, xor-join", verdict: verify.Unsound,
		findings: []string{"improper-completion"},
		warnings: []string{"and-split-xor-join D", "xor-join-twice D"},
		witness:  "A; B; D; then e 1, A->C 1", net: `
		start s
		end e
		task A
		task B
		task C
		task D join=xor
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`,
	},
	{
		name: "xor-split, and-join", verdict: verify.Unsound,
		findings: []string{"dead-task D", "no-option-to-complete"},
		warnings: []string{"xor-split-and-join D"},
		witness:  "A to B; B; then B->D 1", net: `
		start s
		end e
		task A split=xor
		task B
		task C
		task D
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`,
	},
	{
		name: "loop without exit", verdict: verify.Unsound, findings: []string{"dead-task D", "no-option-to-complete"},
		warnings: []string{"xor-split-and-join D"}, witness: "A to B; then A->B 1", net: `
		start s
		end e
		condition p y
		task A split=xor
		task B join=xor
		task C
		task D
		task F
		flow s -> A
		flow A -> B y
		flow B -> p
		flow p -> C D
		flow C -> B
		flow y -> D F
		flow D -> e
		flow F -> e`,
	},
	{
		name: "dead task", verdict: verify.Unsound, findings: []string{"dead-task C", "no-option-to-complete"},
		warnings: []string{"xor-split-and-join C"}, witness: "A to c; then c 1", net: `
		start s
		end e
		condition c d
		task A split=xor
		task B
		task C
		flow s -> A
		flow A -> c d B
		flow c -> C
		flow d -> C
		flow B -> e
		flow C -> e`,
	},
	{
		name: "unbounded", verdict: verify.Unsound, findings: []string{"improper-completion", "unbounded A->B"},
		witness: "A; B; then e 1, loop 1", net: `
		start s
		end e
		condition loop
		task A join=xor
		task B
		flow s -> A
		flow loop -> A
		flow A -> loop B
		flow B -> e`,
	},
	{name: "loop", verdict: verify.Sound, net: `
		start s
		end e
		task A join=xor
		task B split=xor
		flow s -> A
		flow A -> B
		flow B -> A e`},
	{name: "critical section", verdict: verify.Sound, net: `
		start s
		end e
		condition a b x y free
		task Fork
		task A
		task B
		task Join
		flow s -> Fork
		flow Fork -> a b free
		flow a -> A
		flow free -> A
		flow A -> x free
		flow b -> B
		flow free -> B
		flow B -> y free
		flow x -> Join
		flow y -> Join
		flow free -> Join
		flow Join -> e`},
	{name: "deferred choice", verdict: verify.Sound, net: `
		start s
		end e
		condition c
		task A
		task B
		task C
		flow s -> A
		flow A -> c
		flow c -> B C
		flow B -> e
		flow C -> e`},
	{name: "a routing task passes on two tokens", verdict: verify.Sound, warnings: []string{"xor-join-twice J"}, net: `
		start s
		end e
		condition both
		task A
		task B
		task B2
		task C
		dummy J join=xor
		task Take
		task Last
		condition one two
		flow s -> A
		flow A -> B B2 one
		flow B -> J
		flow B2 -> J
		flow J -> C
		flow C -> both
		flow both -> Take Last
		flow one -> Take
		flow Take -> two
		flow two -> Last
		flow Last -> e`},
	{name: "two tokens one after the other", verdict: verify.Sound, warnings: []string{"xor-join-twice C"}, net: `
		start s
		end e
		condition both
		task A
		task B
		task B2
		task C join=xor
		task Take
		task Last
		condition one two
		flow s -> A
		flow A -> B B2 one
		flow B -> C
		flow B2 -> C
		flow C -> both
		flow both -> Take Last
		flow one -> Take
		flow Take -> two
		flow two -> Last
		flow Last -> e`},
}

// engineCases are about what sets these nets apart: or-joins, regions, busy tasks, routing tasks.
var engineCases = []verified{
	{name: "or-split, or-join", verdict: verify.Sound, net: `
		start s
		end e
		task A split=or
		task B
		task C
		task D join=or
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`},
	{name: "or-join that is an and-join", verdict: verify.Sound, warnings: []string{"or-join-is-and D"}, net: `
		start s
		end e
		task A
		task B
		task C
		task D join=or
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`},
	{name: "or-join that is an xor-join", verdict: verify.Sound, warnings: []string{"or-join-is-xor D"}, net: `
		start s
		end e
		task A split=xor
		task B
		task C
		task D join=or
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e`},
	{
		name: "or-joins that wait for each other", verdict: verify.Unsound,
		findings: []string{"no-option-to-complete"}, warnings: []string{"or-join-circle C"},
		witness: "L; A to B, D; B to C; then A->D 1, B->C 1", net: `
		start s
		end e
		task L join=xor
		task A split=or
		task B split=or
		task B2
		task C join=or
		task D join=or
		task Z split=xor
		flow s -> L
		flow L -> A
		flow A -> B D
		flow B -> B2 C
		flow B2 -> C
		flow C -> D
		flow D -> Z
		flow Z -> L e`,
	},
	{name: "the first branch cancels the other", verdict: verify.Sound, net: `
		start s
		end e
		task A
		task B
		task C
		task First join=xor
		flow s -> A
		flow A -> B C
		flow B -> First
		flow C -> First
		flow First -> e
		cancel First: B C A->B A->C B->First C->First`},
	{
		name: "a region that misses a busy task", verdict: verify.Unsound,
		findings: []string{"improper-completion"}, warnings: []string{"and-split-xor-join First"},
		witness: "A; start B; C; First; then e 1, B busy", net: `
		start s
		end e
		task A
		task B
		task C
		task First join=xor
		flow s -> A
		flow A -> B C
		flow B -> First
		flow C -> First
		flow First -> e
		cancel First: A->B A->C B->First C->First`,
	},
	{
		name: "a region that lets a join wait", verdict: verify.Unsound, findings: []string{"no-option-to-complete"},
		witness: "A; C; B; then B->D 1", net: `
		start s
		end e
		task A
		task B
		task C
		task D
		flow s -> A
		flow A -> B C
		flow B -> D
		flow C -> D
		flow D -> e
		cancel B: C->D`,
	},
	{
		name: "weakly sound", verdict: verify.WeaklySound, findings: []string{"dead-task Late"},
		warnings: []string{"xor-split-and-join Late"}, net: `
		start s
		end e
		condition c d
		task A split=xor
		task P
		task Q
		task B
		task F
		task Late
		flow s -> A
		flow A -> P Q
		flow P -> B c
		flow B -> e
		flow Q -> d
		flow d -> F Late
		flow c -> Late
		flow F -> e
		flow Late -> e
		cancel B: c`,
	},
	{name: "a member that is never there", verdict: verify.Sound, warnings: []string{"region-useless A"}, net: `
		start s
		end e
		task A
		task B
		flow s -> A
		flow A -> B
		flow B -> e
		cancel B: A`},
	{
		name: "a routing task goes first", verdict: verify.Unsound, findings: []string{"dead-task B"}, net: `
		start s
		end e
		condition c
		task A
		task B
		dummy R
		flow s -> A
		flow A -> c
		flow c -> B R
		flow B -> e
		flow R -> e`,
	},
	{
		name: "a busy task waits for itself", verdict: verify.Sound, warnings: []string{"xor-join-twice C"}, net: `
		start s
		end e
		task A
		task B
		task B2
		task C join=xor
		condition x y
		task D
		task E
		flow s -> A
		flow A -> B B2 y
		flow B -> C
		flow B2 -> C
		flow C -> x
		flow x -> D E
		flow y -> D
		flow D -> E
		flow E -> e`,
	},
}

func TestVerifyClassics(t *testing.T) {
	for _, c := range classics {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func TestVerifyWhatIsParticularHere(t *testing.T) {
	for _, c := range engineCases {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func (c verified) check(t *testing.T) {
	n := define(t, c.net)
	rep := verify.Net(n, verify.Options{})
	require.Equal(t, c.verdict, rep.Verdict, "%v", codesOf(rep))
	require.Equal(t, c.findings, codesOf(rep))
	var warnings []string
	for _, w := range rep.Warnings {
		warnings = append(warnings, w.String())
	}
	require.Equal(t, c.warnings, warnings)
	witness := ""
	for _, f := range rep.Findings {
		replayNet(t, n, f)
		require.NotEmpty(t, f.Text)
		require.NotEmpty(t, f.Fix)
		require.NotEmpty(t, f.Elements)
		if f.Witness != nil && witness == "" {
			witness = f.Witness.String()
		}
	}
	require.Equal(t, c.witness, witness)
	want := oracle(n)
	if !want.growing {
		require.Equal(t, want.findings, codesOf(rep))
	}
}

func TestWarningsCanBeSilenced(t *testing.T) {
	n := define(t, classics[2].net)
	rep := verify.Net(n, verify.Options{Silence: []net.Code{verify.XorJoinTwice}})
	require.Len(t, rep.Warnings, 1)
	require.Equal(t, verify.AndSplitXorJoin, rep.Warnings[0].Code)
}

func TestFindingsNameSourceLines(t *testing.T) {
	rep := verify.Net(define(t, classics[3].net), verify.Options{})
	stuck := rep.Findings[1]
	require.Equal(t, `a case can get stuck with "B->D"; "D" waits for "C->D"`, stuck.Text)
	require.Equal(t, []verify.Element{
		{Name: "D", Pos: net.Pos{File: "test.net", Line: 7}},
		{Name: "B->D", Pos: net.Pos{File: "test.net", Line: 10}},
	}, stuck.Elements)
}

func TestBudgetsEndInUnknown(t *testing.T) {
	n := define(t, classics[len(classics)-1].net) // has to be searched: it is not safe
	rep := verify.Net(n, verify.Options{States: 5})
	require.Equal(t, verify.Unknown, rep.Verdict)
	require.Equal(t, verify.LimitStates, rep.Exhausted)
	require.Empty(t, rep.Findings)

	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	rep = verify.Net(define(t, wideNet()), verify.Options{Time: time.Second, Now: clock})
	require.Equal(t, verify.Unknown, rep.Verdict)
	require.Equal(t, verify.LimitTime, rep.Exhausted)
}

// wideNet runs twelve tasks side by side, and has an xor-join that shares an input: the rules do not apply to that, so
// thousands of states must be looked at.
func wideNet() string {
	text := "start s\nend e\ncondition c d x\ntask A\ntask P\ntask T join=xor\ntask U\ntask Z\n" +
		"flow s -> A\nflow A -> P\nflow P -> c\nflow c -> T U\nflow U -> d\nflow d -> T\nflow T -> x\nflow x -> Z\n"
	for i := range 12 {
		text += fmt.Sprintf("task B%d\nflow A -> B%d\nflow B%d -> Z\n", i, i, i)
	}
	return text + "flow Z -> e\n"
}
