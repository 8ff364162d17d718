package pnml_test

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net/pnml"
)

func Example() {
	const file = `<pnml><net id="choice">
  <place id="new"><initialMarking><text>1</text></initialMarking></place>
  <transition id="accept"/> <transition id="reject"/>
  <place id="accepted"/>    <place id="rejected"/>
  <arc source="new" target="accept"/> <arc source="accept" target="accepted"/>
  <arc source="new" target="reject"/> <arc source="reject" target="rejected"/>
</net></pnml>`
	r, err := pnml.Decode(strings.NewReader(file), pnml.Options{File: "choice.pnml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range r.Nets[0].Definition.Tasks {
		fmt.Println("task", t.Name, "join", t.Join)
	}
	fmt.Print(r.Report.String())
	// Output:
	// task accept join and
	// task reject join and
	// task finish join or
	// 1: closed: net "choice": it has 2 ends; finish -> end is added behind, with an or-join
}
