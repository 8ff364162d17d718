package check

import (
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// dropInvented drops what is said of elements that the file does not have: the tasks and conditions that the reader of
// BPMN adds, which have no id there, and the regions, which are all its own. Such a task can never start only where
// something of the file cannot either, or where a process always ends in another way.
func (n *Net) dropInvented(ids map[string]string, o Options) {
	n.Report.Warnings = slices.DeleteFunc(n.Report.Warnings, func(w verify.Finding) bool {
		return w.Code == verify.RegionUseless || ids[w.Subject] == ""
	})
	if slices.ContainsFunc(n.Report.Findings, func(f verify.Finding) bool { return f.Code == verify.ImproperCompletion }) {
		n.findDeadTasks(ids, o)
	}
	n.Report.Findings = slices.DeleteFunc(n.Report.Findings, func(f verify.Finding) bool {
		return f.Code == verify.DeadTask && ids[f.Subject] == ""
	})
	if n.Report.Verdict == verify.WeaklySound && len(n.Report.Findings) == 0 {
		n.Report.Verdict = verify.Sound
	}
	for i := range n.Report.Findings {
		if f := &n.Report.Findings[i]; f.Code == verify.ImproperCompletion {
			leftBehind(f)
		}
	}
}

// findDeadTasks looks once more for tasks that can never start. What gathers the ends acts as soon as no more can be
// reached, and the case is over then, before what is stuck has gone on to where it stops. Here it takes its time.
func (n *Net) findDeadTasks(ids map[string]string, o Options) {
	patient := *n.def
	patient.Tasks = slices.Clone(patient.Tasks)
	for i := range patient.Tasks {
		if t := &patient.Tasks[i]; t.Join == net.Or && ids[t.Name] == "" {
			t.Kind = net.Atomic
		}
	}
	compiled, err := net.Compile(&patient)
	if err != nil {
		return // it is the net that was verified, with other kinds
	}
	again := verify.Net(compiled, verify.Options{States: o.States, Time: o.Time, Now: o.Now})
	if again.Verdict == verify.Unknown {
		return
	}
	isDead := func(f verify.Finding) bool { return f.Code == verify.DeadTask }
	findings := slices.DeleteFunc(n.Report.Findings, isDead)
	dead := slices.DeleteFunc(again.Findings, func(f verify.Finding) bool { return !isDead(f) })
	n.Report.Findings = append(dead, findings...)
}

// leftBehind says what an improper completion means in BPMN. A process is over when no token is left, and the routing
// task that gathers the ends waits for every token that can still reach one. So what is left over then is stuck.
func leftBehind(f *verify.Finding) {
	var names []string
	for _, e := range f.Elements[min(1, len(f.Elements)):] {
		names = append(names, `"`+e.Name+`"`)
	}
	if len(names) == 0 {
		return
	}
	f.Text = "a case can get stuck while other branches end: what waits at " + strings.Join(names, " and ") +
		" can reach no end"
	f.Fix = "make sure that every branch can reach an end, whatever the others do"
}
