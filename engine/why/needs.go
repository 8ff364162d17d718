package why

import (
	"context"
	"strings"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// readSettings reads the settings of operators, and the limits of functions.
func (in *Input) readSettings(ctx context.Context, r store.Reader) error {
	all, err := r.Settings(ctx)
	if err != nil {
		return err
	}
	if in.Set, in.Paused, err = store.ReadControls(all); err != nil {
		return err
	}
	in.Takes, err = store.ReadTakes(all)
	return err
}

// What is known of the limits of a job depends on who asks:
//
//	Here.Limits              the engine that has the job       whether it waits for them, its place in the line
//	the row of the limit     every process                     for shared limits and holds: whether there is room, who holds it
//	the setting              every process                     whether the limit is paused
//	nothing of these         every process                     how much the job needs (Wait.Needs)

// needs records what a due job needs of limits, if it does not wait for one in this process. A paused limit has no room
// for any key, except for keys with definitions of their own. For a limit that engines share, its row says whether it
// has room, and which cases hold it; the usage of any other limit is only known to its engine.
func (v *visit) needs(w *Wait, j *state.Job) {
	for _, t := range v.in.takes(v.c, j) {
		set, known := v.in.Set[t.Limit]
		if !known {
			continue
		}
		need := Limit{Limit: t.Limit, Any: t.Any, N: t.N, Text: needed(t, set.Limit)}
		if out, known := v.look(&t, &set, j); known {
			if v.noRoom(&need, set.Current(), out) {
				w.Limits = append(w.Limits, need)
			}
			continue
		}
		switch paused := set.Current().N == 0 && ((!t.Keyed && t.Any == nil) || len(set.Keys) == 0); {
		case paused:
			need.Text += ", which is paused"
			w.Limits = append(w.Limits, need)
		case v.in.Limits == nil || v.in.Elsewhere != nil && v.in.Elsewhere(j.ID):
			w.Needs = append(w.Needs, need)
		}
	}
}

// noRoom records that a limit has no room; false if it has. A time is given only if time alone brings room: when a holder
// releases its slots cannot be foreseen.
func (v *visit) noRoom(need *Limit, l limit.Limit, out quota.Outlook) bool {
	if out.Wait <= 0 {
		return false
	}
	need.Text = limit.Reason{Limit: l, N: need.N, Wait: out.Wait}.String()
	need.HeldBy = quota.Cases(out.Holds)
	if out.Wait != limit.Unknown {
		need.Free = v.in.Now.Add(out.Wait)
	}
	return true
}

// needed describes an amount: "3 of rate openai", "breaker openai", "as much of rate openai as its input says".
func needed(t store.Takes, l limit.Limit) string {
	if l.Algorithm == limit.CircuitBreaker {
		return "breaker " + l.Name
	}
	l.N = max(l.N, 1) // that it is paused is reported elsewhere
	text := limit.Reason{Limit: l, N: t.N}.String()
	if t.N == 0 {
		text = "as much " + strings.TrimPrefix(text, "0 ") + " as its input says"
	}
	if t.Keyed {
		text += ", by a key of its input"
	}
	return text
}

// takes returns what a job needs of limits, as far as the database has it.
func (in *Input) takes(c *state.Case, j *state.Job) []store.Takes {
	of := in.Takes[c.Fingerprint]
	if j.Kind == state.JobRun {
		return of.Tasks[j.Task]
	}
	return of.Calls[j.Name]
}
