package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
)

// action reads one command line, as a file would hold it.
func action(t testing.TB, line string) (scenario.Action, error) {
	t.Helper()
	f := parseFile(t, line+"\n----\nok\n")
	require.Len(t, f.Commands, 1)
	return f.Commands[0].Action()
}

func TestActions(t *testing.T) {
	second := scenario.ItemRef{Task: "B", Generation: 1, N: 2}
	bare := scenario.ItemRef{Task: "B", Bare: true}
	tests := map[string]scenario.Action{
		"define":                     {Verb: scenario.VerbDefine},
		"check w":                    {Verb: scenario.VerbCheck, Workflow: "w"},
		"check w -v":                 {Verb: scenario.VerbCheck, Workflow: "w", Verbose: true},
		"check -v w":                 {Verb: scenario.VerbCheck, Workflow: "w", Verbose: true},
		"start w":                    {Verb: scenario.VerbStart, Workflow: "w", Name: "case"},
		"start w as my-case":         {Verb: scenario.VerbStart, Workflow: "w", Name: "my-case"},
		"start as as as":             {Verb: scenario.VerbStart, Workflow: "as", Name: "as"},
		"item start B":               {Verb: scenario.VerbItemStart, Item: bare},
		"item complete B.1.2":        {Verb: scenario.VerbItemComplete, Item: second},
		"item complete B to=C,d":     {Verb: scenario.VerbItemComplete, Item: bare, To: []string{"C", "d"}},
		"item complete to=C B":       {Verb: scenario.VerbItemComplete, Item: bare, To: []string{"C"}},
		"item fail B":                {Verb: scenario.VerbItemFail, Item: bare},
		"item cancel B to=":          {Verb: scenario.VerbItemCancel, Item: bare, To: []string{}},
		"item reset B to=C,,?":       {Verb: scenario.VerbItemReset, Item: bare, To: []string{"C", "", "?"}},
		"item new B":                 {Verb: scenario.VerbItemNew, Task: "B"},
		"do B.1.2 to=C":              {Verb: scenario.VerbDo, Item: second, To: []string{"C"}},
		"do B.0.99":                  {Verb: scenario.VerbDo, Item: scenario.ItemRef{Task: "B", N: 99}},
		"case cancel":                {Verb: scenario.VerbCaseCancel},
		"case resume":                {Verb: scenario.VerbCaseResume},
		"item retry B":               {Verb: scenario.VerbItemRetry, Item: bare},
		"item skip B to=C":           {Verb: scenario.VerbItemSkip, Item: bare, To: []string{"C"}},
		"advance 1h30m":              {Verb: scenario.VerbAdvance, Duration: 90 * time.Minute},
		"advance 2d":                 {Verb: scenario.VerbAdvance, Duration: 48 * time.Hour},
		"advance 0s":                 {Verb: scenario.VerbAdvance},
		"crash":                      {Verb: scenario.VerbCrash},
		"show case":                  {Verb: scenario.VerbShow, Subject: scenario.SubjectCase},
		"show tasks":                 {Verb: scenario.VerbShow, Subject: scenario.SubjectTasks},
		"show marking":               {Verb: scenario.VerbShow, Subject: scenario.SubjectMarking},
		"show items":                 {Verb: scenario.VerbShow, Subject: scenario.SubjectItems},
		"show cases":                 {Verb: scenario.VerbShow, Subject: scenario.SubjectCases},
		"show jobs":                  {Verb: scenario.VerbShow, Subject: scenario.SubjectJobs},
		"  show \t enabled  ":        {Verb: scenario.VerbShow, Subject: scenario.SubjectEnabled},
		"crash\n# why, and\n\t# how": {Verb: scenario.VerbCrash},
	}
	for line, want := range tests {
		t.Run(line, func(t *testing.T) {
			got, err := action(t, line)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, want.To == nil, got.To == nil, "no to= is not an empty one")
		})
	}
}

func TestAnyCommandTakesACase(t *testing.T) {
	want := scenario.CasePath{Root: "main", Steps: []scenario.ItemRef{
		{Task: "S", Generation: 1, N: 2}, {Task: "T", Generation: 1, N: 1},
	}}
	for _, line := range []string{
		"define", "check w", "start w", "item start B", "item new B", "do B", "case cancel", "advance 1s", "crash",
		"show case",
	} {
		a, err := action(t, line+" case=main/S.1.2/T.1.1")
		require.NoError(t, err, line)
		require.Equal(t, want, a.Case, line)
		require.Equal(t, "main/S.1.2/T.1.1", a.Case.String())
	}
	a, err := action(t, "crash")
	require.NoError(t, err)
	require.True(t, a.Case.IsZero())
	require.Empty(t, a.Case.String())
}

func TestActionsRefuse(t *testing.T) {
	const commands = "expected define, check, start, item, do, case, advance, crash or show"
	const subjects = "expected show case|tasks|marking|items|cases|jobs|enabled|incidents"
	tests := map[string]string{
		"shwo case":             `unknown command "shwo"; did you mean "show"?`,
		"stop":                  `unknown command "stop"; ` + commands,
		"case=case":             `the command is missing; ` + commands,
		"define w":              `"define w" is not how it is written; expected define, and a net below it`,
		"check":                 `"check" is not how it is written; expected check WORKFLOW [-v]`,
		"check -v":              `"check -v" is not how it is written; expected check WORKFLOW [-v]`,
		"check w -v -v":         `"check w -v -v" is not how it is written; expected check WORKFLOW [-v]`,
		"start":                 `"start" is not how it is written; expected start WORKFLOW [as NAME]`,
		"start w as":            `"start w as" is not how it is written; expected start WORKFLOW [as NAME]`,
		"start w as 1":          `"start w as 1" is not how it is written; expected start WORKFLOW [as NAME]`,
		"start w called x":      `"start w called x" is not how it is written; expected start WORKFLOW [as NAME]`,
		"case":                  `"case" is not how it is written; expected case cancel|suspend|resume, or case move|force FROM TO`,
		"case cancel now":       `"case cancel now" is not how it is written; expected case cancel|suspend|resume, or case move|force FROM TO`,
		"advance":               `"advance" is not how it is written; expected advance DURATION`,
		"advance 5":             `"5" is not a duration; expected one like 5s, 1h30m or 2d`,
		"advance -5s":           `"-5s" is not a duration; expected one like 5s, 1h30m or 2d`,
		"crash now":             `"crash now" is not how it is written; expected crash`,
		"crash # now":           `"crash # now" is not how it is written; expected crash`,
		"do":                    `"do" is not how it is written; expected do ITEM [to=T1,T2]`,
		"do A B":                `"do A B" is not how it is written; expected do ITEM [to=T1,T2]`,
		"do A.1":                `"A.1" is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A.":                 `"A." is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A..":                `"A.." is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A.1.x":              `"A.1.x" is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A.1.1.1":            `"A.1.1.1" is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A.01.1":             `"A.01.1" is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A.-1.1":             `"A.-1.1" is not a work item; expected TASK or TASK.GENERATION.N`,
		"do A to=B to=C":        `to= is given twice; expected it once`,
		"do A too=B":            `do takes no argument "too="; expected to= or case=`,
		"crash to=A":            `crash takes no argument "to="; expected case=`,
		"item new A to=B":       `item new takes no argument "to="; expected case=`,
		"crash case=":           `"" is not the path of a case; expected one like case/S.1.2`,
		"crash case=/S.1.1":     `"/S.1.1" is not the path of a case; expected one like case/S.1.2`,
		"crash case=case/":      `"" is not a child case; expected TASK.GENERATION.N`,
		"crash case=case/S":     `"S" is not a child case; expected TASK.GENERATION.N`,
		"crash case=a/S.1.1/":   `"" is not a child case; expected TASK.GENERATION.N`,
		"show":                  `"show" is not how it is written; ` + subjects,
		"show Tasks":            `"show Tasks" is not how it is written; ` + subjects,
		"crash\nshow case":      `crash takes no input; expected "----" on the next line`,
		"start w\n# why\n stop": `start takes no input; expected "----" on the next line`,
	}
	for line, want := range tests {
		t.Run(line, func(t *testing.T) {
			_, err := action(t, line)
			var bad *scenario.SyntaxError
			require.True(t, errors.As(err, &bad))
			require.Equal(t, want, bad.Text)
			require.Equal(t, "small.txt:1: "+want, err.Error())
			require.Equal(t, "syntax", bad.Code())
		})
	}
	for _, line := range []string{
		"item", "item start", "item new", "item new A.1.1", "item start A B", "item finish A", "item cancel",
	} {
		_, err := action(t, line)
		require.EqualError(t, err, fmt.Sprintf("small.txt:1: %q is not how it is written; expected "+
			"item start|complete|fail|cancel|reset|retry|skip|give-up ITEM [to=T1,T2], or item new TASK", line))
	}
}

func TestParseActionAloneHasNoPlace(t *testing.T) {
	_, err := scenario.ParseAction([]string{"crash"}, []scenario.Arg{{Key: "now", Value: "yes"}})
	require.EqualError(t, err, `crash takes no argument "now="; expected case=`)
	require.EqualError(t, &scenario.SyntaxError{Line: 3, Text: "wrong"}, "line 3: wrong")
}

func ExampleParseItemRef() {
	for _, s := range []string{"B.1.3", "B", "B.1"} {
		ref, err := scenario.ParseItemRef(s)
		fmt.Println(ref.Task, ref.Generation, ref.N, ref.Bare, err)
	}
	// Output:
	// B 1 3 false <nil>
	// B 0 0 true <nil>
	//  0 0 false "B.1" is not a work item; expected TASK or TASK.GENERATION.N
}
