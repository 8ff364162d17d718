package why

import (
	"context"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// The row of a shared limit is in the store, so every process that can read the store knows when it has room again, and
// which cases hold slots over several tasks.

// readRows reads the rows of the limits that jobs and steps of the tree need, as far as their keys are known, and those
// with holds of cases of the tree.
func (in *Input) readRows(ctx context.Context, r store.Reader) (err error) {
	var f store.LimitFilter
	in.Tree.Each(func(c *state.Case) {
		if in.Takes[c.Fingerprint].Holds("") {
			f.Text = in.Tree.Root.String()
		}
		for j := range c.Jobs.All() {
			for _, t := range in.takes(c, j) {
				if !t.Keyed && t.Any == nil && j.State == state.JobPending {
					f.Keys = append(f.Keys, store.LimitKey{Limit: t.Limit})
				}
			}
		}
		for s := range c.Steps.All() {
			for _, t := range s.Takes() {
				f.Keys = append(f.Keys, store.LimitKey{Limit: t.Limit, Key: t.Key})
			}
		}
	})
	if len(f.Keys) > 0 || f.Text != "" {
		in.Rows, err = r.LimitRows(ctx, f)
	}
	return err
}

// look returns whether a limit has room for a job by its row; false if the row does not say that. The only engine of a
// store knows better.
func (v *visit) look(t *store.Takes, set *store.LimitValue, j *state.Job) (out quota.Outlook, known bool) {
	l := set.Current()
	if t.Keyed || t.Any != nil || t.N == 0 || !v.counted(l) {
		return out, false
	}
	var of *quota.Hold
	if t.Until != "" {
		of = &quota.Hold{Case: v.c.ID, Task: j.Task, N: t.N}
	}
	return v.lookAt(l, "", t.N, of)
}

// lookAt is look for one key.
func (v *visit) lookAt(l limit.Limit, key string, n int64, of *quota.Hold) (out quota.Outlook, known bool) {
	if l.N == 0 || n > l.Capacity() {
		return out, false
	}
	in := quota.Situation{Live: v.in.Rows.Live, Now: v.in.Rows.Now}
	if in.Now == 0 {
		in.Now = v.in.Now.UnixNano()
	}
	out, err := quota.Look(v.in.row(l.Name, key), l, n, of, in)
	return out, err == nil
}

// limitOf returns a limit as it is set for a key; false if the database has none of that name.
func (in *Input) limitOf(name, key string) (limit.Limit, bool) {
	set, ok := in.Set[name]
	if l, own := set.CurrentOf()[key]; own {
		return l, true
	}
	return set.Current(), ok
}

// counted reports whether rows have the usage of a limit. In a store with a single engine they have it for rates and
// holds; the engine itself knows the rest.
func (v *visit) counted(l limit.Limit) bool {
	switch one := v.in.Rows.Now == 0; {
	case one && v.in.Limits != nil:
		return false
	case l.InStore && (!one || l.Algorithm != limit.Slots):
		return true
	}
	for _, of := range v.in.Takes {
		if of.Holds(l.Name) {
			return true
		}
	}
	return false
}

// row returns the state in a row; nil if there is none.
func (in *Input) row(name, key string) []byte {
	for i := range in.Rows.Rows {
		if row := &in.Rows.Rows[i]; row.Limit == name && row.Key == key {
			return row.State
		}
	}
	return nil
}
