package net

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// direct is [rivals] with M and R as what puts tokens into an input of the join.
const direct = `
start i
end o
condition b p q a
task S
task M
task R
task J join=or
i -> S
S -> p, q, a, R
p -> M
q -> M
M -> b
R -> b
b -> J
a -> J
J -> o
cancel R: M`

// rotations are a net with each of its tasks as the first one.
func rotations(net string) (all []*Net) {
	d := notation(net)
	for i := range d.Tasks {
		rotated := *d
		rotated.Tasks = slices.Concat(d.Tasks[i:], d.Tasks[:i])
		all = append(all, MustCompile(&rotated))
	}
	return all
}

func sliceOfJ(t *testing.T, n *Net) slice {
	t.Helper()
	join, ok := n.TaskByName("J")
	require.True(t, ok)
	return newSlice(n, join)
}

func nodeName(n *Net, node int) string {
	if t := node - len(n.conditions); t >= 0 {
		return n.TaskName(TaskID(t))
	}
	return n.ConditionName(ConditionID(node))
}

// The inputs of an and-join of several inputs are sensitive, and the tasks that start from them, if the join and a task whose region
// names it belong to the slice, and else nothing is: a search that told more states apart than it has to would find the same, later.
func TestSensitiveCells(t *testing.T) {
	edit := func(net string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(net) }
	for name, c := range map[string]struct {
		net  string
		want []string
	}{
		"two that cancel each other":  {rivals, []string{"M", "p", "q"}},
		"one behind the other":        {direct, []string{"M", "p", "q"}},
		"the other way round":         {edit(direct, "M -> b\nR -> b", "R -> b\nM -> b"), []string{"M", "p", "q"}},
		"a task that takes an input":  {edit(direct, "task J", "task X\ntask J") + "\nq -> X\nX -> o", []string{"M", "X", "p", "q"}},
		"a member that takes one":     {edit(direct, "task M", "task M join=xor"), nil},
		"a member that takes any":     {edit(direct, "task M", "task M join=or"), nil},
		"a member of one input":       {edit(rivals, "S -> p, q,", "S -> p,", "q -> M\n", "", "condition p q", "condition p"), nil},
		"a region over its own task":  {edit(direct, "cancel R: M", "cancel M: M"), nil},
		"a region over the inputs":    {edit(direct, "cancel R: M", "cancel R: M, p, q"), nil},
		"a region over one input":     {edit(direct, "cancel R: M", "cancel R: M, p"), []string{"M", "p", "q"}},
		"a member that leads away":    {edit(direct, "M -> b", "M -> o"), nil},
		"a region that leads nowhere": {edit(direct, "R -> b", "R -> o"), nil},
		"no region":                   {edit(direct, "\ncancel R: M", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range rotations(c.net) {
				s := sliceOfJ(t, n)
				var names []string
				for node := range s.sensitive {
					names = append(names, nodeName(n, node))
				}
				slices.Sort(names)
				require.Equal(t, c.want, names, "task %s is the first", n.TaskName(0))

				var masked []string
				for cell, bits := range s.mask(len(n.conditions)) {
					switch {
					case bits == 0:
					case cell < len(s.places):
						masked = append(masked, n.ConditionName(s.places[cell]))
					default:
						masked = append(masked, n.TaskName(s.tasks[cell-len(s.places)]))
					}
				}
				slices.Sort(masked)
				require.Equal(t, c.want, masked, "task %s is the first", n.TaskName(0))
			}
		})
	}
}

// An or-split is tried with each choice of its sensitive outputs, up to six of them. No choice is empty, unless it can put tokens
// where they matter to the join no more.
func TestChoicesOfSensitiveOutputs(t *testing.T) {
	choices := func(inputs int, more string) ([][]int32, bool) {
		t.Helper()
		names := make([]string, inputs)
		for i := range names {
			names[i] = fmt.Sprint("p", i)
		}
		list := strings.Join(names, ", ")
		text := "start i\nend o\ncondition a b " + strings.Join(names, " ") + "\ntask S\ntask X split=or\ntask M\ntask R\ntask J join=or\n" +
			"i -> S\nS -> a, R, X\nX -> " + list + more + "\nM -> b\nR -> b\na -> J\nb -> J\nJ -> o\ncancel R: M"
		for _, name := range names {
			text += "\n" + name + " -> M"
		}
		n := MustCompile(notation(text))
		s := sliceOfJ(t, n)
		s.link(n)
		x, _ := n.TaskByName("X")
		return s.choices(n, int32(slices.Index(s.tasks, x)))
	}
	for inputs, want := range map[int]int{2: 3, 6: 63} {
		sets, all := choices(inputs, "")
		require.True(t, all)
		requireDistinct(t, sets, want)
		sets, all = choices(inputs, ", o")
		require.True(t, all)
		requireDistinct(t, sets, want+1)
	}
	sets, all := choices(7, "")
	require.False(t, all)
	require.Len(t, sets, 1)
	require.Len(t, sets[0], 7, "all outputs")

	sets, all = choices(2, ", b")
	require.True(t, all)
	requireDistinct(t, sets, 4)
	for _, set := range sets {
		require.NotEmpty(t, set, "b can only be of use")
	}
}

func requireDistinct(t *testing.T, sets [][]int32, want int) {
	t.Helper()
	seen := map[string]bool{}
	for _, set := range sets {
		seen[fmt.Sprint(slices.Sorted(slices.Values(set)))] = true
	}
	require.Len(t, seen, want)
	require.Len(t, sets, want)
}

// An or-join is looked at again whenever something of its slice changes, also what belongs to it for its sensitive cells alone.
func TestOrJoinIsWatchedOverItsWholeSlice(t *testing.T) {
	with := func(net, tasks, flows string) string {
		return strings.Replace(net, "task J", tasks+"task J", 1) + flows
	}
	nets := map[string]string{
		"none":           direct,
		"takes":          with(direct, "task X\ntask Y\n", "\nS -> X\nq -> X\nX -> o\nS -> Y\nY -> q"),
		"empties":        with(direct, "task X\ntask Y\n", "\nS -> X\nX -> o\ncancel X: q\nS -> Y\nY -> X"),
		"ends":           with(direct, "task X\ntask Z\n", "\nq -> X\nX -> o\nS -> Z\nZ -> o\ncancel Z: X"),
		"ends a member":  with(direct, "task Z\n", "\nS -> Z\nZ -> o\ncancel Z: M"),
		"far from there": with(rivals, "task X\ntask Y\ntask Z\n", "\nq -> X\nX -> o\nS -> Y\nY -> Z\nZ -> o\ncancel Z: X"),
	}
	long := direct + "\nS -> L0\nL39 -> q"
	for i := range 40 {
		long = strings.Replace(long, "task J", fmt.Sprintf("task L%d\ntask J", i), 1)
		if i > 0 {
			long += fmt.Sprintf("\nL%d -> L%d", i-1, i)
		}
	}
	nets["more nodes than a word has bits"] = long
	for name, net := range nets {
		t.Run(name, func(t *testing.T) {
			for _, n := range rotations(net) {
				join, _ := n.TaskByName("J")
				s := sliceOfJ(t, n)
				told := func(conditions, busy Bits, what string) {
					t.Helper()
					require.True(t, watchers(n, conditions, busy).Has(int(join)), "%s, with task %s as the first", what, n.TaskName(0))
					walked := NewBits(n.NumTasks())
					n.walkToWatchers(walked, conditions, busy)
					require.True(t, walked.Has(int(join)), "%s by a walk, with task %s as the first", what, n.TaskName(0))
				}
				for _, c := range s.places {
					told(singleBit(int(c)), nil, n.ConditionName(c))
				}
				for _, x := range s.tasks {
					told(nil, singleBit(int(x)), n.TaskName(x))
				}
			}
		})
	}
}
