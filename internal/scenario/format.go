package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// Format writes workflows in the canonical form of the notation: conditions, tasks, flows and regions, in the order of
// the definition, one per line, without default values. Consecutive flows from one element share a line. Parsing the
// text returns the same workflows, except for positions.
func Format(workflows []*Workflow) string {
	var b strings.Builder
	for _, w := range workflows {
		w.format(&b)
	}
	return b.String()
}

func (w *Workflow) format(b *strings.Builder) {
	fmt.Fprintf(b, "workflow %s\n", w.Def.Name)
	for _, c := range w.Def.Conditions {
		fmt.Fprintf(b, "  %s %s\n", roleWords[c.Role], c.Name)
	}
	for i := range w.Def.Tasks {
		options := DefaultOptions()
		if i < len(w.Tasks) {
			options = w.Tasks[i]
		}
		formatTask(b, &w.Def.Tasks[i], options)
	}
	formatFlows(b, w.Def.Flows)
	for _, t := range w.Def.Tasks {
		formatRegion(b, t.Name, t.Cancels)
	}
	for _, s := range w.Missing {
		formatRegion(b, s.Owner, s.Members)
	}
}

// roleWords are the statements that declare a condition, by [net.Role].
var roleWords = [...]string{net.Inner: "condition", net.Start: "start", net.End: "end"}

func formatTask(b *strings.Builder, t *net.Task, o TaskOptions) {
	line := []string{" ", kindWords[t.Kind], t.Name}
	say := func(when bool, words ...string) {
		if when {
			line = append(line, words...)
		}
	}
	say(t.Kind == net.Composite, "of", strings.Join(t.Of, ","))
	say(t.Split != net.And, "split="+t.Split.String())
	say(t.Join != net.And, "join="+t.Join.String())
	say(t.Kind == net.Atomic && o.Items != 1, "items="+strconv.Itoa(o.Items))
	say(t.Kind == net.Composite && o.Cases != 1, "cases="+strconv.Itoa(o.Cases))
	say(o.Policy != Policy{}, "policy="+o.Policy.String())
	if o.Retry != nil {
		say(true, "retry="+o.Retry.String())
	}
	if o.Timeout != 0 {
		say(true, "timeout="+FormatDuration(o.Timeout))
	}
	say(o.Auto, "auto")
	b.WriteString(strings.Join(line, " ") + "\n")
}

func formatFlows(b *strings.Builder, flows []net.Flow) {
	for i, f := range flows {
		if i > 0 && flows[i-1].From == f.From {
			b.WriteString(", " + f.To)
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "  flow %s -> %s", f.From, f.To)
	}
	if len(flows) > 0 {
		b.WriteByte('\n')
	}
}

func formatRegion(b *strings.Builder, owner string, members []string) {
	if len(members) > 0 {
		fmt.Fprintf(b, "  cancel %s: %s\n", owner, strings.Join(members, ", "))
	}
}
