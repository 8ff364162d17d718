package net

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lines are what a scenario file shows of problems: a code and a subject a line.
func lines(problems []Problem) []string {
	var list []string
	for _, p := range problems {
		list = append(list, string(p.Code)+" "+p.Subject)
	}
	return list
}

func TestCheck(t *testing.T) {
	const ends = "start i\nend o\n"
	tests := []struct {
		name string
		net  string
		want []string
	}{
		{"well-formed", ends + "task A\ni -> A\nA -> o", nil},
		{"empty", "workflow w", []string{"no-end w", "no-start w"}},
		{"a second start and end", ends + "start i2\nend o2\ntask A\ni -> A\ni2 -> A\nA -> o\nA -> o2",
			[]string{"duplicate-end o2", "duplicate-start i2"}},
		{"two elements of one name", ends + "task A\ncondition A\ni -> A\nA -> o",
			[]string{"condition-to-condition A->o", "condition-to-condition i->A", "duplicate-name A"}},
		{"an implicit condition beside another", ends + "task A\ntask B\ncondition c\ni -> A\nA -> B, c\nc -> B\nB -> o", nil},
		{"an unknown name in a flow, twice", ends + "task A\ni -> A\nA -> o\nA -> ghost\nghost -> A",
			[]string{"unknown-name ghost"}},
		{"what lies behind an unknown name is unknown", ends + "task A\ntask B\ni -> A\nA -> ghost\nghost -> B\nB -> o",
			[]string{"unknown-name ghost"}},
		{"a misspelt target leaves the right one without a flow", ends + "task A\ntask B\ni -> A\nA -> b\nB -> o",
			[]string{"no-flow-in B", "unknown-name b", "unreachable B", "unreachable o"}},
		{"an unknown name in a region", ends + "task A\ni -> A\nA -> o\ncancel A: ghost, i, A",
			[]string{"unknown-name ghost"}},
		{"an implicit condition in a region", ends + "task A\ntask B\ni -> A\nA -> B\nB -> o\ncancel B: A>B, B>A",
			[]string{"unknown-name B->A"}},
		{"condition to condition", ends + "condition c\ntask A\ni -> c\nc -> A\nA -> o",
			[]string{"condition-to-condition i->c"}},
		{"a flow into the start", ends + "task A\ni -> A\nA -> o, i", []string{"flow-into-start A->i"}},
		{"a flow out of the end", ends + "task A\ni -> A\nA -> o\no -> A", []string{"flow-out-of-end o->A"}},
		{"each rule is read by itself", ends + "task A\ni -> A\nA -> o\no -> i",
			[]string{"condition-to-condition o->i", "flow-into-start o->i", "flow-out-of-end o->i"}},
		{"a task without any flow", ends + "task A\ntask B\ni -> A\nA -> o",
			[]string{"no-flow-in B", "no-flow-out B", "no-path-to-end B", "unreachable B"}},
		{"a condition without any flow", ends + "task A\ncondition c\ni -> A\nA -> o",
			[]string{"no-flow-in c", "no-flow-out c", "no-path-to-end c", "unreachable c"}},
		{"a start and an end without any flow", ends,
			[]string{"no-flow-in o", "no-flow-out i", "no-path-to-end i", "unreachable o"}},
		{"a branch that ends nowhere", ends + "task A\ntask B\ni -> A\nA -> o, B",
			[]string{"no-flow-out B", "no-path-to-end B"}},
		{"a cycle beside the way", ends + "task A\ntask B\ntask C\ni -> A\nA -> o\nB -> C\nC -> B",
			[]string{"no-path-to-end B", "no-path-to-end C", "unreachable B", "unreachable C"}},
		{"without a start nothing is unreachable", "end o\ntask A\nA -> o", []string{"no-flow-in A", "no-start w"}},
		{"with two ends a path to either will do", ends + "end o2\ntask A\ntask B\ni -> A, B\nA -> A\nB -> o2",
			[]string{"duplicate-end o2", "no-flow-in o", "no-path-to-end A", "unreachable o"}},
		{"with two starts a path from either will do", ends + "start i2\ntask A\ntask B\ntask C\ni -> A\ni2 -> B\nA -> o\nB -> o\n" +
			"C -> C, o",
			[]string{"duplicate-start i2", "unreachable C"}},
		{"one flow twice", ends + "task A\ntask B\ni -> A\nA -> B\nA -> B\nB -> o", nil},
		{"a cycle of routing tasks",
			ends + "task A\ndummy R split=xor\ndummy Q join=xor\ncondition c\ni -> A\nA -> Q\nQ -> c\nc -> R\nR -> Q, o",
			[]string{"routing-cycle R"}},
		{"a routing task that repeats itself", ends + "dummy R join=xor split=xor\ni -> R\nR -> R, o",
			[]string{"routing-cycle R"}},
		{"a cycle with work in it", ends + "task A join=xor\ndummy R split=xor\ni -> A\nA -> R\nR -> A, o", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := notation(tt.net)
			require.Equal(t, tt.want, lines(d.Check()))
			_, err := Compile(d)
			require.Equal(t, refused(d.Check()), err != nil)
		})
	}
}

// refused reports whether Compile makes no net of a definition with such problems. A routing cycle is no reason: what
// runs cases refuses it, but the net can be verified and drawn.
func refused(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Code != RoutingCycle })
}

// A name with an arrow in it may clash with the name of an implicit condition, which the flows make.
func TestCheckImplicitNames(t *testing.T) {
	d := notation("start i\nend o\ntask A\ntask B\ni -> A\nA -> B\nB -> o")
	d.Conditions = append(d.Conditions, Condition{Name: "A->B"})
	d.Flows = append(d.Flows, Flow{From: "A", To: "A->B"}, Flow{From: "A->B", To: "B"})
	require.Equal(t, []string{"duplicate-name A->B"}, lines(d.Check()))

	d = notation("start i\nend o\ntask A\ntask C\ni -> A\nA -> C\nC -> o")
	d.Tasks = append(d.Tasks, Task{Name: "A->B"}, Task{Name: "B->C"})
	d.Flows = append(d.Flows, Flow{From: "A", To: "B->C"}, Flow{From: "A->B", To: "C"},
		Flow{From: "A", To: "A->B"}, Flow{From: "B->C", To: "C"})
	require.Equal(t, []string{"duplicate-name A->B->C"}, lines(d.Check()))
}

// A problem names both parties and where each was declared.
func TestCheckSaysWhere(t *testing.T) {
	d := notation("start i\nend o\ntask pack\ntask pack\ntask ship\ni -> pack\npack -> o\nship -> i\nship -> shop")
	var text []string
	for _, p := range d.Check() {
		text = append(text, p.String())
	}
	require.Equal(t, []string{
		`w.net:4: duplicate-name: task "pack" has the name of task "pack": rename one of them (w.net:3)`,
		`w.net:8: flow-into-start: task "ship" flows into start condition "i", which holds the first token only (w.net:1)`,
		`w.net:5: no-flow-in: task "ship" has no flow in`,
		`w.net:9: unknown-name: flow "ship" -> "shop" leads to "shop", which workflow "w" does not declare; did you mean "ship"?`,
		`w.net:5: unreachable: no path leads from start condition "i" to task "ship" (w.net:1)`,
	}, text)

	_, err := Compile(d)
	var all *Error
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Problems, 5)
	require.True(t, strings.HasPrefix(err.Error(), "workflow w is not well-formed:\n\tw.net:4: duplicate-name: "))
	require.Panics(t, func() { MustCompile(d) })
}

func TestCheckNamesTheRoutingCycle(t *testing.T) {
	d := notation("start i\nend o\ndummy R split=xor\ndummy Q join=xor\ntask A\ni -> A\nA -> Q\nQ -> R\nR -> Q, o")
	problems := d.Check()
	require.Len(t, problems, 1)
	require.Equal(t, `w.net:3: routing-cycle: the cycle "R" -> "Q" -> "R" holds routing tasks only `+
		`and could run without end: put a task with work items in it (w.net:4)`, problems[0].String())
}

func TestCheckAll(t *testing.T) {
	workflow := func(name, tasks string) *Definition { return notation("workflow " + name + "\n" + tasks) }
	require.Empty(t, CheckAll(nil))
	require.Empty(t, CheckAll([]*Definition{
		workflow("a", "composite S of=b,c"), workflow("b", "composite T of=c"), workflow("c", "task U"),
	}))
	got := CheckAll([]*Definition{
		workflow("a", "composite S of=b\ncomposite X of=nowhere,d"), workflow("b", "composite S of=a"),
		workflow("c", "composite C of=c"), workflow("d", "composite D of=c"), workflow("d", ""),
	})
	require.Equal(t, []string{
		"duplicate-name d", "recursive-composite C", "recursive-composite S", "recursive-composite S", "unknown-name nowhere",
	}, lines(got))
	require.Equal(t, `w.net:2: recursive-composite: composite task "S" of workflow "a" runs "b", which runs "a" again, `+
		`and so without end (w.net:1)`, got[2].String())
}

// Whatever the definition: no panic, sorted problems, each once, and a net if and only if there is none.
func TestCheckAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawnDefinition(t)
		problems := d.Check()
		for i := range problems {
			require.NotEmpty(t, problems[i].Text)
			if i > 0 {
				require.Negative(t, byCodeAndSubject(problems[i-1], problems[i]))
			}
		}
		n, err := Compile(d)
		require.Equal(t, refused(problems), err != nil)
		var all *Error
		require.Equal(t, refused(problems), errors.As(err, &all))
		if n != nil {
			require.Len(t, n.InitialMarking(), n.NumConditions())
		}
		CheckAll([]*Definition{d, {Name: d.Name}, {Name: "a"}})
	})
}

// drawnDefinition is any definition over few names, so that clashes, self flows and unknown names are common.
func drawnDefinition(t *rapid.T) *Definition {
	name := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "a->b", "b->c", "a->b->c"})
	names := rapid.SliceOfN(name, 0, 3)
	return &Definition{
		Name: name.Draw(t, "workflow"),
		Conditions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Condition {
			return Condition{Name: name.Draw(t, "condition"), Role: Role(rapid.IntRange(0, 3).Draw(t, "role"))}
		}), 0, 5).Draw(t, "conditions"),
		Tasks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Task {
			return Task{
				Name: name.Draw(t, "task"), Kind: Kind(rapid.IntRange(0, 3).Draw(t, "kind")),
				Join: Rule(rapid.IntRange(0, 3).Draw(t, "join")), Split: Rule(rapid.IntRange(0, 3).Draw(t, "split")),
				Cancels: names.Draw(t, "cancels"), Of: names.Draw(t, "of"),
			}
		}), 0, 5).Draw(t, "tasks"),
		Flows: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Flow {
			return Flow{From: name.Draw(t, "from"), To: name.Draw(t, "to")}
		}), 0, 10).Draw(t, "flows"),
	}
}
