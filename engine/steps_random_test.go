package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// op is one step of a random function. It is the input of a case, so that a replay does the same.
type op struct {
	Kind  string `json:"kind"`            // do, sleep, await, call
	N     int    `json:"n"`               // failures before a success; seconds of a sleep, a timeout or the child's sleep
	Event string `json:"event,omitempty"` // of await
}

// reference does what a function of ops should do, by the plainest means: it knows when it continues, and what it has.
type reference struct {
	wrong string // its fault, one of referenceFaults; "" if it has none
	ops   []op
	at    int
	tries int
	wake  time.Time // zero: it waits for an event alone
	armed bool      // it has begun to wait at ops[at]
	mail  map[string][]string
	out   []string
	over  bool
}

// referenceFaults are ways in which a reference can be wrong; the comparison has to see each.
var referenceFaults = []string{"keeps no event", "takes the latest event", "takes any event", "is late", "has no timeout", "tries once more",
	"ends early", "forgets a result", "waits for no time"}

// run continues as far as it can at the given time.
func (r *reference) run(now time.Time) {
	for !r.over {
		if r.at == len(r.ops) || r.wrong == "ends early" && r.at == len(r.ops)-1 {
			r.over = true
			return
		}
		if !r.step(r.ops[r.at], now) {
			return
		}
		r.at, r.armed, r.tries = r.at+1, false, 0
	}
}

// step reports whether the op has ended.
func (r *reference) step(o op, now time.Time) bool {
	if o.Kind == "await" && len(r.mail[o.Event]) > 0 && (!r.armed || now.Before(r.wake) || r.wake.IsZero()) {
		r.take(o.Event)
		return true
	}
	if r.armed && (r.wake.IsZero() || now.Before(r.wake)) {
		return false
	}
	switch {
	case o.Kind == "do":
		if r.tries++; r.tries > o.N && (r.wrong != "tries once more" || r.tries > o.N+1) {
			r.out = append(r.out, fmt.Sprint("did ", r.tries))
			return true
		}
		r.armed, r.wake = true, now.Add(time.Second)
		return false
	case r.armed && o.Kind == "await":
		r.out = append(r.out, "timeout")
		return true
	case r.armed:
		if r.wrong != "forgets a result" {
			r.out = append(r.out, o.Kind)
		}
		return true
	}
	r.armed, r.wake = true, now.Add(time.Duration(o.N)*time.Second)
	switch {
	case o.Kind == "await" && (o.N == 0 || r.wrong == "has no timeout"):
		r.wake = time.Time{}
	case r.wrong == "is late":
		r.wake = r.wake.Add(time.Second)
	}
	return r.wrong != "waits for no time" && (o.Kind == "sleep" || o.Kind == "call") && o.N == 0 && r.step(o, now)
}

// send gives the reference an event.
func (r *reference) send(event, value string, now time.Time) {
	waits := !r.over && r.armed && r.ops[r.at].Kind == "await"
	switch {
	case r.wrong == "keeps no event" && !waits:
	case r.wrong == "takes any event" && waits:
		event = r.ops[r.at].Event
		fallthrough
	default:
		r.mail[event] = append(r.mail[event], value)
	}
	r.run(now)
}

// take gives the function the event that was sent first.
func (r *reference) take(event string) {
	mail := r.mail[event]
	at := 0
	if r.wrong == "takes the latest event" {
		at = len(mail) - 1
	}
	r.out = append(r.out, mail[at])
	r.mail[event] = slices.Delete(mail, at, at+1)
}

// perform is the same as a function of steps.
func perform(did func(name string) int) func(context.Context, []op) ([]string, error) {
	return func(ctx context.Context, ops []op) ([]string, error) {
		w, _ := builder.WorkFrom(ctx)
		out := []string{}
		for i, o := range ops {
			name := fmt.Sprint(o.Kind, " ", i)
			var got string
			var err error
			switch o.Kind {
			case "do":
				got, err = step.Do(ctx, name, func(context.Context) (string, error) {
					n := did(w.Job.String() + name)
					if n <= o.N {
						return "", fmt.Errorf("failure %d", n)
					}
					return fmt.Sprint("did ", n), nil
				}, step.Retry(retry.Constant(10, time.Second)))
			case "sleep":
				got, err = "sleep", step.Sleep(ctx, name, time.Duration(o.N)*time.Second)
			case "await":
				opts := []step.Option{step.Named(name)}
				if o.N > 0 {
					opts = append(opts, step.Timeout(time.Duration(o.N)*time.Second))
				}
				if got, err = step.Await[string](ctx, o.Event, opts...); errors.Is(err, step.ErrTimeout) {
					got, err = "timeout", nil
				}
			case "call":
				got, err = step.Call[string](ctx, name, "child", o.N)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, got)
		}
		return out, nil
	}
}

// Random functions, events and crashes end as the reference does.
func TestRandomFunctions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { playFunctions(t, rt, rt, "") })
}

// The comparison sees each fault of a reference.
func TestAWrongReferenceOfFunctionsDisagrees(t *testing.T) {
	for _, wrong := range referenceFaults {
		requireDifference(t, wrong, func(t *testing.T, rt *rapid.T, c require.TestingT) { playFunctions(t, rt, c, wrong) })
	}
}

// anOp draws one step of a function.
var anOp = rapid.Custom(func(t *rapid.T) op {
	o := op{Kind: rapid.SampledFrom([]string{"do", "sleep", "await", "call"}).Draw(t, "kind"), N: rapid.IntRange(0, 4).Draw(t, "n")}
	if o.Kind == "await" {
		o.Event = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "event")
	}
	return o
})

// playFunctions runs random functions on an engine and on references that have the fault, and compares them all the way.
func playFunctions(t *testing.T, rt *rapid.T, c require.TestingT, wrong string) {
	var calls tally
	child, _ := function(t, "child", func(ctx context.Context, n int) (string, error) {
		return "call", step.Sleep(ctx, "nap", time.Duration(n)*time.Second)
	})
	w, _ := function(t, "random", perform(calls.add))
	e := enginetest.New(t, w, child)
	now := virtual.Epoch
	var ids []workitem.CaseID
	var refs []*reference
	for range rapid.IntRange(1, 4).Draw(rt, "cases") {
		ops := rapid.SliceOfN(anOp, 0, 6).Draw(rt, "ops")
		ref := &reference{wrong: wrong, ops: ops, mail: map[string][]string{}}
		ids, refs = append(ids, start(t, e, w, slices.Clone(ops))), append(refs, ref)
		ref.run(now)
	}
	for i := range rapid.IntRange(0, 20).Draw(rt, "actions") {
		switch at := rapid.IntRange(0, len(ids)-1).Draw(rt, "case"); rapid.IntRange(0, 4).Draw(rt, "action") {
		case 0:
			e.Crash()
			e.Drain()
		case 1, 2:
			event, value := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "event"), fmt.Sprint("value ", i)
			err := enginetest.Do(t.Context(), e, workflow.Send(ids[at], event, value))
			require.Equal(c, refs[at].over, err != nil, "%v", err)
			e.Drain()
			if !refs[at].over {
				refs[at].send(event, value, now)
			}
		default:
			d := time.Duration(rapid.IntRange(1, 3).Draw(rt, "seconds"))*time.Second + time.Duration(i)*time.Millisecond
			e.Advance(d)
			now = advance(refs, now.Add(d))
		}
		_, err := engine.CheckRecalled(t.Context(), e.Engine)
		require.NoError(rt, err)
		for i, ref := range refs {
			require.Equal(c, ref.over, outcome(t, e, ids[i]) != "started", "case %d: %+v", i, ref)
		}
	}
	finishRandom(t, c, e, ids, refs, now)
	e.Check()
}

// advance has every reference continue at each of its own times, up to the end.
func advance(refs []*reference, end time.Time) time.Time {
	for _, r := range refs {
		for !r.over && r.armed && !r.wake.IsZero() && !r.wake.After(end) {
			r.run(r.wake)
		}
	}
	return end
}

// finishRandom sends what is still waited for, and compares the results.
func finishRandom(t *testing.T, c require.TestingT, e *enginetest.Engine, ids []workitem.CaseID, refs []*reference, now time.Time) {
	for i, r := range refs {
		for n := 0; !r.over; n++ {
			require.Less(c, n, 100, "the reference does not end: %+v", r)
			if o := r.ops[r.at]; o.Kind == "await" {
				value := fmt.Sprint("last ", n)
				require.NoError(c, enginetest.Do(t.Context(), e, workflow.Send(ids[i], o.Event, value)))
				e.Drain()
				r.send(o.Event, value, now)
				continue
			}
			e.Advance(time.Second)
			now = advance(refs, now.Add(time.Second))
		}
	}
	for i, r := range refs {
		want := "completed: ["
		for n, s := range r.out {
			if n > 0 {
				want += ","
			}
			want += fmt.Sprintf("%q", s)
		}
		require.Equal(c, want+"]", outcome(t, e, ids[i]))
	}
}
