package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/workflow"
)

// soundStates is how far a test looks: farther than Build, which must not keep a program from starting.
const soundStates = 1_000_000

// Sound fails the test unless the net of each workflow is sound, and so are those of the workflows that its composite
// tasks run: every case can complete, completes with nothing left over, and every task can start. The failure shows the
// shortest run that shows what is wrong, in words, and the log has it as a scenario file for tasq script.
//
// It asks for more than Build. A net that is not decided fails, though the search is a long one and no clock ends it.
// So does one that is only weakly sound. Findings that builder.AllowUnsound allows pass; an allowance that nothing
// needs fails, for it would hide what comes later. Warnings are logged.
//
// Sound also fails the test if cases of the workflows, all of them together, can wait for each other for what they hold, see
// [verify.HoldDeadlock], unless one of them allows it.
//
//	func TestArticleIsSound(t *testing.T) { enginetest.Sound(t, article) }
func Sound(t testing.TB, workflows ...engine.Workflow) {
	t.Helper()
	seen := make(map[*workflow.Definition]bool)
	for _, w := range workflows {
		sound(t, w.Untyped(), seen)
	}
	soundHolds(t, workflows)
}

// soundHolds looks for cases that can wait for each other, as Open does and further.
func soundHolds(t testing.TB, workflows []engine.Workflow) {
	t.Helper()
	var with []*workflow.Definition
	for _, w := range workflows {
		if d := w.Untyped(); d != nil && d.HasHolds() && !slices.Contains(d.Verification.Allowed, verify.HoldDeadlock) {
			with = append(with, d)
		}
	}
	if len(with) == 0 {
		return
	}
	rep, err := workflow.VerifyHolds(with, verify.Options{States: soundStates})
	switch {
	case err != nil:
		t.Errorf("whether cases can wait for each other for what they hold is not decided: %v", err)
	case rep.Deadlock != nil:
		t.Errorf("%s", describe(rep.Deadlock.Finding()))
	case rep.Exhausted != verify.NoLimit:
		t.Errorf("whether cases can wait for each other for what they hold is not decided: %s ran out after %d states; hold over fewer tasks",
			rep.Exhausted, rep.States)
	}
}

func sound(t testing.TB, d *workflow.Definition, seen map[*workflow.Definition]bool) {
	t.Helper()
	if d == nil || seen[d] {
		return
	}
	seen[d] = true
	rep := verify.Net(d.Net, verify.Options{States: soundStates, Silence: d.Verification.Silenced})
	if rep.Verdict == verify.Unknown {
		t.Errorf("workflow %s: whether it is sound is not decided: %s ran out after %d states; "+
			"move a part of it into a composite task", d.Name, rep.Exhausted, rep.States)
	}
	needed := make(map[net.Code]bool)
	for _, f := range rep.Findings {
		needed[f.Code] = true
		if slices.Contains(d.Verification.Allowed, f.Code) {
			continue
		}
		t.Errorf("workflow %s is %s: %s", d.Name, rep.Verdict, describe(f))
		if text, err := scenario.Witness(d.Net.Definition(), f); err == nil {
			t.Logf("the run as a scenario file, for tasq script:\n%s", text)
		}
	}
	for _, c := range d.Verification.Allowed {
		if rep.Exhausted == verify.NoLimit && !needed[c] && slices.Contains(verify.FindingCodes(), c) {
			t.Errorf("workflow %s allows %s, which it has not: take that out of AllowUnsound", d.Name, c)
		}
	}
	for _, w := range rep.Warnings {
		t.Logf("workflow %s: warning: %s", d.Name, describe(w))
	}
	for i := range d.Tasks {
		for _, name := range d.Net.Task(net.TaskID(i)).Of {
			sound(t, d.Tasks[i].Of[name], seen)
		}
	}
}

// describe describes a finding, where its elements are, the run, and what may fix it.
func describe(f verify.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f, f.Text)
	var places []string
	for _, at := range f.Places() {
		places = append(places, at.String())
	}
	if len(places) > 0 {
		b.WriteString(" (" + strings.Join(places, ", ") + ")")
	}
	if f.Witness != nil {
		b.WriteString("\n\trun: " + f.Witness.String())
	}
	if f.Fix != "" {
		b.WriteString("\n\t" + f.Fix)
	}
	return b.String()
}

// Scenario writes the run for which Build refused a workflow as a scenario file, to be looked at step by step with tasq
// script: that of the first finding that has one, for no run shows a task that can never start. The error says that
// nothing in err is a [builder.UnsoundError] with a run, or that its net has a name that a scenario file cannot hold.
func Scenario(err error) (string, error) {
	all := unsound(err)
	if len(all) == 0 {
		return "", fmt.Errorf("no scenario can be written: %w", errors.Join(errNotUnsound, err))
	}
	best := all[0]
	if i := slices.IndexFunc(all, func(u *builder.UnsoundError) bool { return u.Witness != nil }); i >= 0 {
		best = all[i]
	}
	text, err := scenario.Witness(best.Net, best.Finding)
	return string(text), err
}

// unsound lists the findings in an error and all that it wraps.
func unsound(err error) []*builder.UnsoundError {
	if u, ok := err.(*builder.UnsoundError); ok {
		return []*builder.UnsoundError{u}
	}
	var wrapped []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		wrapped = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = e.Unwrap()
	}
	var all []*builder.UnsoundError
	for _, w := range wrapped {
		all = append(all, unsound(w)...)
	}
	return all
}

var errNotUnsound = errors.New("the error is not that a workflow is unsound")
