package modeltest

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// Show returns a definition in net notation, without the line with the name of the workflow. Tests compare it, since
// differences between two such texts are readable.
func Show(d *net.Definition) string {
	var b strings.Builder
	for _, c := range d.Conditions {
		b.WriteString([]string{"condition ", "start ", "end "}[c.Role] + c.Name + "\n")
	}
	for _, t := range d.Tasks {
		fmt.Fprintf(&b, "%s %s", []string{"task", "dummy", "composite"}[t.Kind], t.Name)
		if len(t.Of) > 0 {
			b.WriteString(" of " + strings.Join(t.Of, ","))
		}
		if t.Join != net.And {
			fmt.Fprintf(&b, " join=%v", t.Join)
		}
		if t.Split != net.And {
			fmt.Fprintf(&b, " split=%v", t.Split)
		}
		b.WriteString("\n")
		if len(t.Cancels) > 0 {
			fmt.Fprintf(&b, "cancel %s: %s\n", t.Name, strings.Join(t.Cancels, ", "))
		}
	}
	for _, f := range d.Flows {
		fmt.Fprintf(&b, "flow %s -> %s\n", f.From, f.To)
	}
	return b.String()
}

// Lines removes the space around every line of a text and ends it with a line break, so that an expected text can be
// indented like the test that contains it.
func Lines(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		out = append(out, strings.TrimSpace(l))
	}
	return strings.Join(out, "\n") + "\n"
}

// WithoutPos returns a copy of a definition without its positions, which differ in every file it is written to.
func WithoutPos(d *net.Definition) *net.Definition {
	c := *d
	c.Pos = net.Pos{}
	c.Conditions, c.Tasks, c.Flows = nil, nil, nil
	for _, x := range d.Conditions {
		x.Pos = net.Pos{}
		c.Conditions = append(c.Conditions, x)
	}
	for _, x := range d.Tasks {
		x.Pos = net.Pos{}
		c.Tasks = append(c.Tasks, x)
	}
	for _, x := range d.Flows {
		x.Pos = net.Pos{}
		c.Flows = append(c.Flows, x)
	}
	return &c
}
