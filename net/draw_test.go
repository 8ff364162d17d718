package net

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawn() *Net {
	d := notation(`
start i
end o
condition hold
task A join=xor split=xor
dummy R join=and split=and
i -> A
A -> hold, R
hold -> R
R -> A, o
cancel R: hold, A`)
	d.Name, d.Tasks[0].Name = `says "hi"\`, "A"
	return MustCompile(d)
}

func TestDOT(t *testing.T) {
	n := drawn()
	m, _ := marked(n, "hold=7 R->A")
	require.Equal(t, `digraph "says \"hi\"\\" {
	rankdir=LR
	node [fontname="Helvetica"]
	c0 [shape=circle label="" xlabel="i" width=0.3 style=filled fillcolor=palegreen]
	c1 [shape=circle label="" xlabel="o" width=0.3 style=filled fillcolor=mistyrose]
	c2 [shape=circle label="● × 7" xlabel="hold" width=0.3]
	c4 [shape=circle label="●" width=0.3]
	t0 [shape=box label="× A ×"]
	t1 [shape=box label="∧ R ∧" style=filled fillcolor=gray90]
	c0 -> t0
	c4 -> t0
	t0 -> c2
	t0 -> t1
	c2 -> t1
	t1 -> c4
	t1 -> c1
	t1 -> t0 [style=dashed color=red constraint=false]
	t1 -> c2 [style=dashed color=red constraint=false]
}
`, DOT(n, m))
}

func TestMermaid(t *testing.T) {
	require.Equal(t, `flowchart LR
    c0(("i"))
    style c0 fill:#98fb98
    c1(("o"))
    style c1 fill:#ffe4e1
    c2(("hold"))
    t0["× A ×"]
    t1(["∧ R ∧"])
    c0 --> t0
    t0 --> c2
    t0 --> t1
    c2 --> t1
    t1 --> t0
    t1 --> c1
    t1 -. cancels .-> t0
    t1 -. cancels .-> c2
`, Mermaid(drawn(), nil))
}

// Whatever the names, every quote in a drawing is one that the drawing put there, and no name breaks a line.
func TestDrawingsQuoteNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := "A" + rapid.String().Draw(t, "name")
		d := &Definition{
			Conditions: []Condition{{Name: "i", Role: Start}, {Name: "o", Role: End}},
			Tasks:      []Task{{Name: name}},
			Flows:      []Flow{{From: "i", To: name}, {From: name, To: "o"}},
		}
		n := MustCompile(d)
		text := DOT(n, nil)
		require.Equal(t, 9, strings.Count(text, "\n"), text)
		unescaped := strings.ReplaceAll(strings.ReplaceAll(text, `\\`, ""), `\"`, "")
		require.Equal(t, 14, strings.Count(unescaped, `"`), text)

		text = Mermaid(n, nil)
		require.Equal(t, 8, strings.Count(text, "\n"), text)
		require.Equal(t, 6, strings.Count(text, `"`), text)
	})
}
