package builder

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
)

// SkippedOutput is the code of a warning: an input or a result is the output of a task that a case may not have
// completed by then, and of a type that cannot be nil. It is only a warning since what data decides is taken as free:
// a choice that is made twice by the same data leads past the task either never or both times.
const SkippedOutput net.Code = "skipped-output"

// What is searched for runs past tasks in Build: so long all together, and so many states for each. No search takes
// more than half of the time that is left, so that one that is hard leaves some to the others.
const (
	skippedTime   = 50 * time.Millisecond
	skippedStates = 20_000
)

// skipped warns of outputs that are read where they may not be there.
func (d *draft) skipped(n *net.Net) []net.Finding {
	if slices.Contains(d.silenced, SkippedOutput) {
		return nil
	}
	var found []net.Finding
	end := retry.SystemClock.Now().Add(skippedTime)
	past := func(task *node, to net.TaskID) *net.Witness {
		of, ok := n.TaskByName(task.name)
		left := end.Sub(retry.SystemClock.Now())
		if !ok || left <= 0 {
			return nil
		}
		return net.Bypass(n, of, to, net.VerifyOptions{
			States: skippedStates, Time: (left + 1) / 2, Now: retry.SystemClock.Now,
		})
	}
	for _, u := range d.sources {
		if u.of == nil || u.d != d || u.lacks {
			continue
		}
		by, _ := n.TaskByName(u.by.name)
		if w := past(u.of, by); w != nil {
			found = append(found, net.Finding{
				Code: SkippedOutput, Subject: u.by.name, Witness: w,
				Text: fmt.Sprintf("the input of task %q is the output of %q, which may not have completed by then: the task "+
					"cannot be enabled, and the command that comes there fails", u.by.name, u.of.name),
				Fix:      "make an input that may be missing with builder.From, and ask CaseInfo.Outputs",
				Elements: []net.Element{{Name: u.by.name, Pos: u.by.pos}, {Name: u.of.name, Pos: u.of.pos}},
			})
		}
	}
	if r := d.result; r != nil && r.of != nil && r.d == d && !r.lacks {
		if w := past(r.of, -1); w != nil {
			found = append(found, net.Finding{
				Code: SkippedOutput, Subject: d.name, Witness: w,
				Text: fmt.Sprintf("the result of workflow %q is the output of %q, which a case can end without: then its last "+
					"task cannot complete", d.name, r.of.name),
				Fix:      "make a result that not every case has with builder.FromCase, and ask CaseInfo.Outputs",
				Elements: []net.Element{{Name: d.name, Pos: r.pos}, {Name: r.of.name, Pos: r.of.pos}},
			})
		}
	}
	return found
}
