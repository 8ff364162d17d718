package net

import (
	"fmt"
	"slices"
	"strings"
)

// DOT draws a net for Graphviz: conditions as circles with their names beside them, tasks as boxes, composite tasks with a double border,
// cancellation regions as dashed red arrows. A task shows the rule of its join before its name and that of its split
// after it, where they matter: ∧ and, × xor, ∨ or. A marking shows as dots in the circles; nil is no tokens at all.
//
// An implicit condition is the arrow itself, unless it holds tokens or a region names it: then it is a small circle.
// The same net and marking give the same text.
func DOT(n *Net, m Marking) string {
	d := dot{}
	fmt.Fprintf(&d.b, "digraph %s {\n\trankdir=LR\n\tnode [fontname=\"Helvetica\"]\n", dotQuote(n.Name()))
	draw(n, m, &d)
	d.b.WriteString("}\n")
	return d.b.String()
}

// Mermaid draws a net as a flowchart of Mermaid, which many pages render without a tool: conditions as circles, tasks
// as boxes, composite tasks with double sides, cancellation regions as dotted arrows. In all else it is like [DOT].
func Mermaid(n *Net, m Marking) string {
	d := mermaid{}
	d.b.WriteString("flowchart LR\n")
	draw(n, m, &d)
	return d.b.String()
}

// canvas is what a picture is drawn on. Ids are c0, c1, ... and t0, t1, ... by number.
type canvas interface {
	condition(id, name, tokens string, role Role) // "" for no name, and for no tokens
	task(id string, lines []string, kind Kind)
	flow(from, to string)
	cancel(from, to string)
}

func draw(n *Net, m Marking, on canvas) {
	shown := shownConditions(n, m)
	for c := range n.conditions {
		if shown.Has(c) {
			id, name := ConditionID(c), ""
			if !n.conditions[c].implicit {
				name = n.ConditionName(id)
			}
			on.condition(conditionID(id), name, tokenText(tokensIn(m, id)), n.role(id))
		}
	}
	for t := range n.tasks {
		on.task(taskID(TaskID(t)), n.taskLabel(TaskID(t)), n.def.Tasks[t].Kind)
	}
	for t, task := range n.tasks {
		for _, c := range task.inputs {
			if shown.Has(int(c)) {
				on.flow(conditionID(c), taskID(TaskID(t)))
			}
		}
		for _, c := range task.outputs {
			if shown.Has(int(c)) {
				on.flow(taskID(TaskID(t)), conditionID(c))
			} else {
				on.flow(taskID(TaskID(t)), taskID(n.conditions[c].consumers[0]))
			}
		}
	}
	for t, task := range n.tasks {
		for _, u := range task.regionTasks {
			on.cancel(taskID(TaskID(t)), taskID(u))
		}
		for _, c := range task.region {
			on.cancel(taskID(TaskID(t)), conditionID(c))
		}
	}
}

func conditionID(c ConditionID) string { return fmt.Sprintf("c%d", c) }

func taskID(t TaskID) string { return fmt.Sprintf("t%d", t) }

// shownConditions are those that are not drawn as a plain arrow.
func shownConditions(n *Net, m Marking) Bits {
	shown := NewBits(len(n.conditions))
	for c := range n.conditions {
		if !n.conditions[c].implicit || tokensIn(m, ConditionID(c)) > 0 {
			shown.Add(c)
		}
	}
	for _, t := range n.tasks {
		for _, c := range t.region {
			shown.Add(int(c))
		}
	}
	return shown
}

func tokensIn(m Marking, c ConditionID) int32 {
	if int(c) >= len(m) {
		return 0
	}
	return m[c]
}

func (n *Net) role(c ConditionID) Role {
	switch c {
	case n.start:
		return Start
	case n.end:
		return End
	}
	return Inner
}

// tokenText shows up to four tokens one by one.
func tokenText(tokens int32) string {
	if tokens > 4 {
		return fmt.Sprintf("● × %d", tokens)
	}
	return strings.Repeat("●", int(max(tokens, 0)))
}

func (n *Net) taskLabel(t TaskID) []string {
	task, label := &n.def.Tasks[t], n.TaskName(t)
	glyphs := [...]string{And: "∧", Xor: "×", Or: "∨"}
	if len(n.tasks[t].inputs) > 1 {
		label = glyphs[min(task.Join, Or)] + " " + label
	}
	if len(n.tasks[t].outputs) > 1 {
		label += " " + glyphs[min(task.Split, Or)]
	}
	lines := []string{label}
	if task.Kind == Composite && len(task.Of) > 0 {
		lines = append(lines, "runs "+strings.Join(task.Of, ", "))
	}
	return lines
}

type dot struct{ b strings.Builder }

func (d *dot) condition(id, name, tokens string, role Role) {
	look := [...]string{Inner: "", Start: " style=filled fillcolor=palegreen", End: " style=filled fillcolor=mistyrose"}
	beside := ""
	if name != "" {
		beside = " xlabel=" + dotQuote(name)
	}
	fmt.Fprintf(&d.b, "\t%s [shape=circle label=%s%s width=0.3%s]\n", id, dotQuote(tokens), beside, look[role])
}

func (d *dot) task(id string, lines []string, kind Kind) {
	look := [...]string{Atomic: "", Routing: " style=filled fillcolor=gray90", Composite: " peripheries=2"}
	fmt.Fprintf(&d.b, "\t%s [shape=box label=%s%s]\n", id, dotQuote(lines...), look[min(kind, Composite)])
}

func (d *dot) flow(from, to string) { fmt.Fprintf(&d.b, "\t%s -> %s\n", from, to) }

func (d *dot) cancel(from, to string) {
	fmt.Fprintf(&d.b, "\t%s -> %s [style=dashed color=red constraint=false]\n", from, to)
}

// dotQuote makes a quoted label of some lines.
func dotQuote(lines ...string) string {
	safe := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "", "\x00", "")
	quoted := make([]string, len(lines))
	for i, line := range lines {
		quoted[i] = safe.Replace(line)
	}
	return `"` + strings.Join(quoted, `\n`) + `"`
}

type mermaid struct{ b strings.Builder }

func (d *mermaid) condition(id, name, tokens string, role Role) {
	lines := slices.DeleteFunc([]string{name, tokens}, func(line string) bool { return line == "" })
	fmt.Fprintf(&d.b, "    %s((%s))\n", id, mermaidQuote(lines))
	if look := [...]string{Inner: "", Start: "#98fb98", End: "#ffe4e1"}[role]; look != "" {
		fmt.Fprintf(&d.b, "    style %s fill:%s\n", id, look)
	}
}

func (d *mermaid) task(id string, lines []string, kind Kind) {
	shape := [...][2]string{Atomic: {"[", "]"}, Routing: {"([", "])"}, Composite: {"[[", "]]"}}[min(kind, Composite)]
	fmt.Fprintf(&d.b, "    %s%s%s%s\n", id, shape[0], mermaidQuote(lines), shape[1])
}

func (d *mermaid) flow(from, to string) { fmt.Fprintf(&d.b, "    %s --> %s\n", from, to) }

func (d *mermaid) cancel(from, to string) { fmt.Fprintf(&d.b, "    %s -. cancels .-> %s\n", from, to) }

// mermaidQuote makes a quoted label of some lines. Mermaid has no escapes but codes of characters, and reads labels as
// HTML and Markdown otherwise. An empty label is a space, for an empty string is a syntax error.
func mermaidQuote(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		for _, r := range line {
			switch {
			case r == '\n':
				b.WriteString("<br/>")
			case r < ' ':
			case strings.ContainsRune("\"#&<>`", r):
				fmt.Fprintf(&b, "#%d;", r)
			default:
				b.WriteRune(r)
			}
		}
	}
	if b.Len() == 0 {
		return `" "`
	}
	return `"` + b.String() + `"`
}
