package state_test

import (
	"fmt"
	"log"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A case is what its events made of it: applied again, as here, they give the same case. The kernel does so as it
// decides, a store as it recovers, and the integrity check as it compares.
func ExampleTree_Apply() {
	n := net.MustCompile(&net.Definition{
		Name:       "article",
		Conditions: []net.Condition{{Name: "begin", Role: net.Start}, {Name: "end", Role: net.End}},
		Tasks:      []net.Task{{Name: "draft"}},
		Flows:      []net.Flow{{From: "begin", To: "draft"}, {From: "draft", To: "end"}},
	})
	id, item := workitem.CaseID{1}, workitem.ID{2}
	tree := state.NewTree()
	tree.Begin()
	for _, e := range []state.Change{
		&state.CaseOpened{Case: &state.Case{ID: id, Root: id, Workflow: "article", Net: n}},
		&state.TaskMoved{Case: id, To: state.TaskEnabled, Generation: 1},
		&state.ItemOpened{Item: &workitem.Item{ID: item, Case: id, Task: "draft", Generation: 1, Number: 1,
			State: workitem.Initialized}},
		&state.TaskMoved{Case: id, To: state.TaskStarted, Generation: 1, Consumed: []net.ConditionID{n.Start()}},
		&state.ItemMoved{Case: id, Item: item, Action: workitem.Start, To: workitem.Started},
	} {
		if err := tree.Apply(e); err != nil {
			log.Fatal(err)
		}
	}
	for _, it := range tree.End(1).Items {
		fmt.Println(it.Label(), it.State)
	}
	c := tree.Case(id)
	fmt.Println(c.State, c.Tasks[0].State, c.Marking)
	// Output:
	// draft.1.1 started
	// started started [0 0]
}
