package check

import (
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// dropAdded removes findings about elements that the file does not have: tasks and conditions that the reader of BPMN
// adds, which have no id in the file, and regions, all of which it adds. If such a task can never start, either an
// element of the file cannot start, which is reported, or the process always ends in another way.
func (n *Net) dropAdded(ids map[string]string, o Options) {
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
			leftTokens(f)
		}
	}
}

// findDeadTasks repeats the search for tasks that can never start. The or-join that the reader adds before the end fires
// as soon as no more tokens can reach it, and as a routing task it ends the case before tokens elsewhere have moved on to
// where they get stuck. So tasks on their way seem dead. In the copy that is verified here it is an atomic task, and the
// other tasks can start before it.
func (n *Net) findDeadTasks(ids map[string]string, o Options) {
	copied := *n.def
	copied.Tasks = slices.Clone(copied.Tasks)
	for i := range copied.Tasks {
		if t := &copied.Tasks[i]; t.Join == net.Or && ids[t.Name] == "" {
			t.Kind = net.Atomic
		}
	}
	compiled, err := net.Compile(&copied)
	if err != nil {
		return // impossible: the net was compiled with other kinds before
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

// leftTokens replaces the text of an improper completion by what it means in BPMN. A process ends when no token is left,
// and the routing task before the end waits for every token that can still reach an end. So the remaining tokens are
// stuck.
func leftTokens(f *verify.Finding) {
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
