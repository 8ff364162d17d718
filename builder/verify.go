package builder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// UnsoundError is one reason why the net of a workflow is unsound, with its code and the shortest run that shows
// it.
//
//	_, err := b.Build()
//	if unsound := (*builder.UnsoundError)(nil); errors.As(err, &unsound) {
//		fmt.Println(unsound.Code, unsound.Witness)
//	}
type UnsoundError struct {
	Workflow string
	Pos      net.Pos         // where the workflow was declared
	Net      *net.Definition // what was refused
	verify.Finding
}

// Error returns the finding on one line, after the name of the workflow.
func (e *UnsoundError) Error() string {
	return e.Workflow + ": " + problemOf(e.Finding, e.Pos).String()
}

// allowable are the codes of findings that a workflow can have. Unsafe is not one: it is only said of plain nets.
func allowable() []net.Code {
	codes := slices.DeleteFunc(verify.FindingCodes(), func(c net.Code) bool { return c == verify.Unsafe })
	return slices.Concat(codes, verify.HoldCodes(), []net.Code{NoOutput})
}

// silenceable are the codes of warnings that a workflow can have. A dead task is one where it leaves the net weakly
// sound. A cycle of routing tasks is none: it is a problem.
func silenceable() []net.Code {
	codes := slices.DeleteFunc(verify.WarningCodes(), func(c net.Code) bool { return c == net.RoutingCycle })
	return slices.Concat(codes, verify.HoldCodes(), []net.Code{verify.DeadTask, NoOutput})
}

// AllowUnsound accepts findings with these codes: a net that is unsound ([verify.NoOptionToComplete], [verify.ImproperCompletion],
// [verify.DeadTask], [verify.Unbounded]), an output that may be missing where it is read ([NoOutput]), or cases that can deadlock over the
// limits that they hold ([verify.HoldDeadlock]). It is part of the definition and its fingerprint, and is shown with it. An unknown code is
// a problem.
func AllowUnsound(codes ...net.Code) Option {
	pos := caller()
	return func(d *draft) { d.allowed = d.codes(d.allowed, "AllowUnsound", codes, allowable(), pos) }
}

// Silence omits warnings with these codes from [Workflow.Warnings]: those of package verify such as verify.OrJoinCircle and
// verify.Undecided, [NoOutput], and verify.DeadTask if the net is weakly sound nevertheless. It is part of the definition and
// its fingerprint. An unknown code is a problem.
func Silence(codes ...net.Code) Option {
	pos := caller()
	return func(d *draft) { d.silenced = d.codes(d.silenced, "Silence", codes, silenceable(), pos) }
}

// codes adds codes to a sorted list, but for those that are not known.
func (d *draft) codes(list []net.Code, option string, codes, known []net.Code, pos net.Pos) []net.Code {
	if len(codes) == 0 {
		d.problem(BadCode, d.name, pos, "%s of workflow %q names no code; name one of %s, or leave it out", option, d.name,
			codesIn(known))
	}
	for _, c := range codes {
		if slices.Contains(known, c) {
			list = append(list, c)
			continue
		}
		d.problem(BadCode, string(c), pos, "%s of workflow %q names %q, which is no code that it knows; it knows %s", option,
			d.name, c, codesIn(known))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func codesIn(codes []net.Code) string {
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// A program that defines its workflows as it starts must not wait for a net that is beyond deciding. What is left
// undecided is a warning, so that a slow machine warns where a fast one is sure, and both start.
const (
	verifyTime   = 200 * time.Millisecond
	verifyStates = 100_000
)

// verify decides whether the net is sound. The error is an [*Error] with the findings that are not allowed.
func (d *draft) verify(n *net.Net) (workflow.Verification, error) {
	rep := verify.Net(n, verify.Options{
		States: verifyStates, Time: verifyTime, Now: retry.SystemClock.Now, Silence: d.silenced,
	})
	v := workflow.Verification{
		Verdict: rep.Verdict, Allowed: d.allowed, Silenced: d.silenced, Warnings: rep.Warnings,
	}
	refused := &Error{Workflow: d.name, Pos: d.pos, Net: n.Definition(), Warnings: rep.Warnings}
	for _, f := range rep.Findings {
		switch {
		case slices.Contains(d.allowed, f.Code):
			v.Findings = append(v.Findings, f)
		case rep.Verdict == verify.WeaklySound:
			v.Findings = append(v.Findings, f)
			if !slices.Contains(d.silenced, f.Code) {
				v.Warnings = append(v.Warnings, f)
			}
		default:
			refused.Findings = append(refused.Findings, f)
			refused.Problems = append(refused.Problems, problemOf(f, d.pos))
		}
	}
	missing, undecided := d.missing(n)
	deadlocks, open := d.verifyHolds(n, d.tasks())
	for _, f := range slices.Concat(missing, deadlocks) {
		if slices.Contains(d.allowed, f.Code) {
			v.Findings = append(v.Findings, f)
			continue
		}
		refused.Findings = append(refused.Findings, f)
		refused.Problems = append(refused.Problems, problemOf(f, d.pos))
	}
	if len(refused.Findings) > 0 {
		refused.Problems = sorted(refused.Problems)
		return v, refused
	}
	if rep.Verdict == verify.Unknown && !slices.Contains(d.silenced, verify.Undecided) {
		v.Warnings = append(v.Warnings, d.undecided(rep))
	}
	if !slices.Contains(d.silenced, NoOutput) {
		v.Warnings = append(v.Warnings, undecided...)
	}
	if !slices.Contains(d.silenced, verify.HoldDeadlock) {
		v.Warnings = append(v.Warnings, open...)
	}
	return v, nil
}

// undecided is the warning that the verdict is not known.
func (d *draft) undecided(rep verify.Report) verify.Finding {
	return verify.Finding{
		Code: verify.Undecided,
		Text: fmt.Sprintf("whether every case can complete is not decided: %s ran out after %d states",
			rep.Exhausted, rep.States),
		Fix: "move a part of the net into a composite task, whose net is verified on its own, or test it with " +
			"enginetest.Sound",
		Elements: []verify.Element{{Name: d.name, Pos: d.pos}},
	}
}

// problemOf makes a problem of a finding, at the first place of its elements other than that of the workflow, where the
// start and the end are declared.
func problemOf(f verify.Finding, workflow net.Pos) net.Problem {
	places := slices.DeleteFunc(f.Places(), func(at net.Pos) bool { return at == workflow })
	p := net.Problem{Code: f.Code, Subject: f.Subject, Text: f.Text, Pos: workflow}
	if len(places) > 0 {
		p.Pos = places[0]
	}
	if len(places) > 1 {
		p.Other = places[1]
	}
	if len(places) > 2 {
		var more []string
		for _, at := range places[2:] {
			more = append(more, at.String())
		}
		p.Text += " (also " + strings.Join(more, ", ") + ")"
	}
	if f.Witness != nil {
		p.Text += "; run: " + f.Witness.Brief(maxSteps)
	}
	return p
}

// maxSteps bounds the steps of a run that a problem shows; the finding has them all.
const maxSteps = 40

// advice is what stands below a problem that is a finding.
func (e *Error) advice(p net.Problem) string {
	for _, f := range e.Findings {
		if f.Code != p.Code || f.Subject != p.Subject {
			continue
		}
		text := fmt.Sprintf("\n\tor allow it with builder.AllowUnsound(%q)", f.Code)
		if f.Fix != "" {
			text = "\n\t" + f.Fix + "," + text
		}
		return text
	}
	return ""
}
