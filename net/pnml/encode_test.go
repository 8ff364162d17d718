package pnml

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

// article has one of everything that a definition can hold.
func article() *net.Definition {
	return &net.Definition{
		Name:       "article",
		Conditions: []net.Condition{{Name: "in", Role: net.Start}, {Name: "c1"}, {Name: "out", Role: net.End}},
		Tasks: []net.Task{
			{Name: "draft", Split: net.Or},
			{Name: "check", Kind: net.Composite, Of: []string{"facts", "style"}},
			{Name: "abort", Cancels: []string{"check", "c1", "draft->check"}},
			{Name: "join", Kind: net.Routing, Join: net.Or, Split: net.Xor},
		},
		Flows: []net.Flow{
			{From: "in", To: "draft"}, {From: "draft", To: "check"}, {From: "draft", To: "c1"}, {From: "c1", To: "abort"},
			{From: "check", To: "join"}, {From: "abort", To: "join"}, {From: "join", To: "out"}, {From: "join", To: "draft"},
		},
	}
}

func TestEncode(t *testing.T) {
	got := roundTrip(t, article())
	want, err := os.ReadFile("testdata/article.pnml")
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	roundTrip(t, &net.Definition{Name: "odd <\"names\">", Tasks: []net.Task{{Name: "a & b\n"}, {Name: " 審査 "}},
		Flows: []net.Flow{{From: "a & b\n", To: " 審査 "}}})
}

func TestEncodeRefuses(t *testing.T) {
	task := func(names ...string) *net.Definition {
		d := &net.Definition{Name: "w"}
		for _, n := range names {
			d.Tasks = append(d.Tasks, net.Task{Name: n})
		}
		return d
	}
	flow := func(d *net.Definition, from, to string) *net.Definition {
		d.Flows = append(d.Flows, net.Flow{From: from, To: to})
		return d
	}
	for _, c := range []struct {
		def  *net.Definition
		want string
	}{
		{nil, `pnml: a definition is nil`},
		{task("a", "a"), `pnml: two elements of workflow "w" are named "a"`},
		{flow(task("a"), "a", "b"), `pnml: workflow "w" has a flow from "a" to "b", ` +
			`which must be a task and a condition or two tasks of it`},
		{task(""), `pnml: a task of workflow "w" has no name`},
		{&net.Definition{Name: "w", Conditions: []net.Condition{{}}}, `pnml: a condition of workflow "w" has no name`},
		{&net.Definition{Name: "w", Conditions: []net.Condition{{Name: "a->a"}}, Tasks: []net.Task{{Name: "a"}},
			Flows: []net.Flow{{From: "a", To: "a"}}}, `pnml: two elements of workflow "w" are named "a->a"`},
		{task("bell\a"), `pnml: the name "bell\a" holds a character that cannot stand in an XML file`},
		{&net.Definition{Name: "w", Tasks: []net.Task{{Name: "a", Join: 7}}},
			`pnml: task "a" of workflow "w" has a kind, join or split that does not exist`},
		{&net.Definition{Name: "w", Conditions: []net.Condition{{Name: "a", Role: 7}}},
			`pnml: condition "a" of workflow "w" has a role that does not exist`},
	} {
		require.EqualError(t, Encode(new(bytes.Buffer), c.def), c.want)
	}
	require.EqualError(t, EncodePetri(new(bytes.Buffer), nil), "pnml: a net is nil")
	require.EqualError(t, EncodePetri(new(bytes.Buffer), &net.Petri{Transitions: []net.PetriTransition{{Name: "t",
		In: []net.PetriArc{{Place: 1, Weight: 1}}}}}), `pnml: transition "t" has an arc of weight 1 to place number 1 of 0`)
	require.EqualError(t, EncodePetri(new(bytes.Buffer), &net.Petri{Transitions: []net.PetriTransition{{Name: "t",
		Resets: []int{-1}}}}), `pnml: transition "t" resets place number -1 of 0`)
}

// Any definition comes back the same, whether or not it makes sense.
func TestEncodeRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t)
		var b bytes.Buffer
		if err := Encode(&b, def, def); err != nil {
			t.Fatal(err)
		}
		r, err := Decode(&b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			require.Equal(t, modeltest.WithoutPos(def), modeltest.WithoutPos(r.Nets[i].Definition))
		}
	})
}

func randomDefinition(t *rapid.T) *net.Definition {
	def := &net.Definition{Name: rapid.StringMatching(`[a-z<&" ]*`).Draw(t, "name")}
	var tasks, conditions, all []string
	for i := range rapid.IntRange(0, 6).Draw(t, "conditions") {
		c := net.Condition{Name: fmt.Sprint("c", i), Role: net.Role(rapid.IntRange(0, 2).Draw(t, "role"))}
		conditions = append(conditions, c.Name)
		def.Conditions = append(def.Conditions, c)
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "tasks") {
		tasks = append(tasks, fmt.Sprint("t", i))
	}
	all = append(append(all, tasks...), conditions...)
	gate := rapid.Custom(func(t *rapid.T) net.Rule { return net.Rule(rapid.IntRange(0, 2).Draw(t, "gate")) })
	for _, name := range tasks {
		task := net.Task{Name: name, Join: gate.Draw(t, "join"), Split: gate.Draw(t, "split"),
			Kind: net.Kind(rapid.IntRange(0, 2).Draw(t, "kind"))}
		for range rapid.IntRange(0, 2).Draw(t, "region") {
			task.Cancels = append(task.Cancels, rapid.SampledFrom(all).Draw(t, "member"))
		}
		def.Tasks = append(def.Tasks, task)
	}
	seen := map[net.Flow]bool{}
	for range rapid.IntRange(0, 15).Draw(t, "flows") {
		f := net.Flow{From: rapid.SampledFrom(all).Draw(t, "from"), To: rapid.SampledFrom(tasks).Draw(t, "to")}
		if f.From[0] == 't' && rapid.Bool().Draw(t, "turn") && len(conditions) > 0 {
			f.To = rapid.SampledFrom(conditions).Draw(t, "to")
		}
		if !seen[f] {
			seen[f] = true
			def.Flows = append(def.Flows, f)
		}
	}
	return def
}

func TestUnfold(t *testing.T) {
	def := &net.Definition{
		Name:       "w",
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "p"}, {Name: "q"}, {Name: "o", Role: net.End}},
		Tasks: []net.Task{
			{Name: "a", Split: net.Or}, {Name: "b", Join: net.Xor}, {Name: "c", Join: net.Xor, Split: net.Xor},
		},
		Flows: []net.Flow{
			{From: "i", To: "a"}, {From: "a", To: "p"}, {From: "a", To: "q"}, {From: "p", To: "b"}, {From: "q", To: "b"},
			{From: "p", To: "c"}, {From: "b", To: "c"}, {From: "c", To: "b"}, {From: "c", To: "o"},
		},
	}
	p, err := Unfold(def)
	require.NoError(t, err)
	require.Equal(t, modeltest.Lines(`
		a_to_p: i -> p
		a_to_q: i -> q
		a_to_p_q: i -> p q
		b_from_p: p -> b_c
		b_from_q: q -> b_c
		b_from_c: c_b -> b_c
		c_from_p: p -> c_busy
		c_from_b: b_c -> c_busy
		c_to_b: c_busy -> c_b
		c_to_o: c_busy -> o`), showPetri(p))
	require.Equal(t, []int{1, 0, 0, 0, 0, 0, 0}, p.Initial())
	require.Equal(t, []int{3}, p.Sinks())
	require.Equal(t, []int{0}, p.Sources())

	r, err := Decode(strings.NewReader(roundTrip(t, def)), Options{})
	require.NoError(t, err)
	require.Equal(t, bare(p), bare(r.Nets[0].Petri), "a file of Encode gives the unfolded net too")
}

func showPetri(p *net.Petri) string {
	var b strings.Builder
	for _, t := range p.Transitions {
		b.WriteString(t.Name + ":")
		for _, a := range t.In {
			b.WriteString(" " + p.Places[a.Place].Name)
		}
		b.WriteString(" ->")
		for _, a := range t.Out {
			b.WriteString(" " + p.Places[a.Place].Name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestUnfoldRefuses(t *testing.T) {
	_, err := Unfold(article())
	require.EqualError(t, err, `pnml: task "abort" has a cancellation region, which a plain net cannot express`)
	d := article()
	d.Tasks[2].Cancels = nil
	_, err = Unfold(d)
	require.EqualError(t, err, `pnml: task "join" has an or-join, which a plain net cannot express`)

	wide := func(split net.Rule, n int) *net.Definition {
		d := &net.Definition{Name: "w", Tasks: []net.Task{{Name: "a", Join: net.Xor, Split: split}}}
		for i := range n {
			c := fmt.Sprint("c", i)
			d.Conditions = append(d.Conditions, net.Condition{Name: c})
			d.Flows = append(d.Flows, net.Flow{From: "a", To: c}, net.Flow{From: c, To: "a"})
		}
		return d
	}
	_, err = Unfold(wide(net.Or, 11))
	require.EqualError(t, err, `pnml: task "a" has an or-split of 11 outputs; a plain net would need 2047 transitions`)
	_, err = Unfold(wide(net.And, 2000))
	require.EqualError(t, err, `pnml: a plain net of workflow "w" would have more than 1048576 arcs`)
}

func TestResetsAreKeptAsAnnotations(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, EncodePetri(&b, &net.Petri{Name: "r", Places: []net.PetriPlace{{Name: "p", Initial: 2}},
		Transitions: []net.PetriTransition{{Name: "t", In: []net.PetriArc{{Weight: 3}}, Resets: []int{0}}}}))
	require.Contains(t, b.String(), `<resets place="p"/>`)
	require.Contains(t, b.String(), `<inscription><text>3</text></inscription>`)
	require.Contains(t, b.String(), `<initialMarking><text>2</text></initialMarking>`)
}
