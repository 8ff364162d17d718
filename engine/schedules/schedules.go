// Package schedules runs schedules: it starts a case of a workflow, or a run of a function, at each tick of a
// [schedule.Schedule].
//
//	nightly := builder.Schedule(schedule.Schedule{Name: "nightly", Cron: "30 2 * * *", Zone: "Europe/Berlin"}, clean, Clean{})
//	s := schedules.New(engine.Code, nightly)
//	e, err := engine.Open(ctx, store, clean, s)
//	report, err := s.Serve(ctx, e)
//
// A schedule is a chain of cases of its own workflow, one for each tick. The current case exists from the last tick on,
// and begins at the time of the next one. When it ends, the due runs and the next case of the chain are started, all in
// one transaction. So each tick begins once, with any number of processes and after any crash, and a schedule that is
// not due is one row, and an entry of the engine's timers.
//
// A command on a schedule ([Pause], [Resume], [Remove], [Run], [Backfill], and [Add] of an existing one) cancels the
// current case, with the request as the reason, and the chain continues after it.
package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Name is the name of the workflow of schedules.
const Name = "tasq-schedule"

// Keep is how long the case of a tick is kept after its end.
const Keep = time.Hour

// tickHandler is the name of the completion handler of the workflow.
const tickHandler = "tick"

// Engine is the part of an engine that schedules use; *engine.Engine implements it.
type Engine interface {
	workflow.Doer
	store.Viewer
	builder.Waiter
}

// Schedules is the workflow of schedules. Open an engine with it, and call [Schedules.Serve].
type Schedules struct {
	*builder.Workflow[State]
	code     func(error) string
	declared []workflow.Scheduled

	mu     sync.Mutex
	engine Engine // nil before Serve
}

// New returns the workflow of schedules, with those that the program declares. code returns the code of an error:
// engine.Code.
func New(code func(error) string, declared ...workflow.Scheduled) *Schedules {
	s := &Schedules{code: code, declared: declared}
	b := builder.New[State](Name, builder.Version("1"), builder.Keep(Keep), builder.Handles(builder.Handler(tickHandler, s.ended)),
		builder.Describe("A schedule: one case for each tick."))
	tick := builder.Task(b, "tick", builder.Work[any, any]{Auto: true})
	b.Path(b.Start(), tick, b.End())
	s.Workflow = b.MustBuild()
	return s
}

// ticks makes the end of a case continue the chain.
func ticks() workflow.Option {
	return workflow.OptionFunc(func(c *workflow.Command) error {
		c.Options.OnComplete = append(c.Options.OnComplete, workflow.HandlerCall{Handler: tickHandler, Value: json.RawMessage("{}")})
		return nil
	})
}

// ended executes the request that ended the case of a schedule, and starts the next case, in the transaction of that
// end.
func (s *Schedules) ended(ctx context.Context, c *builder.Completion[json.RawMessage], _ struct{}) error {
	q, reason, goesOn := requestOf(c.State, c.Failure)
	if !goesOn {
		return nil
	}
	var state State
	if err := json.Unmarshal(c.Case.Input, &state); err != nil {
		return fmt.Errorf("the schedule of case %s cannot be read: %w", c.Case.ID, err)
	}
	t := turn{tx: c.InTx, code: s.code, state: &state, now: c.Now(), id: c.Case.ID}
	next, err := t.take(ctx, q)
	if err != nil {
		return err
	}
	state.Generation++
	state.note(t.now, t.id, q, reason)
	command, err := state.successor(next)
	if err != nil {
		return err
	}
	result, err := c.Do(ctx, command)
	switch {
	case err == nil:
		s.watch(result.Case, &state)
	case errors.Is(err, workflow.ErrKeyReused): // it was added again before this case could continue
		return nil
	}
	return err
}

// watch makes a schedule check its runs as soon as those that its ticks wait for have ended. This only saves time: the
// schedule also checks at intervals.
func (s *Schedules) watch(id workitem.CaseID, state *State) {
	s.mu.Lock()
	e := s.engine
	s.mu.Unlock()
	if e == nil || len(state.Waiting) == 0 || len(state.Running) == 0 || state.Schedule.Overlap == schedule.OverlapAllow {
		return
	}
	reason, err := request{Do: doLook}.reason("a run has ended")
	if err != nil {
		return
	}
	running := state.Running
	go func() {
		for _, run := range running {
			if info, err := e.WaitRun(context.Background(), run); err != nil || !info.State.Final() {
				return
			}
		}
		_, _ = e.Do(context.Background(), workflow.Cancel(id, reason, workflow.By(Name))) // refused if the schedule has checked meanwhile
	}()
}
