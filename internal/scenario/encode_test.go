package scenario_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

func ExampleEncode() {
	text, err := scenario.Encode(&net.Definition{
		Name:       "article",
		Conditions: []net.Condition{{Name: "in", Role: net.Start}, {Name: "out", Role: net.End}},
		Tasks: []net.Task{
			{Name: "draft", Split: net.Xor}, {Name: "print", Kind: net.Composite, Of: []string{"printing"}},
		},
		Flows: []net.Flow{
			{From: "in", To: "draft"}, {From: "draft", To: "print"}, {From: "draft", To: "out"}, {From: "print", To: "out"},
		},
	})
	fmt.Print(text, err)
	// Output:
	// workflow article
	//   start in
	//   end out
	//   task draft split=xor
	//   composite print of printing
	//   flow in -> draft
	//   flow draft -> print, out
	//   flow print -> out
	// <nil>
}

// What is written reads back as it was, whether or not it is well-formed.
func TestEncodeReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_-]{0,5}`)
		names := rapid.SliceOfN(name, 1, 3)
		d := &net.Definition{Name: name.Draw(t, "workflow")}
		for range rapid.IntRange(0, 3).Draw(t, "conditions") {
			role := net.Role(rapid.IntRange(0, 2).Draw(t, "role"))
			d.Conditions = append(d.Conditions, net.Condition{Name: name.Draw(t, "condition"), Role: role})
		}
		for _, one := range rapid.SliceOfDistinct(name, func(s string) string { return s }).Draw(t, "tasks") {
			task := net.Task{Name: one, Kind: net.Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
				Join: net.Rule(rapid.IntRange(0, 2).Draw(t, "join")), Split: net.Rule(rapid.IntRange(0, 2).Draw(t, "split"))}
			if task.Kind == net.Composite {
				task.Of = names.Draw(t, "of")
			}
			if rapid.Bool().Draw(t, "cancels") {
				task.Cancels = append(names.Draw(t, "members"), net.ImplicitName(name.Draw(t, "from"), name.Draw(t, "to")))
			}
			d.Tasks = append(d.Tasks, task)
		}
		for range rapid.IntRange(0, 6).Draw(t, "flows") {
			d.Flows = append(d.Flows, net.Flow{From: name.Draw(t, "from"), To: name.Draw(t, "to")})
		}
		text, err := scenario.Encode(d, d)
		require.NoError(t, err)
		back, err := scenario.ParseNotation(net.Pos{}, text)
		require.NoError(t, err, text)
		require.Len(t, back, 2)
		for _, w := range withoutPlaces(back) {
			require.Equal(t, d, w.Def, text)
			require.Empty(t, w.Missing)
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	task := func(t net.Task) *net.Definition { return &net.Definition{Name: "w", Tasks: []net.Task{t}} }
	for _, c := range []struct {
		def  *net.Definition
		want string
	}{
		{nil, `a definition is nil`},
		{&net.Definition{Name: "a b"}, `workflow "a b" has no form in net notation: its name is none there`},
		{&net.Definition{Name: "w", Conditions: []net.Condition{{Name: "ä"}}}, `condition "ä" has a name or a role`},
		{&net.Definition{Name: "w", Conditions: []net.Condition{{Name: "a", Role: 7}}}, `condition "a" has a name or a role`},
		{&net.Definition{Name: "w", Tasks: []net.Task{{Name: "a"}, {Name: "a"}}}, `two tasks are named "a"`},
		{&net.Definition{Name: "w", Flows: []net.Flow{{From: "a", To: ""}}}, `the flow from "a" to "" has an end`},
		{task(net.Task{Name: "1"}), `task "1" has a name that is none there`},
		{task(net.Task{Name: "a", Join: 7}), `task "a" has a kind, a join or a split that does not exist`},
		{task(net.Task{Name: "a", Kind: net.Composite}), `task "a" is composite and runs no workflow`},
		{task(net.Task{Name: "a", Of: []string{"b"}}), `task "a" runs workflows and is not composite`},
		{task(net.Task{Name: "a", Kind: net.Composite, Of: []string{"b c"}}), `task "a" runs "b c", which is no name`},
		{task(net.Task{Name: "a", Cancels: []string{"b->"}}), `task "a" cancels "b->", which is no name there`},
	} {
		_, err := scenario.Encode(c.def)
		require.ErrorContains(t, err, c.want)
	}
}
