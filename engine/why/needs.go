package why

import (
	"context"
	"strings"

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

// needs notes what a job that is due takes of limits, for a process that does not know what of them is in use. A limit that is paused
// has no room for any key, except for keys that have a number of their own.
func (v *visit) needs(w *Wait, j *state.Job) {
	for _, t := range v.takes(j) {
		set, known := v.in.Set[t.Limit]
		if !known {
			continue
		}
		paused := set.Current().N == 0 && ((!t.Keyed && t.Any == nil) || len(set.Keys) == 0)
		need := Limit{Limit: t.Limit, Any: t.Any, N: t.N, Text: needed(t, set.Limit)}
		if paused {
			need.Text += ", which is paused"
			w.Limits = append(w.Limits, need)
		} else {
			w.Needs = append(w.Needs, need)
		}
	}
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
