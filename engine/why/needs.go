package why

import (
	"context"
	"strings"
	"time"

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
// for keys that have a number of their own. Of a limit that engines share it is known whether it has room; what others have in use is not.
func (v *visit) needs(w *Wait, j *state.Job) {
	for _, t := range v.takes(j) {
		set, known := v.in.Set[t.Limit]
		if !known {
			continue
		}
		need := Limit{Limit: t.Limit, Any: t.Any, N: t.N, Text: needed(t, set.Limit)}
		if wait, known := v.free(t, &set); known {
			if wait > 0 {
				l := set.Current()
				need.Text = limit.Reason{Limit: l, N: t.N, Wait: wait}.String()
				if wait != limit.Unknown {
					need.Free = v.in.Now.Add(wait)
				}
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

// free says how long it takes until there is room for what a job takes, as far as that is known here.
func (v *visit) free(t store.Takes, set *store.LimitValue) (time.Duration, bool) {
	l := set.Current()
	if v.in.Free == nil || t.Keyed || t.Any != nil || t.N == 0 || l.N == 0 || t.N > l.Capacity() {
		return 0, false
	}
	return v.in.Free(l, "", t.N)
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
func (v *visit) takes(j *state.Job) []store.Takes {
	of := v.in.Takes[v.c.Fingerprint]
	if j.Kind == state.JobRun {
		return of.Tasks[j.Task]
	}
	return of.Calls[j.Name]
}
