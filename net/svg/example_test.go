package svg_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
)

// A claim that is being checked: its marking and the task at work are in the picture, and in its description.
func ExampleDraw() {
	n := net.MustCompile(&net.Definition{
		Name:       "claim",
		Conditions: []net.Condition{{Name: "begin", Role: net.Start}, {Name: "end", Role: net.End}},
		Tasks: []net.Task{
			{Name: "check", Split: net.Xor}, {Name: "pay"}, {Name: "refuse"}, {Name: "file", Join: net.Xor},
		},
		Flows: []net.Flow{
			{From: "begin", To: "check"}, {From: "check", To: "pay"}, {From: "check", To: "refuse"},
			{From: "pay", To: "file"}, {From: "refuse", To: "file"}, {From: "file", To: "end"},
		},
	})
	marking, busy := n.InitialMarking(), net.NewBits(n.NumTasks())
	marking[n.Start()] = 0
	busy.Add(0) // check has started
	var picture strings.Builder
	err := svg.Draw(&picture, n, svg.Options{Title: "A claim", Marking: marking, Busy: busy,
		Flows: map[[2]string]string{{"check", "pay"}: "below 100 EUR"}})
	if err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(picture.String(), "<desc")
	_, rest, _ = strings.Cut(rest, ">")
	description, _, _ := strings.Cut(rest, "</desc>")
	fmt.Println(description)
	fmt.Println(strings.Count(picture.String(), `class="task"`), "tasks,", strings.Contains(picture.String(), "below 100"))
	// Output:
	// Workflow claim from begin to end: 4 tasks, 2 conditions; busy: check.
	// 4 tasks, true
}
