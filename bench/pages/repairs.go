package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// repair measures what counts, finds and repairs cases and incidents. It uses up what it repairs, so it needs a new database.
func (w *world) repair(ctx context.Context, e *engine.Engine, actions *bulk.Bulk, rounds int) error {
	fmt.Printf("%-50s %9s %9s %9s %9s\n", "repair", "of", "p50 ms", "p95 ms", "CPU ms")
	code, none := "no-carrier", "no-such-code"
	var targets []string
	for _, one := range []struct {
		name string
		f    store.IncidentFilter
	}{
		{"count incidents by code", store.IncidentFilter{Code: &code}}, {"count incidents by a code that none has", store.IncidentFilter{Code: &none}},
		{"count incidents by age", store.IncidentFilter{Before: time.Now()}}, {"count incidents by key", store.IncidentFilter{Key: "P-77"}},
		{"count incidents by label", store.IncidentFilter{Labels: map[string]string{"lane": "7"}}},
	} {
		n := 0
		if err := timed(one.name, rounds, func(int) error {
			found, err := bulk.Open(ctx, e, one.f)
			if n = len(found); one.f.Code == &code {
				targets = found
			}
			return err
		}, &n); err != nil {
			return err
		}
	}
	if len(targets) < 4*rounds {
		return fmt.Errorf("the database has %d incidents, too few for %d rounds: the repairs of an earlier run have used them up; use another folder", len(targets), rounds)
	}
	if err := w.single(ctx, e, targets[:3*rounds], rounds); err != nil {
		return err
	}
	if err := w.look(ctx, e, rounds); err != nil {
		return err
	}
	return inBulk(ctx, e, actions, targets[3*rounds:])
}

// single measures commands on one thing.
func (w *world) single(ctx context.Context, e *engine.Engine, incidents []string, rounds int) error {
	failed, live, err := someCases(ctx, e, rounds)
	if err != nil {
		return err
	}
	item := func(n int) (id workitem.ID) {
		_ = id.UnmarshalText([]byte(incidents[n])) // it is an id of the store
		return id
	}
	last := make(map[workitem.CaseID]int64)
	for _, c := range live {
		last[c.ID] = c.LastSeq
	}
	for _, one := range []struct {
		name    string
		command func(n int) workflow.Command
	}{
		{"retry an incident", func(n int) workflow.Command { return workflow.Retry(item(n), nil) }},
		{"skip an incident", func(n int) workflow.Command { return workflow.Skip(item(rounds+n), anOrder) }},
		{"give an incident up", func(n int) workflow.Command { return workflow.GiveUp(item(2*rounds + n)) }},
		{"restart a case", func(n int) workflow.Command { return workflow.Restart(failed[n].ID) }},
		{"resume a failed case", func(n int) workflow.Command { return workflow.Resume(failed[n].ID, nil) }},
		{"fork a case", func(n int) workflow.Command { return workflow.Fork(live[n].ID, last[live[n].ID]) }},
		{"move a token", func(n int) workflow.Command { return workflow.Move(live[n].ID, "check", "assess") }},
		{"suspend a case", func(n int) workflow.Command { return workflow.Suspend(live[n].ID) }},
	} {
		if err := timed(one.name, rounds, func(n int) error {
			_, err := e.Do(ctx, workflow.With(one.command(n), workflow.By("ann"), workflow.Because("measured")))
			return err
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

func someCases(ctx context.Context, e *engine.Engine, n int) (failed, live []*state.Case, err error) {
	err = e.View(ctx, func(r store.Reader) (err error) {
		f := store.CaseFilter{Workflow: "claim", Page: store.Page{Limit: n}, States: []state.CaseState{state.CaseFailed}}
		if failed, err = r.Cases(ctx, f); err != nil {
			return err
		}
		f.States = []state.CaseState{state.CaseStarted}
		live, err = r.Cases(ctx, f)
		return err
	})
	if err == nil && min(len(failed), len(live)) < n {
		err = fmt.Errorf("%d cases have failed and %d are live, too few for %d rounds", len(failed), len(live), n)
	}
	return failed, live, err
}

// look measures past states, and the doctor, which ends after so many cases.
func (w *world) look(ctx context.Context, e *engine.Engine, rounds int) error {
	var claim workitem.CaseID
	if err := claim.UnmarshalText([]byte(w.claim)); err != nil {
		return err
	}
	if err := timed("a case of four items a second ago", rounds, func(int) error {
		_, err := store.At(ctx, e, claim, store.Moment{Time: time.Now().Add(-time.Second)})
		return err
	}, nil); err != nil {
		return err
	}
	n := 0
	return timed("doctor, all live cases", 1, func(int) error {
		for _, err := range why.Stranded(ctx, e, why.Search{Now: time.Now()}) {
			if n++; err != nil {
				return err
			}
		}
		return nil
	}, &n)
}

// inBulk measures a retry of all targets.
func inBulk(ctx context.Context, e *engine.Engine, actions *bulk.Bulk, targets []string) error {
	began, used := time.Now(), processor()
	run, err := actions.Start(ctx, e, bulk.Action{Kind: workflow.KindRetry, Reason: "measured", Actor: "ann"}, targets)
	if err != nil {
		return err
	}
	result, err := run.Result(ctx, e)
	if err != nil {
		return err
	}
	took, cpu := time.Since(began), processor()-used
	fmt.Printf("%-50s %9d %9.0f a second, %.3f ms of CPU each, %d refused\n", "bulk retry", result.Done, float64(result.Done)/took.Seconds(),
		cpu.Seconds()*1000/float64(len(targets)), len(result.Refused)+result.More)
	return nil
}

// timed calls f in rounds, and prints how long it takes. of is what it found, if not nil.
func timed(name string, rounds int, f func(n int) error, of *int) error {
	var took []time.Duration
	used := processor()
	for n := range rounds {
		began := time.Now()
		if err := f(n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, time.Since(began))
	}
	each := (processor() - used).Seconds() * 1000 / float64(rounds)
	slices.Sort(took)
	ms := func(part int) float64 { return float64(took[(len(took)-1)*part/100].Microseconds()) / 1000 }
	found := ""
	if of != nil {
		found = fmt.Sprint(*of)
	}
	fmt.Printf("%-50s %9s %9.1f %9.1f %9.1f\n", name, found, ms(50), ms(95), each)
	return nil
}
