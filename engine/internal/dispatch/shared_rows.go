package dispatch

import (
	"bytes"
	"context"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// sharedRows executes orders on the rows of shared limits, with optimistic concurrency control. If two engines order
// from one row at once:
//
//	engine 1   read v4 ── decide ── write v5 ── answer
//	engine 2     read v4 ── decide ── write refused ── read v5 ── decide ── write v6 ── answer
//
// So no amount is granted twice, and no engine waits for a lock of another.
type sharedRows struct {
	rows    store.Limits
	clock   retry.Clock
	started time.Time // its monotonic reading is the time of limits in a store without a clock
}

// decide answers orders, by index. An order whose row another engine has changed meanwhile is repeated.
func (r *sharedRows) decide(ctx context.Context, orders []admission.Order[entry]) ([]quota.Answer, error) {
	answers := make([]quota.Answer, len(orders))
	open := make([]int, len(orders))
	for i := range open {
		open[i] = i
	}
	for len(open) > 0 {
		left, err := r.decideOnce(ctx, orders, open, answers)
		if err != nil {
			return make([]quota.Answer, len(orders)), err
		}
		open = left
	}
	return answers, nil
}

// decideOnce decides the orders with the given indexes, and returns those that have to be repeated.
func (r *sharedRows) decideOnce(
	ctx context.Context, orders []admission.Order[entry], open []int, answers []quota.Answer,
) ([]int, error) {
	keys := make([]store.LimitKey, len(open))
	for n, i := range open {
		keys[n] = store.LimitKey{Limit: orders[i].Limit, Key: orders[i].Key}
	}
	view, err := r.rows.ReadLimits(ctx, keys)
	if err != nil {
		return nil, err
	}
	in := quota.Situation{Self: view.Self, Live: view.Live, Now: view.Now}
	if in.Now == 0 {
		in.Now = r.started.UnixNano() + int64(r.clock.Now().Sub(r.started))
	}
	waiting := make(map[store.LimitKey]int, len(open))
	var rows []store.LimitRow
	for n, i := range open {
		row := view.Rows[n]
		before := row
		if row.State, row.Until, answers[i], err = quota.Decide(before.State, orders[i].Order, in); err != nil {
			return nil, err
		}
		if !bytes.Equal(row.State, before.State) && (row.Until > 0 || before.Version > 0) {
			rows = append(rows, row)
			waiting[row.LimitKey] = i
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	written, err := r.rows.WriteLimits(ctx, rows, in.Now)
	if err != nil {
		return nil, err
	}
	for _, key := range written {
		delete(waiting, key)
	}
	var again []int
	for _, i := range waiting {
		again = append(again, i)
	}
	return again, nil
}
