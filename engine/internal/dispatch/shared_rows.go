package dispatch

import (
	"bytes"
	"context"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// sharedRows decides orders by the rows of the limits that engines share. Two engines that order of one row at once:
//
//	engine 1   read v4 ── decide ── write v5 ── answer
//	engine 2     read v4 ── decide ── write refused ── read v5 ── decide ── write v6 ── answer
//
// So no amount is given twice, and no engine waits for the lock of another one.
type sharedRows struct {
	rows    store.Limits
	clock   retry.Clock
	started time.Time // by its monotonic reading, the time of limits that a store without a clock keeps
}

// decide has the store answer orders, by their indexes. A row that another engine has changed meanwhile is decided again.
func (r *sharedRows) decide(ctx context.Context, orders []admission.Order[entry]) ([]ration.Answer, error) {
	answers := make([]ration.Answer, len(orders))
	open := make([]int, len(orders))
	for i := range open {
		open[i] = i
	}
	for len(open) > 0 {
		left, err := r.decideOnce(ctx, orders, open, answers)
		if err != nil {
			return make([]ration.Answer, len(orders)), err
		}
		open = left
	}
	return answers, nil
}

// decideOnce decides the orders with the indexes given, and returns those that are to be decided again.
func (r *sharedRows) decideOnce(
	ctx context.Context, orders []admission.Order[entry], open []int, answers []ration.Answer,
) ([]int, error) {
	keys := make([]store.LimitKey, len(open))
	for n, i := range open {
		keys[n] = store.LimitKey{Limit: orders[i].Limit, Key: orders[i].Key}
	}
	view, err := r.rows.ReadLimits(ctx, keys)
	if err != nil {
		return nil, err
	}
	in := ration.Situation{Self: view.Self, Live: view.Live, Now: view.Now}
	if in.Now == 0 {
		in.Now = r.started.UnixNano() + int64(r.clock.Now().Sub(r.started))
	}
	waiting := make(map[store.LimitKey]int, len(open))
	var rows []store.LimitRow
	for n, i := range open {
		row := view.Rows[n]
		before := row
		if row.State, row.Until, answers[i], err = ration.Decide(before.State, orders[i].Order, in); err != nil {
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
