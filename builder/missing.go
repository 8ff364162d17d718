package builder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// NoOutput is the code of a finding: an input, a condition of a flow or a result reads the output of a task that may have been
// skipped by then, or that can complete without an output. The problem includes a run that shows it. Verification does not look at
// data: it assumes that every choice can go either way. If no case can take that run because two choices depend on the same data,
// read the output with [OptionalOutput], or allow the finding with [AllowUnsound]; a case that takes the run nevertheless fails with
// the code "no-output". If the search runs out of time, NoOutput is a warning.
const NoOutput net.Code = "no-output"

// What is searched for runs without an output in Build: so long all together, and so many states for each. No search takes
// more than half of the time that is left, so that one that is hard leaves some to the others.
const (
	missingTime   = 200 * time.Millisecond
	missingStates = 20_000
)

// reader is what reads an output.
type reader struct {
	what    string  // "the input of task \"b\""
	subject string  // the name of the task, flow or workflow
	pos     net.Pos // where it is declared
	of      *node   // whose output it is
	at      net.TaskID
	own     bool // a flow of the task itself
}

// missing finds outputs that are read where they may not be there: those that are decided, and those that are not.
func (d *draft) missing(n *net.Net) (found, undecided []verify.Finding) {
	end := retry.SystemClock.Now().Add(missingTime)
	for _, r := range d.readers(n) {
		of, _ := n.TaskByName(r.of.name)
		why := r.of.withoutOutput()
		if r.own && (why == "" || slices.ContainsFunc(d.flowsOut(r.of), func(f *flow) bool { return f.without })) {
			continue // asked only if there is an output
		}
		left := end.Sub(retry.SystemClock.Now())
		opts := verify.Options{States: missingStates, Time: max((left+1)/2, 1), Now: retry.SystemClock.Now}
		run, decided := verify.Bypass(n, of, r.at, d.passed(r.of, why), opts)
		f := verify.Finding{
			Code: NoOutput, Subject: r.subject, Witness: run,
			Fix: "take builder.OptionalOutput, give the split a flow WithoutOutput, or have the task fail (a Timeout in place of " +
				"CancelAfter, a policy that fails it)",
			Elements: []verify.Element{{Name: r.subject, Pos: r.pos}, {Name: r.of.name, Pos: r.of.pos}},
		}
		switch {
		case run != nil && why != "":
			f.Text = fmt.Sprintf("%s is the output of %q, which may not have completed by then, or without one: %s",
				r.what, r.of.name, why)
			found = append(found, f)
		case run != nil:
			f.Text = fmt.Sprintf("%s is the output of %q, which may not have completed by then", r.what, r.of.name)
			found = append(found, f)
		case !decided:
			f.Text = fmt.Sprintf("whether %s, the output of %q, is always there is not decided; a case that comes there "+
				"without it fails with the code %q", r.what, r.of.name, workitem.CodeNoOutput)
			undecided = append(undecided, f)
		}
	}
	return found, undecided
}

// readers lists what needs an output to be there.
func (d *draft) readers(n *net.Net) []reader {
	var all []reader
	add := func(s sourceOf, by *node, what, subject string, pos net.Pos) {
		if s.of == nil || s.d != d || s.optional {
			return
		}
		at := net.TaskID(-1)
		if by != nil {
			at, _ = n.TaskByName(by.name)
		}
		all = append(all, reader{what: what, subject: subject, pos: pos, of: s.of, at: at})
	}
	for _, u := range d.sources {
		add(u.sourceOf, u.by, fmt.Sprintf("the input of task %q", u.by.name), u.by.name, u.by.pos)
	}
	for _, f := range d.flows {
		if f.when != nil {
			add(*f.when, f.from, fmt.Sprintf("the condition of flow %q", f.name()), f.name(), f.chosen)
			if last := len(all) - 1; last >= 0 && all[last].subject == f.name() {
				all[last].own = f.when.of == f.from
			}
		}
	}
	if d.result != nil {
		add(*d.result, nil, fmt.Sprintf("the result of workflow %q", d.name), d.name, d.result.pos)
	}
	return all
}

// passed lists the flows of a task that a completion without an output may take; nil if there is none.
func (d *draft) passed(n *node, why string) []int {
	if why == "" {
		return nil
	}
	var all []int
	for i, f := range d.flowsOut(n) {
		if f.without {
			return []int{i}
		}
		all = append(all, i)
	}
	return all
}

// alwaysGives reports whether the policy of a task completes it only if an item of it has completed: it does not complete a task
// whose only item was canceled.
func (n *node) alwaysGives() bool {
	if !n.task.Policy.BuiltIn() { // one with a function may decide by anything
		return false
	}
	verdict, err := n.task.Policy.Decide(workitem.Outcome{State: workitem.Canceled, Tally: workitem.Tally{Canceled: 1}})
	return err == nil && verdict != workitem.CompleteTask
}

// withoutOutput says why a task may complete though none of its items did; "" if its definition does not let it. That a
// person may cancel an item is no part of the definition.
func (n *node) withoutOutput() string {
	name := n.task.Policy.Name()
	if inner, held := strings.CutPrefix(name, "incident"); held { // it completes when the policy that it holds back does
		name = cmp.Or(strings.TrimPrefix(inner, ":"), "default")
	}
	switch {
	case n.kind != taskNode || n.alwaysGives():
		return ""
	case name != "default" && name != "threshold:0" && !n.task.Auto:
		return fmt.Sprintf("its policy %q lets it go on without", name)
	}
	for _, t := range n.task.Timers {
		if t.Does == workitem.Cancel {
			return fmt.Sprintf("its timer %q cancels what is late", t.Name)
		}
	}
	return ""
}
