package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	tasqstep "github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// script is what each function of a measurement does: so many steps in a row, each with a receipt as its result, and
// then, perhaps, a wait for an event, or a sleep of a day.
type script struct {
	steps int
	waits bool
	naps  bool             // the wait is a sleep
	there func(caller int) // called before the wait
	awake func(caller int) // called after the wait
}

// durable is a system that runs functions with steps. The input of a function is the number of its caller, which it passes to there and
// awake.
type durable interface {
	Run(caller int) error             // starts a function and waits for its result
	Start(caller int) (string, error) // starts one and returns its id
	Send(id string) error             // sends it its event
	Result(id string) error           // waits for its result
	Settle() error                    // returns when no function runs that does not wait
	Close() error
}

// newDurable opens a system on a file, with a script for all functions to come.
type newDurable func(dir string, s script) (durable, error)

// event is what functions wait for.
const event = "go"

// tasq runs functions as single actions.
type tasq struct {
	*engine.Engine
	action *builder.FuncRef[errand, receipt]
}

func newTasq(dir string, s script) (durable, error) { return tasqIn(file(dir), s) }

func tasqIn(o store.Opener, s script, opts ...builder.FuncOption) (durable, error) {
	names := stepNames(s.steps)
	one := func(context.Context) (receipt, error) { return aReceipt, nil }
	t := &tasq{action: builder.MustFunc("function", func(ctx context.Context, e errand) (receipt, error) {
		for _, name := range names {
			if _, err := tasqstep.Do(ctx, name, one); err != nil {
				return receipt{}, err
			}
		}
		if !s.waits {
			return aReceipt, nil
		}
		s.there(e.Caller)
		if _, err := tasqstep.Await[receipt](ctx, event); err != nil {
			return receipt{}, err
		}
		s.awake(e.Caller)
		return aReceipt, nil
	}, opts...)}
	var err error
	t.Engine, err = open(o, 64, t.action)
	return t, err
}

func stepNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("step ", i+1)
	}
	return names
}

// Run implements durable.
func (t *tasq) Run(caller int) error {
	run, err := t.action.Run(noTimeout, t.Engine, errand{order: anOrder, Caller: caller})
	if err == nil {
		_, err = run.Result(noTimeout, t.Engine)
	}
	return err
}

// Start implements durable.
func (t *tasq) Start(caller int) (string, error) {
	run, err := t.action.Run(noTimeout, t.Engine, errand{order: anOrder, Caller: caller})
	return run.ID.String(), err
}

// Send implements durable.
func (t *tasq) Send(id string) error {
	key, err := workitem.ParseCaseID(id)
	if err == nil {
		_, err = t.Engine.Do(noTimeout, workflow.Send(key, event, aReceipt))
	}
	return err
}

// Result implements durable.
func (t *tasq) Result(id string) error {
	key, err := workitem.ParseCaseID(id)
	if err == nil {
		_, err = t.action.Of(key).Result(noTimeout, t.Engine)
	}
	return err
}

// Settle implements durable.
func (t *tasq) Settle() error { return t.Drain(noTimeout) }

// functionsOf is the closed loop: each caller starts a function and waits for its result.
func functionsOf(r job, callers, steps int, open newDurable) (metrics, error) {
	d, err := open(r.dir, script{steps: steps})
	if err != nil {
		return nil, err
	}
	before := used()
	m, err := load(callers, r.span, d.Run)
	if err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), d.Close()
}

// wakes measures the time from the call that sends an event to the line after the wait for it. A hundred functions
// wait, and in the course of the measured time each gets its event: so the load is small, and somebody who polls is met
// at any point between two looks.
func wakes(r job, open newDurable) (metrics, error) {
	const n = 100
	sent, took, woken := make([]time.Time, n), make([]time.Duration, n), make(chan struct{}, n)
	d, err := open(r.dir, script{steps: 1, waits: true, there: func(int) {}, awake: func(i int) {
		if took[i] == 0 {
			took[i] = time.Since(sent[i])
			woken <- struct{}{}
		}
	}})
	if err != nil {
		return nil, err
	}
	ids, err := startAll(d, n)
	if err != nil {
		return nil, err
	}
	errs := make(chan error, n)
	for i, id := range ids {
		time.Sleep(r.span.length / n)
		sent[i] = time.Now()
		go func() { errs <- d.Send(id) }()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	for range n {
		<-woken
	}
	return waits(took), errors.Join(err, d.Close())
}

// startAll starts n functions, 64 at a time, and returns when they all wait.
func startAll(d durable, n int) ([]string, error) {
	ids, errs, turn := make([]string, n), make(chan error, n), make(chan struct{}, 64)
	for i := range ids {
		turn <- struct{}{}
		go func() {
			var err error
			ids[i], err = d.Start(i)
			errs <- err
			<-turn
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	return ids, errors.Join(err, d.Settle())
}
