package yawl_test

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net/yawl"
)

func Example() {
	const file = `<specificationSet><specification uri="approval"><decomposition id="Approval" isRootNet="true">
<processControlElements>
  <inputCondition id="in"><flowsInto><nextElementRef id="decide"/></flowsInto></inputCondition>
  <task id="decide">
    <flowsInto><nextElementRef id="out"/><isDefaultFlow/></flowsInto>
    <flowsInto><nextElementRef id="pay"/><predicate ordering="1">/data/approved</predicate></flowsInto>
    <join code="xor"/><split code="xor"/>
  </task>
  <task id="pay"><flowsInto><nextElementRef id="out"/></flowsInto><join code="xor"/><split code="and"/></task>
  <outputCondition id="out"/>
</processControlElements></decomposition></specification></specificationSet>`
	r, err := yawl.Decode(strings.NewReader(file), yawl.Options{File: "approval.yawl"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range r.Nets[0].Definition.Flows {
		fmt.Println(f.From, "->", f.To)
	}
	fmt.Print(r.Report.String())
	// Output:
	// in -> decide
	// decide -> pay
	// decide -> out
	// pay -> out
	// 6: kept: flow "decide->pay": it is number 1 to be tried and is taken if /data/approved
	// 5: kept: flow "decide->out": it is the default
}
