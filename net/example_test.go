package net_test

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
)

// trip books what a traveller asks for, and pays for all of it once.
func trip() *net.Definition {
	return &net.Definition{
		Name:       "trip",
		Conditions: []net.Condition{{Name: "begin", Role: net.Start}, {Name: "done", Role: net.End}},
		Tasks: []net.Task{
			{Name: "register", Split: net.Or},
			{Name: "flight"},
			{Name: "car", Kind: net.Composite, Of: []string{"rental"}},
			{Name: "pay", Join: net.Or},
		},
		Flows: []net.Flow{
			{From: "begin", To: "register"},
			{From: "register", To: "flight"},
			{From: "register", To: "car"},
			{From: "flight", To: "pay"},
			{From: "car", To: "pay"},
			{From: "pay", To: "done"},
		},
	}
}

// A net is compiled once, and then asked about any marking.
func Example() {
	n, err := net.Compile(trip())
	if err != nil {
		fmt.Println(err)
		return
	}
	register, _ := n.TaskByName("register")
	fmt.Println(n.Enabled(register, n.InitialMarking(), nil).Enabled)
	// Output: true
}

// Check reports all problems of a definition at once.
func ExampleDefinition_Check() {
	d := trip()
	d.Flows[4].To = "pya"
	d.Tasks[3].Cancels = []string{"hotel"}
	for _, p := range d.Check() {
		fmt.Println(p)
	}
	// Output:
	// unknown-name: the cancellation region of task "pay" names "hotel", which workflow "trip" does not declare
	// unknown-name: flow "car" -> "pya" leads to "pya", which workflow "trip" does not declare; did you mean "pay"?
}

// CheckAll finds what lies between workflows.
func ExampleCheckAll() {
	rental := &net.Definition{Name: "rental", Tasks: []net.Task{
		{Name: "again", Kind: net.Composite, Of: []string{"rental"}},
	}}
	for _, p := range net.CheckAll([]*net.Definition{trip(), rental}) {
		fmt.Println(p)
	}
	// Output:
	// recursive-composite: composite task "again" runs its own workflow "rental" again, and so without end
}

// An or-join waits as long as another input can still get a token, and can say why.
func ExampleNet_Explain() {
	n := net.MustCompile(trip())
	pay, _ := n.TaskByName("pay")
	car, _ := n.TaskByName("car")
	m, busy := make(net.Marking, n.NumConditions()), net.NewBits(n.NumTasks())
	booked, _ := n.ConditionByName("flight->pay")
	m[booked] = 1

	busy.Add(int(car))
	fmt.Println(n.Explain(pay, m, busy))
	busy.Remove(int(car))
	fmt.Println(n.Explain(pay, m, busy))
	// Output:
	// or-join "pay" waits: there is a token in flight->pay, but one can still come
	// 	to car->pay: from car when car completes
	// or-join "pay" can start: there is a token in flight->pay, and none can come to car->pay any more
}

func ExampleDOT() {
	n := net.MustCompile(trip())
	m := n.InitialMarking()
	booked, _ := n.ConditionByName("flight->pay")
	m[booked] = 2
	fmt.Print(net.DOT(n, m))
	// Output:
	// digraph "trip" {
	// 	rankdir=LR
	// 	node [fontname="Helvetica"]
	// 	c0 [shape=circle label="●" xlabel="begin" width=0.3 style=filled fillcolor=palegreen]
	// 	c1 [shape=circle label="" xlabel="done" width=0.3 style=filled fillcolor=mistyrose]
	// 	c4 [shape=circle label="●●" width=0.3]
	// 	t0 [shape=box label="register ∨"]
	// 	t1 [shape=box label="flight"]
	// 	t2 [shape=box label="car\nruns rental" peripheries=2]
	// 	t3 [shape=box label="∨ pay"]
	// 	c0 -> t0
	// 	t0 -> t1
	// 	t0 -> t2
	// 	t1 -> c4
	// 	t2 -> t3
	// 	c4 -> t3
	// 	t3 -> c1
	// }
}

func ExampleMermaid() {
	d := trip()
	d.Tasks[2].Cancels = []string{"flight", "flight->pay"}
	fmt.Print(net.Mermaid(net.MustCompile(d), nil))
	// Output:
	// flowchart LR
	//     c0(("begin"))
	//     style c0 fill:#98fb98
	//     c1(("done"))
	//     style c1 fill:#ffe4e1
	//     c4((" "))
	//     t0["register ∨"]
	//     t1["flight"]
	//     t2[["car<br/>runs rental"]]
	//     t3["∨ pay"]
	//     c0 --> t0
	//     t0 --> t1
	//     t0 --> t2
	//     t1 --> c4
	//     t2 --> t3
	//     c4 --> t3
	//     t3 --> c1
	//     t2 -. cancels .-> t1
	//     t2 -. cancels .-> c4
}
