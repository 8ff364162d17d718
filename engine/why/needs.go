package why

import (
	"context"
	"strings"

	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// readSettings reads what operators have set, and what functions take of limits.
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

// needs notes what a job that is due takes of limits, if it waits for none in this process. A limit that is paused has no room for any key, except
// for keys that have a number of their own. Of a limit that engines share it is known whether it has room, and which cases hold it; what others have
// in use is not.
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
		case paused && v.in.Limits == nil:
			need.Text += ", which is paused"
			w.Limits = append(w.Limits, need)
		case v.in.Limits == nil:
			w.Needs = append(w.Needs, need)
		}
	}
}

// noRoom notes of a limit that it has no room; false if it has.
func (v *visit) noRoom(need *Limit, l limit.Limit, out ration.Outlook) bool {
	if out.Wait <= 0 {
		return false
	}
	need.Text = limit.Reason{Limit: l, N: need.N, Wait: out.Wait}.String()
	need.HeldBy = ration.Cases(out.Holds)
	if out.Wait != limit.Unknown {
		need.Free = v.in.Now.Add(out.Wait)
	}
	return true
}

// needed names what is taken: "3 of rate openai", "breaker openai", "as much of rate openai as its input says".
func needed(t store.Takes, l limit.Limit) string {
	if l.Algorithm == limit.CircuitBreaker {
		return "breaker " + l.Name
	}
	l.N = max(l.N, 1) // what is paused is said elsewhere
	text := limit.Reason{Limit: l, N: t.N}.String()
	if t.N == 0 {
		text = "as much " + strings.TrimPrefix(text, "0 ") + " as its input says"
	}
	if t.Keyed {
		text += ", by a key of its input"
	}
	return text
}

// takes is what a job takes of limits, as far as the database has it.
func (in *Input) takes(c *state.Case, j *state.Job) []store.Takes {
	of := in.Takes[c.Fingerprint]
	if j.Kind == state.JobRun {
		return of.Tasks[j.Task]
	}
	return of.Calls[j.Name]
}
