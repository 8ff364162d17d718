package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

func ExampleFormat() {
	workflows, err := scenario.ParseNotation(net.Pos{}, `
workflow order
start begin
end done
task ship   policy=quorum:2 items=3   # two of three parcels are enough
task pay timeout=2d join=and
flow begin -> pay
flow pay -> ship
flow pay -> done
cancel ship: pay, begin`)
	fmt.Println(scenario.Format(workflows), err)
	// Output:
	// workflow order
	//   start begin
	//   end done
	//   task ship items=3 policy=quorum:2
	//   task pay timeout=48h
	//   flow begin -> pay
	//   flow pay -> ship, done
	//   cancel ship: pay, begin
	//  <nil>
}

func TestFormatOfNothingIsEmpty(t *testing.T) { require.Empty(t, scenario.Format(nil)) }

func TestFormatTakesADefinitionWithoutOptions(t *testing.T) {
	w := &scenario.Workflow{Def: &net.Definition{Name: "w", Tasks: []net.Task{{Name: "A"}}}}
	require.Equal(t, "workflow w\n  task A\n", scenario.Format([]*scenario.Workflow{w}))
}

// What a program makes reads back as the same, whatever names and options it draws; and so does what a person makes of
// it with comments and spaces.
func TestFormatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workflows := rapid.SliceOfN(rapid.Custom(drawWorkflow), 1, 4).Draw(t, "workflows")
		text := scenario.Format(workflows)
		require.Equal(t, workflows, withoutPlaces(readBack(t, text)))
		require.Equal(t, workflows, withoutPlaces(readBack(t, disguise(t, text))))
	})
}

func readBack(t *rapid.T, text string) []*scenario.Workflow {
	workflows, err := scenario.ParseNotation(net.Pos{}, text)
	require.NoError(t, err, text)
	return workflows
}

// disguise adds what carries no meaning.
func disguise(t *rapid.T, text string) string {
	blank := rapid.SampledFrom([]string{" ", "\t", "   ", " \r"})
	end := rapid.SampledFrom([]string{"\n", "\r\n", " # why\n", "#->,:\n", "\n\n  \n# task x\n"})
	var b strings.Builder
	for line := range strings.Lines(text) {
		for word := range strings.FieldsSeq(line) {
			b.WriteString(blank.Draw(t, "blank") + word)
		}
		b.WriteString(end.Draw(t, "end"))
	}
	return b.String()
}

// withoutPlaces forgets the positions, which are all that may differ.
func withoutPlaces(workflows []*scenario.Workflow) []*scenario.Workflow {
	for _, w := range workflows {
		w.Def.Pos = net.Pos{}
		for i := range w.Def.Conditions {
			w.Def.Conditions[i].Pos = net.Pos{}
		}
		for i := range w.Def.Tasks {
			w.Def.Tasks[i].Pos = net.Pos{}
		}
		for i := range w.Def.Flows {
			w.Def.Flows[i].Pos = net.Pos{}
		}
		for i := range w.Missing {
			w.Missing[i].Pos = net.Pos{}
		}
	}
	return workflows
}

// few are names that meet each other often, so that flows and regions hit declared elements; some are keywords.
var few = []string{"A", "B", "c1", "task", "of", "auto", "flow", "end", "a-", "_"}

func drawName(t *rapid.T) string {
	return rapid.OneOf(rapid.SampledFrom(few), rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_-]{0,8}`)).Draw(t, "name")
}

// drawWorkflow draws what a text can say: a region belongs to the first task with the name of its owner, or to no task.
func drawWorkflow(t *rapid.T) *scenario.Workflow {
	w := &scenario.Workflow{Def: &net.Definition{Name: drawName(t)}}
	names := make(map[string]bool)
	for range rapid.IntRange(0, 4).Draw(t, "conditions") {
		role := rapid.SampledFrom([]net.Role{net.Inner, net.Start, net.End}).Draw(t, "role")
		w.Def.Conditions = append(w.Def.Conditions, net.Condition{Name: drawName(t), Role: role})
	}
	for range rapid.IntRange(0, 5).Draw(t, "tasks") {
		task, options := drawTask(t)
		if !names[task.Name] {
			task.Cancels = drawMembers(t, 0)
		}
		names[task.Name] = true
		w.Def.Tasks, w.Tasks = append(w.Def.Tasks, task), append(w.Tasks, options)
	}
	for range rapid.IntRange(0, 6).Draw(t, "flows") {
		w.Def.Flows = append(w.Def.Flows, net.Flow{From: drawName(t), To: drawName(t)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "strays") {
		if owner := drawName(t); !names[owner] {
			w.Missing = append(w.Missing, scenario.Region{Owner: owner, Members: drawMembers(t, 1)})
		}
	}
	return w
}

func drawTask(t *rapid.T) (net.Task, scenario.TaskOptions) {
	gates := rapid.SampledFrom([]net.Rule{net.And, net.Xor, net.Or})
	kind := rapid.SampledFrom([]net.Kind{net.Atomic, net.Routing, net.Composite}).Draw(t, "kind")
	task := net.Task{Name: drawName(t), Kind: kind, Join: gates.Draw(t, "join"), Split: gates.Draw(t, "split")}
	o := scenario.DefaultOptions()
	if kind != net.Routing && rapid.Bool().Draw(t, "has policy") {
		o.Policy = rapid.SampledFrom([]scenario.Policy{
			{Kind: scenario.PolicyContinue}, {Kind: scenario.PolicyQuorum, K: 1}, {Kind: scenario.PolicyQuorum, K: 12},
		}).Draw(t, "policy")
	}
	switch kind {
	case net.Composite:
		task.Of = rapid.SliceOfN(rapid.Custom(drawName), 1, 3).Draw(t, "of")
		if len(task.Of) == 1 {
			o.Cases = rapid.IntRange(1, 3).Draw(t, "cases")
		}
	case net.Atomic:
		o.Items = rapid.IntRange(0, 3).Draw(t, "items")
		o.Auto = rapid.Bool().Draw(t, "auto")
		if rapid.Bool().Draw(t, "timeout") {
			o.Timeout = max(drawDuration(t), 1)
		}
		if rapid.Bool().Draw(t, "retry") {
			o.Retry = &scenario.RetrySpec{Attempts: rapid.IntRange(1, 9).Draw(t, "attempts"), Initial: drawDuration(t)}
		}
	}
	return task, o
}

func drawDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "duration"))
}

func drawMembers(t *rapid.T, least int) []string {
	var members []string
	for range rapid.IntRange(least, 3).Draw(t, "members") {
		member := drawName(t)
		if rapid.Bool().Draw(t, "implicit") {
			member = net.ImplicitName(member, drawName(t))
		}
		members = append(members, member)
	}
	return members
}
