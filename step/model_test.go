package step_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// end is what an operation comes to in the model: when, with what, or with which error.
type end struct {
	at   time.Duration
	text string
	code string
}

// The model knows nothing of journals, runs and suspensions: it says what a program comes to if nothing ever fails but
// what is meant to, and nothing takes time but what is meant to.
func modelOf(ops []op, now time.Duration) end {
	var b strings.Builder
	for _, o := range ops {
		e := modelOfOne(o, now)
		now = e.at
		if e.code != "" {
			e.text = "!" + e.code
			if !o.caught {
				return end{at: now, code: e.code}
			}
		}
		fmt.Fprintf(&b, "(%s %s)", o.name, e.text)
	}
	return end{at: now, text: b.String()}
}

func modelOfOne(o op, now time.Duration) end {
	switch o.kind {
	case "do":
		if o.fails < o.tries {
			return end{now + time.Duration(o.fails)*o.d, "done", ""}
		}
		return end{now + time.Duration(o.tries-1)*o.d, "", "flaky"}
	case "sleep":
		return end{now + o.d, "slept", ""}
	case "now":
		return end{now, now.String(), ""}
	case "await":
		return within(o, now, end{max(now, o.at), "sent", ""})
	case "call":
		codes := map[workitem.StepState]string{workitem.StepFailed: "sank", workitem.StepCanceled: "canceled"}
		return within(o, now, end{now + o.d, "shipped", codes[o.ends]})
	case "map":
		return modelOfMap(o, now)
	}
	return modelOfBranches(o, now)
}

func within(o op, now time.Duration, e end) end {
	if o.limit > 0 && e.at > now && e.at >= now+o.limit {
		return end{now + o.limit, "", "timeout"}
	}
	return e
}

func modelOfBranches(o op, now time.Duration) end {
	ends := make([]end, len(o.subs))
	first, last := -1, now
	for i, sub := range o.subs {
		ends[i] = modelOf(sub, now)
		last = max(last, ends[i].at)
		fits := o.kind == "race" || (ends[i].code == "") == (o.kind == "any")
		if fits && (first < 0 || ends[i].at < ends[first].at) {
			first = i
		}
	}
	switch {
	case o.kind == "all" && first < 0:
		return end{last, joinTexts(ends), ""}
	case first < 0: // of any: the first of all its errors has the say
		return end{last, "", firstCode(ends)}
	case ends[first].code != "":
		return end{ends[first].at, "", ends[first].code}
	}
	return end{ends[first].at, fmt.Sprint(first, ":", ends[first].text), ""}
}

// firstCode is what errors.Is and errors.As find first in all the errors.
func firstCode(ends []end) string {
	for _, special := range []string{"canceled", "timeout"} {
		for _, e := range ends {
			if e.code == special {
				return special
			}
		}
	}
	return ends[0].code
}

func joinTexts(ends []end) string {
	texts := make([]string, len(ends))
	for i, e := range ends {
		texts[i] = e.text
	}
	return strings.Join(texts, "|")
}

// modelOfMap has so many workers, of which the one that is free first takes the next input.
func modelOfMap(o op, now time.Duration) end {
	free := make([]time.Duration, o.most)
	for i := range free {
		free[i] = now
	}
	var ends []end
	bad := -1
	for i, sub := range o.subs {
		k := 0
		for j := range free {
			if free[j] < free[k] {
				k = j
			}
		}
		if bad >= 0 && ends[bad].at <= free[k] {
			break // none is started after a failure
		}
		ends = append(ends, modelOf(sub, free[k]))
		free[k] = ends[i].at
		if ends[i].code != "" && (bad < 0 || ends[i].at < ends[bad].at) {
			bad = i
		}
	}
	if bad >= 0 {
		return end{ends[bad].at, "", ends[bad].code}
	}
	last := now
	for _, e := range ends {
		last = max(last, e.at)
	}
	return end{last, joinTexts(ends), ""}
}

// A job does what its program says, however often the process dies, and whatever it waits for.
func TestRandomProgramsDoWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t}
		ops := g.sequence(2, 5)
		want := modelOf(ops, 0)
		p := newPlayer()
		p.job.Later = rapid.Bool().Draw(t, "later")
		out := p.drive(t, ops, true)
		p.check(t, ops)
		if got := codeOf(out.Err); got != want.code {
			t.Fatalf("the job ended with %v (%s), want %q\n%v", out.Err, got, want.code, p.job)
		}
		if want.code == "" && p.trace != want.text {
			t.Fatalf("got  %s\nwant %s\n%v", p.trace, want.text, p.job)
		}
		if got := p.job.Now().Sub(p.begin); got != want.at {
			t.Fatalf("it took %v, want %v\n%v", got, want.at, p.job)
		}
	})
}

// With workers that are away, functions that take their time, and leases that are lost, no model says what comes first.
// But every run sees the same, each function is called once for each attempt, and every job comes to its end.
func TestRandomProgramsWithFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t, chaos: true}
		ops := g.sequence(2, 5)
		p := newPlayer()
		p.job.Later = rapid.Bool().Draw(t, "later")
		out := p.drive(t, ops, false)
		p.check(t, ops)
		for _, kind := range []error{
			step.ErrChanged, step.ErrDuplicate, step.ErrHistory, step.ErrUsage, step.ErrLost, step.ErrSuspended,
		} {
			if errors.Is(out.Err, kind) {
				t.Fatalf("the job ended with %v\n%v", out.Err, p.job)
			}
		}
	})
}

// pass lets time pass while a function runs, with all that happens meanwhile.
func (p *player) pass(d time.Duration) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	target := p.job.Now().Add(d)
	for {
		at, do, ok := p.world.next(p)
		if !ok || at.After(target) {
			break
		}
		p.job.Advance(max(at.Sub(p.job.Now()), 0))
		do()
	}
	p.job.Advance(max(target.Sub(p.job.Now()), 0))
}

// drive runs the job to its end. With prompt, it is run as soon as it can be; otherwise whenever.
func (p *player) drive(t *rapid.T, ops []op, prompt bool) step.Outcome {
	p.world = outsideOf(ops)
	for runs := 0; ; runs++ {
		if runs > 2000 {
			t.Fatalf("the job does not end\n%v", p.job)
		}
		if rapid.IntRange(0, 2).Draw(t, "crash") == 0 {
			p.crashes++
			p.job.CrashAt(rapid.IntRange(1, 6).Draw(t, "at"), rapid.Bool().Draw(t, "after"))
		}
		p.forget()
		out := p.job.Run(t.Context(), p.main(ops))
		if p.job.Settled() {
			return step.Outcome{Err: p.job.Err()}
		}
		if out.Err != nil && !errors.Is(out.Err, step.ErrLost) {
			t.Fatalf("neither settled nor lost nor suspended: %v", out.Err)
		}
		away := !prompt && rapid.Bool().Draw(t, "away")
		for !p.job.Ready() || away {
			away = p.elapse(t) && away && rapid.Bool().Draw(t, "still away")
		}
	}
}

// forget drops what was seen of values that had no commit before a crash: they are asked for again.
func (p *player) forget() {
	for name, text := range p.seen {
		if strings.HasPrefix(name, "now") && p.job.Step(name) == nil || strings.Contains(text, "(now") {
			delete(p.seen, name)
		}
	}
}

// elapse lets time pass until something happens. It reports whether anything did.
func (p *player) elapse(t *rapid.T) bool {
	at, do, ok := p.world.next(p)
	due, timed := p.job.NextDue()
	switch {
	case timed && (!ok || due.Before(at)):
		p.job.Advance(max(due.Sub(p.job.Now()), 0))
	case ok:
		p.job.Advance(max(at.Sub(p.job.Now()), 0))
		do()
	case !p.job.Ready():
		t.Fatalf("the job waits for nothing\n%v", p.job)
	default:
		return false
	}
	return true
}

// check looks at what a job leaves behind.
func (p *player) check(t *rapid.T, ops []op) {
	if len(p.wrong) > 0 {
		t.Fatalf("runs differ: %s\n%v", strings.Join(p.wrong, "; "), p.job)
	}
	names := make(map[string]bool)
	for _, s := range p.job.Steps() {
		if names[s.Name] {
			t.Fatalf("%q is there twice\n%v", s.Name, p.job)
		}
		names[s.Name] = true
		if !s.State.Final() {
			t.Fatalf("%q is left waiting\n%v", s.Name, p.job)
		}
		if s.Kind == workitem.StepDo && s.State != workitem.StepCanceled && p.called[s.Name] < s.Attempt {
			t.Fatalf("%q has %d attempts, and was called %d times", s.Name, s.Attempt, p.called[s.Name])
		}
	}
	for name, n := range p.called {
		made := 1
		if s := p.job.Step(name); s != nil {
			made = max(s.Attempt, 1)
			if s.State == workitem.StepCanceled {
				made++ // it was being called as another branch was chosen
			}
		}
		if n > made+p.crashes {
			t.Fatalf("%q was called %d times for %d attempts, with %d crashes\n%v", name, n, made, p.crashes, p.job)
		}
	}
}
