package verify_test

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// The case of the package comment: A starts B and C, and J waits for only one of them.
func Example() {
	n := net.MustCompile(&net.Definition{
		Name:       "two branches",
		Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}},
		Tasks:      []net.Task{{Name: "A"}, {Name: "B"}, {Name: "C"}, {Name: "J", Join: net.Xor}},
		Flows: []net.Flow{
			{From: "start", To: "A"}, {From: "A", To: "B"}, {From: "A", To: "C"},
			{From: "B", To: "J"}, {From: "C", To: "J"}, {From: "J", To: "end"},
		},
	})
	report := verify.Net(n, verify.Options{})
	fmt.Println(report.Verdict)
	for _, f := range report.Findings {
		fmt.Println(f.Code+":", f.Text)
		fmt.Println("by the run:", f.Witness)
	}
	for _, w := range report.Warnings {
		fmt.Println("warning:", w)
	}
	// Output:
	// unsound
	// improper-completion: a case can complete while work is left over: "A->C"
	// by the run: A; B; J; then end 1, A->C 1
	// warning: and-split-xor-join J
	// warning: xor-join-twice J
}

// C can be repeated without end, and adds a token to x each time.
func ExamplePetri() {
	report := verify.Petri(&net.Petri{
		Name:   "grows",
		Places: []net.PetriPlace{{Name: "i", Initial: 1}, {Name: "r"}, {Name: "x"}, {Name: "o"}},
		Transitions: []net.PetriTransition{
			{Name: "S", In: []net.PetriArc{{Place: 0, Weight: 1}}, Out: []net.PetriArc{{Place: 1, Weight: 1}}},
			{Name: "C", In: []net.PetriArc{{Place: 1, Weight: 1}}, Out: []net.PetriArc{{Place: 1, Weight: 1}, {Place: 2, Weight: 1}}},
			{Name: "U", In: []net.PetriArc{{Place: 2, Weight: 1}}, Out: []net.PetriArc{{Place: 3, Weight: 1}}},
			{Name: "E", In: []net.PetriArc{{Place: 1, Weight: 1}}, Out: []net.PetriArc{{Place: 3, Weight: 1}}},
		},
	}, verify.Options{})
	fmt.Println(report.Verdict)
	for _, f := range report.Findings {
		fmt.Println(f)
	}
	// Output:
	// unsound
	// improper-completion
	// unbounded x
	// unsafe x
}
