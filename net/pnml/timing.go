package pnml

import (
	"strings"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

const noPriorities = "it gives transitions priorities; without these more could fire, so the net is not read: " +
	"take them out if the order does not matter"

// timing refuses transitions of different priorities, and adds a note on the first one with a delay. PIPE and TAPAAL
// write a priority for each transition, usually the same.
func (d *decoder) timing(g *graph) error {
	var first *node
	late := false
	for _, n := range g.nodes {
		if !n.transition {
			continue
		}
		if first == nil {
			first = n
		}
		if p := priority(n.el); p != priority(first.el) {
			return d.refuse(Unsupported, n.el, "its priority is "+xmlread.Quote(p)+", and that of the "+first.el.String()+" "+
				xmlread.Quote(priority(first.el))+"; without priorities more could fire, so the net is not read: take them out if the order does not matter")
		}
		if delay := n.el.Child("delay"); delay != nil && !late {
			late = true
			d.result.Report.Add(Note{Code: Kept, Line: delay.Line, Element: n.el.String(), Raw: delay.Raw(),
				Text: "it fires after a delay, which a net does not know, as any further ones"})
		}
	}
	return nil
}

// priority returns the priority of a transition, "0" if none is written.
func priority(el *xmlread.Element) string {
	p := el.Attr("priority")
	if c := el.Child("priority"); c != nil {
		p = text(c)
	}
	if p = strings.TrimSpace(p); p == "" {
		return "0"
	}
	return p
}
