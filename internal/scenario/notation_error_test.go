package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

// Each line has one error, with this text.
func TestSyntaxErrorsSayWhatWasExpected(t *testing.T) {
	tests := []struct{ line, text string }{
		// statements
		{`tsak A`, `unknown statement "tsak"; did you mean "task"?`},
		{`Task A`, `unknown statement "Task"; did you mean "task"?`},
		{`conditions c`, `unknown statement "conditions"; did you mean "condition"?`},
		{`foo A`, `unknown statement "foo"; ` +
			`expected workflow, start, end, condition, task, dummy, composite, flow or cancel`},
		{`-> A`, `unknown statement "->"; ` +
			`expected workflow, start, end, condition, task, dummy, composite, flow or cancel`},
		// names
		{`task`, `the line ends too soon; expected the name of the task`},
		{`task # A`, `the line ends too soon; expected the name of the task`},
		{`task 1A`, `"1A" is not a name; expected the name of the task: a letter or _, then letters, digits, _ and -`},
		{`dummy é`, `"é" is not a name; expected the name of the dummy: a letter or _, then letters, digits, _ and -`},
		{`start a b`, `unexpected "b"; expected the end of the line`},
		{`end`, `the line ends too soon; expected the name of the end condition`},
		{`condition`, `the line ends too soon; expected the name of a condition`},
		{`condition a,`, `the line ends too soon; expected the name of a condition`},
		{`workflow v w`, `unexpected "w"; expected the end of the line`},
		{`workflow ,`, `unexpected ","; expected the name of the workflow`},
		// flows and regions
		{`flow A B`, `unexpected "B"; expected "->" after the source of a flow`},
		{`flow A`, `the line ends too soon; expected "->" after the source of a flow`},
		{`flow A => B`, `unexpected "=>"; expected "->" after the source of a flow`},
		{`flow A ->`, `the line ends too soon; expected the task or condition that the flow goes to`},
		{`flow A -> B,`, `the line ends too soon; expected the task or condition that the flow goes to`},
		{`flow A -> , B`, `unexpected ","; expected the task or condition that the flow goes to`},
		{`flow A -> B -> C`, `unexpected "->"; expected the end of the line`},
		{`flow A -> B C`, `unexpected "C"; expected the end of the line`},
		{`cancel A`, `the line ends too soon; expected ":" after the task that cancels`},
		{`cancel A B`, `unexpected "B"; expected ":" after the task that cancels`},
		{`cancel A:`, `the line ends too soon; expected a task or condition of the region`},
		{`cancel A: B ->`, `the line ends too soon; expected a task or condition of the region`},
		{`cancel A: B C`, `unexpected "C"; expected the end of the line`},
		// attributes
		{`task A, B`, `unexpected ","; a task line has one name, then attributes with spaces between them`},
		{`task A itmes=3`, `unknown attribute "itmes" of a task; did you mean "items"?`},
		{`task A B`, `unknown attribute "B" of a task; ` +
			`expected split=RULE, join=RULE, items=N, policy=P, retry=N:WAIT, timeout=T or auto`},
		{`dummy A items=3`, `a dummy has no attribute "items"; expected split=RULE or join=RULE`},
		{`task A of w`, `a task has no attribute "of"; ` +
			`expected split=RULE, join=RULE, items=N, policy=P, retry=N:WAIT, timeout=T or auto`},
		{`composite A of w auto`, `a composite has no attribute "auto"; ` +
			`expected of W1,W2, split=RULE, join=RULE, cases=N or policy=P`},
		{`task A auto auto`, `task "A" says "auto" twice; expected it once`},
		{`task A items=1 items=1`, `task "A" says "items" twice; expected it once`},
		{`composite A of v of w`, `composite "A" says "of" twice; expected it once`},
		{`task A items`, `"items" is not how items is written; expected items=N`},
		{`task A auto=1`, `"auto=1" is not how auto is written; expected auto`},
		{`task A items=`, `"items=" has a bad value; expected a whole number from 0 to 100000`},
		{`task A items=-1`, `"items=-1" has a bad value; expected a whole number from 0 to 100000`},
		{`task A items=+1`, `"items=+1" has a bad value; expected a whole number from 0 to 100000`},
		{`task A items=1.5`, `"items=1.5" has a bad value; expected a whole number from 0 to 100000`},
		{`task A items=99999999999999999999`,
			`"items=99999999999999999999" has a bad value; expected a whole number from 0 to 100000`},
		{`task A items=100001`, `"items=100001" has a bad value; expected a whole number from 0 to 100000`},
		{`composite A of b cases=100001`, `"cases=100001" has a bad value; expected a whole number from 1 to 100000: ` +
			`no command starts a case in a composite later, so one without cases never completes`},
		{`composite A of b cases=0`, `"cases=0" has a bad value; expected a whole number from 1 to 100000: ` +
			`no command starts a case in a composite later, so one without cases never completes`},
		{`task A split=nand`, `"split=nand" has a bad value; expected and, xor or or`},
		{`task A join=XOR`, `"join=XOR" has a bad value; expected and, xor or or`},
		{`task A policy=quorum`, `"policy=quorum" has a bad value; expected default, continue, incident or quorum:K with K at least 1`},
		{`task A policy=quorum:0`,
			`"policy=quorum:0" has a bad value; expected default, continue, incident or quorum:K with K at least 1`},
		{`task A retry=4`, `"retry=4" has a bad value; expected the attempts in all and the first wait, like 4:1s`},
		{`task A retry=0:1s`, `"retry=0:1s" has a bad value; expected the attempts in all and the first wait, like 4:1s`},
		{`task A timeout=5`, `"timeout=5" has a bad value; expected a duration above zero, like 5s, 1h30m or 2d`},
		{`task A timeout=-5s`, `"timeout=-5s" has a bad value; expected a duration above zero, like 5s, 1h30m or 2d`},
		{`task A timeout=0s`, `"timeout=0s" has a bad value; expected a duration above zero, like 5s, 1h30m or 2d`},
		{`composite A`, `composite "A" runs no workflow; expected "of" and the name of one, or several with commas`},
		{`composite A of`, `the line ends too soon; expected the name of a workflow that the composite runs`},
		{`composite A of=w`, `"of=w" is not how of is written; expected of W1,W2`},
		{`composite A of v, w cases=2`,
			`composite "A" has several workflows and starts one case of each; cases=N goes with one workflow`},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			_, err := scenario.ParseNotation(net.Pos{}, "workflow w\n"+test.line)
			var all scenario.SyntaxErrors
			require.True(t, errors.As(err, &all))
			require.Len(t, all, 1)
			require.Equal(t, test.text, all[0].Text)
			require.Equal(t, 2, all[0].Line)
		})
	}
}

func TestParseNotationReportsEveryError(t *testing.T) {
	_, err := scenario.ParseNotation(net.Pos{File: "bad.net"}, `
task early
task later          # the missing workflow is said once
workflow w
  start begin
  taks A
  task B items=x split=no spilt=or
  flow A > B
`)
	require.EqualError(t, err, strings.TrimSpace(`
bad.net:2: "task" stands before any workflow; expected "workflow NAME" first
bad.net:6: unknown statement "taks"; did you mean "task"?
bad.net:7: "items=x" has a bad value; expected a whole number from 0 to 100000
bad.net:7: "split=no" has a bad value; expected and, xor or or
bad.net:7: unknown attribute "spilt" of a task; did you mean "split"?
bad.net:8: unexpected ">"; expected "->" after the source of a flow`))
	var one *scenario.SyntaxError
	require.True(t, errors.As(err, &one), "the errors can be had one by one")
	require.Equal(t, 2, one.Line)
}

func TestParseNotationWantsAWorkflow(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n"} {
		_, err := scenario.ParseNotation(net.Pos{File: "a.net"}, text)
		require.EqualError(t, err, `a.net:1: there is no workflow here; expected "workflow NAME"`)
	}
	_, err := scenario.ParseNotation(net.Pos{File: "a.net"}, "workflwo w\ntask A\nflow A -> B")
	require.EqualError(t, err, `a.net:1: unknown statement "workflwo"; did you mean "workflow"?`)
}

// A picture or a log that is read by mistake has millions of errors; a thousand are enough.
func TestParseNotationStopsCollectingErrors(t *testing.T) {
	for name, text := range map[string]string{
		"on many lines": "workflow w\n" + strings.Repeat("x\n", 5000),
		"on one line":   "workflow w\ntask A " + strings.Repeat("x ", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.ParseNotation(net.Pos{}, text)
			var all scenario.SyntaxErrors
			require.True(t, errors.As(err, &all))
			require.Len(t, all, 1001)
			require.Equal(t, "more than 1000 errors; the rest was not read", all[1000].Text)
		})
	}
}

func TestSyntaxErrorsShowOnlyTheBeginningOfALongWord(t *testing.T) {
	_, err := scenario.ParseNotation(net.Pos{}, "workflow "+strings.Repeat("9", 1_000_000))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 200)
}

// Texts of some megabytes in the shapes that a reader of quadratic time would choke on: it would take minutes.
func TestParseNotationTakesHugeTexts(t *testing.T) {
	const n = 100_000
	shapes := map[string]string{
		"one name":        "workflow " + strings.Repeat("a", 10*n),
		"one line":        "workflow w\ncondition " + strings.Repeat("c ", n),
		"many lines":      "workflow w\n" + strings.Repeat("task a\ncancel a: b\n", n),
		"many workflows":  strings.Repeat("workflow w\n", n),
		"one region":      "workflow w\ncancel z: a" + strings.Repeat(",a->b", n),
		"one flow":        "workflow w\nflow a -> b" + strings.Repeat(", b", n),
		"hyphens":         "workflow w\nflow a" + strings.Repeat("-", 10*n) + "-> b",
		"arrows":          "workflow w\nflow a " + strings.Repeat("->", n),
		"assignments":     "workflow w\ntask a " + strings.Repeat("=", 10*n),
		"spaces":          "workflow w\ntask a" + strings.Repeat(" ", 10*n) + "auto",
		"comments":        "workflow w\n" + strings.Repeat("#\n", n) + strings.Repeat("#", n),
		"days":            "workflow w\ntask a timeout=" + strings.Repeat("1d", n),
		"list of":         "workflow w\ncomposite a of b" + strings.Repeat(",b", n),
		"no end of lines": strings.Repeat("\n", 10*n) + "workflow w",
	}
	for name, text := range shapes {
		t.Run(name, func(t *testing.T) {
			if workflows, err := scenario.ParseNotation(net.Pos{}, text); err == nil {
				require.NotEmpty(t, scenario.Format(workflows))
			}
		})
	}
}
