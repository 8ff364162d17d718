package scenario_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

// everything has each statement and each attribute of the notation once.
const everything = `
workflow review
  start begin                      # the start condition, exactly one
  end done                         # the end condition, exactly one
  condition c1 c2                  # explicit conditions
  task A                           # split=and join=and items=1 are the defaults
  task B split=xor join=or items=3 policy=quorum:2
  task C auto
  task D retry=4:1s
  task E timeout=5s
  dummy G join=or split=xor
  composite S of other cases=2
  composite X of w1,w2
  flow begin -> A
  flow A -> B, c1
  flow B -> done
  cancel C: B, c1, A->B
`

// parse reads a text that has no error.
func parse(t testing.TB, text string) []*scenario.Workflow {
	t.Helper()
	workflows, err := scenario.ParseNotation(net.Pos{File: "test.net"}, text)
	require.NoError(t, err)
	return workflows
}

// at is a line of the text that parse reads.
func at(line int) net.Pos { return net.Pos{File: "test.net", Line: line} }

func TestParseNotationFillsTheDefinition(t *testing.T) {
	workflows := parse(t, everything)
	require.Len(t, workflows, 1)
	require.Empty(t, workflows[0].Missing)
	require.Equal(t, &net.Definition{
		Name: "review",
		Pos:  at(2),
		Conditions: []net.Condition{
			{Name: "begin", Role: net.Start, Pos: at(3)},
			{Name: "done", Role: net.End, Pos: at(4)},
			{Name: "c1", Pos: at(5)},
			{Name: "c2", Pos: at(5)},
		},
		Tasks: []net.Task{
			{Name: "A", Pos: at(6)},
			{Name: "B", Split: net.Xor, Join: net.Or, Pos: at(7)},
			{Name: "C", Cancels: []string{"B", "c1", "A->B"}, Pos: at(8)},
			{Name: "D", Pos: at(9)},
			{Name: "E", Pos: at(10)},
			{Name: "G", Kind: net.Routing, Join: net.Or, Split: net.Xor, Pos: at(11)},
			{Name: "S", Kind: net.Composite, Of: []string{"other"}, Pos: at(12)},
			{Name: "X", Kind: net.Composite, Of: []string{"w1", "w2"}, Pos: at(13)},
		},
		Flows: []net.Flow{
			{From: "begin", To: "A", Pos: at(14)},
			{From: "A", To: "B", Pos: at(15)},
			{From: "A", To: "c1", Pos: at(15)},
			{From: "B", To: "done", Pos: at(16)},
		},
	}, workflows[0].Def)
}

func TestParseNotationFillsTheOptions(t *testing.T) {
	plain := scenario.DefaultOptions()
	with := func(change func(*scenario.TaskOptions)) scenario.TaskOptions {
		o := scenario.DefaultOptions()
		change(&o)
		return o
	}
	require.Equal(t, []scenario.TaskOptions{
		plain,
		with(func(o *scenario.TaskOptions) {
			o.Items, o.Policy = 3, scenario.Policy{Kind: scenario.PolicyQuorum, K: 2}
		}),
		with(func(o *scenario.TaskOptions) { o.Auto = true }),
		with(func(o *scenario.TaskOptions) { o.Retry = &scenario.RetrySpec{Attempts: 4, Initial: time.Second} }),
		with(func(o *scenario.TaskOptions) { o.Timeout = 5 * time.Second }),
		plain,
		with(func(o *scenario.TaskOptions) { o.Cases = 2 }),
		plain,
	}, parse(t, everything)[0].Tasks)
}

// Lines that say the same: spaces, commas and the order of attributes carry no meaning.
func TestParseNotationIsFreeInItsForm(t *testing.T) {
	tests := map[string]struct{ line, canonical string }{
		"indentation":         {"\t   task A", "task A"},
		"comment, no space":   {"task A#one", "task A"},
		"carriage return":     {"task A auto\r", "task A auto"},
		"order":               {"task A auto items=2 join=xor split=or", "task A split=or join=xor items=2 auto"},
		"defaults":            {"task A split=and join=and items=1 policy=default", "task A"},
		"no items":            {"task A items=0", "task A items=0"},
		"leading zero":        {"task A items=007", "task A items=7"},
		"policy continue":     {"task A policy=continue", "task A policy=continue"},
		"days":                {"task A timeout=2d", "task A timeout=48h"},
		"no time at all":      {"task A retry=2:0d", "task A retry=2:0s"},
		"days and more":       {"task A timeout=1d90m", "task A timeout=25h30m"},
		"no wait":             {"task A retry=1:0s", "task A retry=1:0s"},
		"tight flow":          {"flow A->B,c", "flow A -> B, c"},
		"loose flow":          {"flow A  ->  B ,  c", "flow A -> B, c"},
		"name ends in hyphen": {"flow A-->B", "flow A- -> B"},
		"name has a hyphen":   {"flow a-b->c-d", "flow a-b -> c-d"},
		"same flow twice":     {"flow A -> B, B", "flow A -> B, B"},
		"names of keywords":   {"flow flow -> end, task", "flow flow -> end, task"},
		"tight region":        {"task A\ncancel A:b,c->d", "task A\n  cancel A: b, c->d"},
		"loose region":        {"task A\ncancel A : b , c -> d", "task A\n  cancel A: b, c->d"},
		"region in two lines": {"cancel A: b\ntask A\ncancel A: c, b", "task A\n  cancel A: b, c, b"},
		"region first":        {"cancel A: b\ntask A", "task A\n  cancel A: b"},
		"workflow named of":   {"composite of of of, x", "composite of of of,x"},
		"of comes last":       {"composite A cases=3 join=or of w", "composite A of w join=or cases=3"},
		"attribute after of":  {"composite A of v , w split=xor", "composite A of v,w split=xor"},
		"composite policy":    {"composite A of w policy=quorum:1", "composite A of w policy=quorum:1"},
		"conditions":          {"condition a, b c", "condition a\n  condition b\n  condition c"},
		"a stray region":      {"cancel A: b, c", "cancel A: b, c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "workflow w\n  "+test.canonical+"\n", scenario.Format(parse(t, "workflow w\n"+test.line)))
		})
	}
}

func TestParseNotationReadsSeveralWorkflows(t *testing.T) {
	workflows := parse(t, "workflow a\ntask t\ncancel t: c\n\n# the next one\nworkflow b\ntask t\nworkflow a")
	require.Len(t, workflows, 3, "a name that comes twice is for the check of the definitions")
	require.Equal(t, []string{"c"}, workflows[0].Def.Tasks[0].Cancels)
	require.Empty(t, workflows[1].Def.Tasks[0].Cancels, "a region stays in its workflow")
	require.Equal(t, at(6), workflows[1].Def.Pos)
	require.Empty(t, workflows[2].Def.Tasks)
}

// A definition has no place for the region of something that is not a task, and the author must still hear of it.
func TestProblemsNameTheOwnerOfAStrayRegion(t *testing.T) {
	w := parse(t, "workflow w\nstart s\ntask A\ncancel A: s\ncancel s: A\ncancel Z: A, s")[0]
	problems := w.Problems()
	require.Len(t, problems, 2)
	require.Equal(t, net.UnknownName, problems[0].Code)
	require.Equal(t, "s", problems[0].Subject)
	require.Equal(t, at(5), problems[0].Pos)
	require.Equal(t, at(1), problems[0].Other)
	require.Equal(t, `test.net:6: unknown-name: a cancel line names "Z", which is no task of workflow "w" (test.net:1)`,
		problems[1].String())
	require.Empty(t, parse(t, everything)[0].Problems())
}

func TestParseNotationCountsLinesOfTheWholeFile(t *testing.T) {
	_, err := scenario.ParseNotation(net.Pos{File: "dir/a.txt", Line: 40}, "workflow w\n\ntask A B")
	var bad *scenario.SyntaxError
	require.True(t, errors.As(err, &bad))
	require.Equal(t, 42, bad.Line)
	require.Equal(t, "dir/a.txt", bad.File)
	require.True(t, strings.HasPrefix(err.Error(), "a.txt:42: "), err)
	require.Equal(t, scenario.CodeSyntax, bad.Code())
}
