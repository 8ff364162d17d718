package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// family draws workflows of which each may have cases of the later ones as children.
type family struct {
	t *rapid.T
	b strings.Builder

	of    []string // workflows that a composite task may have
	tasks []string // of the workflow that is drawn
	n     int
}

func (f *family) upTo(what string, most int) int { return rapid.IntRange(0, most).Draw(f.t, what) }

func (f *family) one(what string, of ...string) string { return rapid.SampledFrom(of).Draw(f.t, what) }

// line writes a statement of the net notation.
func (f *family) line(format string, args ...any) { fmt.Fprintf(&f.b, "  "+format+"\n", args...) }

// task declares a task with some work, and attributes of its join and split.
func (f *family) task(attributes string) string {
	f.n++
	name := fmt.Sprint("t", f.n)
	f.tasks = append(f.tasks, name)
	policy := f.one("policy", "", "", " policy=continue", " policy=incident", " policy=quorum:1")
	kinds := []string{"person", "person", "several", "auto", "dummy", "timed"}
	if len(f.of) > 0 {
		kinds = append(kinds, "composite", "composite", "composite")
	}
	switch f.one("kind", kinds...) {
	case "person":
		f.line("task %s%s%s", name, policy, attributes)
	case "several":
		f.line("task %s items=%d%s%s", name, 1+f.upTo("items", 2), policy, attributes)
	case "auto":
		f.line("task %s auto%s", name, attributes)
	case "dummy":
		f.line("dummy %s%s", name, attributes)
	case "timed":
		f.line("task %s timeout=%dm%s%s", name, 1+f.upTo("minutes", 9), policy, attributes)
	case "composite":
		f.line("composite %s of %s cases=%d%s%s", name, f.one("of", f.of...), 1+f.upTo("cases", 1), policy, attributes)
	}
	return name
}

// block draws a part with one task at its begin and one at its end.
func (f *family) block(depth int) (first, last string) {
	shapes := []string{"task"}
	if depth > 0 {
		shapes = []string{"task", "sequence", "and", "xor", "or", "loop"}
	}
	switch shape := f.one("shape", shapes...); shape {
	case "sequence":
		first, last = f.block(depth - 1)
		for range 1 + f.upTo("more", 1) {
			from, to := f.block(depth - 1)
			f.line("flow %s -> %s", last, from)
			last = to
		}
		return first, last
	case "and", "xor", "or":
		first, last = f.task(" split="+shape), f.task(" join="+shape)
		for range 2 + f.upTo("branches", 1) {
			from, to := f.block(depth - 1)
			f.line("flow %s -> %s", first, from)
			f.line("flow %s -> %s", to, last)
		}
		return first, last
	case "loop":
		first, last = f.task(" join=xor"), f.task(" split=xor")
		from, to := f.block(depth - 1)
		f.line("flow %s -> %s", first, from)
		f.line("flow %s -> %s", to, last)
		f.n++
		f.line("dummy t%d", f.n) // the split's first flow, which what follows the loop is behind
		next := fmt.Sprint("t", f.n)
		f.line("flow %s -> %s", last, next)
		f.line("flow %s -> %s", last, first)
		return first, next
	}
	name := f.task("")
	return name, name
}

// workflow draws a workflow, with regions and flows across its blocks where it stays sound; before is the text of the other workflows.
func (f *family) workflow(before, name string) string {
	f.b.Reset()
	f.tasks, f.n = nil, 0
	fmt.Fprintf(&f.b, "workflow %s\n  start s\n  end e\n", name)
	first, last := f.block(2)
	f.line("flow s -> %s", first)
	f.line("flow %s -> e", last)
	text := before + f.b.String()
	for range f.upTo("changes", 3) {
		changed := text + fmt.Sprintf("  cancel %s: %s\n", f.one("by", f.tasks...), f.one("canceled", f.tasks...))
		if f.one("change", "region", "flow") == "flow" {
			changed = text + fmt.Sprintf("  flow %s -> %s\n", f.one("from", f.tasks...), f.one("to", f.tasks...))
		}
		if isSound(f.t, changed) {
			text = changed
		}
	}
	f.of = append(f.of, name)
	return text
}

// isSound reports whether the last workflow of a text is well-formed and sound.
func isSound(t require.TestingT, text string) bool {
	parsed, err := scenario.ParseNotation(net.Pos{}, text)
	require.NoError(t, err, text)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err, text)
	if len(problems) > 0 {
		return false
	}
	return verify.Net(defs[len(defs)-1].Net, verify.Options{States: 20_000}).Verdict == verify.Sound
}

// Cases of random workflows with child cases over three levels, or-joins, regions, loops and timeouts are completed, broken and repaired at random:
// each act is done or refused, every case has a person or a job that can act, and can be brought to its end; the database is whole.
func TestRandomFamiliesOfWorkflowsCanEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &family{t: rt}
		text := f.workflow(f.workflow(f.workflow("", "low"), "middle"), "top")
		if !isSound(rt, text) {
			rt.Fatalf("blocks make an unsound workflow:\n%s", text)
		}
		b := &breaker{t: t, e: enginetest.New(t, compiled(t, text)...), log: []string{text}}
		b.play(rt, "top", "top")
	})
}
