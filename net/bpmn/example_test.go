package bpmn_test

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net/bpmn"
)

func Example() {
	const file = `<definitions><process id="Process_1" name="review">
  <startEvent id="Event_1" name="article sent"/>
  <userTask id="Activity_1" name="read it"/>
  <boundaryEvent id="Event_2" name="a week later" attachedToRef="Activity_1">
    <timerEventDefinition><timeDuration>P7D</timeDuration></timerEventDefinition>
  </boundaryEvent>
  <endEvent id="Event_3" name="done"/>
  <sequenceFlow id="f1" sourceRef="Event_1" targetRef="Activity_1"/>
  <sequenceFlow id="f2" sourceRef="Activity_1" targetRef="Event_3"/>
  <sequenceFlow id="f3" sourceRef="Event_2" targetRef="Event_3"/>
</process></definitions>`
	r, err := bpmn.Decode(strings.NewReader(file), bpmn.Options{File: "review.bpmn"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range r.Nets[0].Definition.Tasks {
		if len(t.Cancels) > 0 {
			fmt.Println(t.Name, "cancels", strings.Join(t.Cancels, ", "))
		}
	}
	fmt.Print(r.Report.String())
	// Output:
	// read_it cancels a_week_later_armed, a_week_later
	// a_week_later cancels read_it, read_it_ready
	// 5: kept: boundaryEvent "Event_2": it waits for a timer, which a net does not know
}
