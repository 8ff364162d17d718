package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// stranding is a case that was stranded, and what is to be seen of it.
type stranding struct {
	e     *enginetest.Engine
	id    workitem.CaseID
	cause why.Cause
	older time.Duration
	read  bool // found by what is stored alone, too
	// act does what the repair names.
	act func(repair []string) error
}

// edited opens a store in which something is changed by hand before an engine opens it.
type edited struct {
	store.Opener
	edit func(store.Store) error
}

// Open implements store.Opener.
func (o *edited) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	h := &storehook.Opener{Opener: o.Opener, Opened: o.edit}
	o.edit = nil
	return h.Open(ctx, opts)
}

const line = "workflow line\n start s\n end e\n task A\n task B\n flow s -> A\n flow A -> B\n flow B -> e\n"

// inQueue is a function of a queue, with a limit.
func inQueue() *builder.FuncRef[int, int] {
	return builder.MustFunc("posted", func(_ context.Context, n int) (int, error) { return n, nil }, builder.OnQueue("mail"),
		builder.Limits(builder.Takes(limit.Resource("postman", 2), 0)))
}

// flaky is an error for as long as it is broken.
type flaky struct{ broken atomic.Bool }

func newFlaky() *flaky {
	f := new(flaky)
	f.broken.Store(true)
	return f
}

func (f *flaky) err() error {
	if f.broken.Load() {
		return errors.New("no connection")
	}
	return nil
}

// The ways in which a case is stranded by hand.
var strandings = map[string]func(t *testing.T) stranding{
	"a marking edited in the store": func(t *testing.T) stranding {
		o := &edited{Opener: enginetest.Store(t)}
		e := enginetest.Open(t, o, engine.Config{}, compiled(t, line)...)
		id := begun(t, e, "line")
		enginetest.CompleteItem(e, id, "A", 1)
		o.edit = func(s store.Store) error {
			return s.Update(t.Context(), func(tx store.Tx) error {
				tree, err := tx.Load(t.Context(), id)
				if err != nil {
					return err
				}
				c := tree.Case(id)
				b, _ := c.Net.TaskByName("B")
				var item *workitem.Item
				for it := range c.Items.All() {
					if it.Task == "B" {
						item = it
					}
				}
				taken := c.Net.Inputs(b)
				changes := []state.Change{
					&state.ItemMoved{Case: id, Item: item.ID, Action: workitem.Cancel, To: workitem.Canceled, At: e.Now()},
					&state.TaskMoved{Case: id, Task: b, To: state.TaskDisabled, Generation: 1},
					&state.TokensMoved{Case: id, From: taken, Into: []net.ConditionID{taken[0]}},
				}
				tree.Begin()
				for _, change := range changes {
					if err := tree.Apply(change); err != nil {
						return err
					}
				}
				return tx.Append(t.Context(), &store.Entry{Root: id, At: e.Now(), Command: "by hand", Changes: changes}, tree)
			})
		}
		e.Crash()
		return stranding{e: e, id: id, cause: why.CauseIdle, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "case", "move", id.String()}, repair[:4])
			if err := enginetest.Do(t.Context(), e, workflow.Move(id, "A->B", "B")); err != nil {
				return err
			}
			enginetest.CompleteItem(e, id, "B", 1)
			return nil
		}}
	},
	"a definition withdrawn": func(t *testing.T) stranding {
		e := enginetest.New(t, compiled(t, line)...)
		id := begun(t, e, "line")
		e.Crash(inQueue())
		return stranding{e: e, id: id, cause: why.CauseNotLoaded, act: func(repair []string) error {
			require.Equal(t, "open an engine with workflow line;", strings.Join(repair[:6], " "))
			e.Crash(compiled(t, line)...)
			enginetest.CompleteItem(e, id, "A", 1)
			enginetest.CompleteItem(e, id, "B", 1)
			return nil
		}}
	},
	"a queue without workers": func(t *testing.T) stranding {
		o, f := enginetest.Store(t), inQueue()
		e := enginetest.Open(t, o, engine.Config{Queues: map[string]int{"mail": 0}}, f)
		id := begun(t, e, "posted")
		e.Advance(time.Minute)
		return stranding{e: e, id: id, cause: why.CauseNoWorkers, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"workers", "for", "queue", "mail"}, repair[len(repair)-4:])
			require.NoError(t, e.Kill())
			clock := virtual.NewClock()
			other, err := engine.Config{Clock: clock}.Open(t.Context(), o, f)
			require.NoError(t, err)
			require.NoError(t, clock.Advance(t.Context(), other, time.Hour))
			require.NoError(t, other.Close())
			e.Crash()
			return nil
		}}
	},
	"a paused queue": func(t *testing.T) stranding {
		e := enginetest.New(t, inQueue())
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseQueue("mail", workflow.By("ann"))))
		id := begun(t, e, "posted")
		return stranding{e: e, id: id, cause: why.CausePaused, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "queue", "resume", "mail"}, repair)
			return enginetest.Do(t.Context(), e, workflow.ResumeQueue("mail"))
		}}
	},
	"a limit at 0": func(t *testing.T) stranding {
		e := enginetest.New(t, inQueue())
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.SetLimit("postman", 0, workflow.By("ann"))))
		id := begun(t, e, "posted")
		e.Advance(time.Minute)
		return stranding{e: e, id: id, cause: why.CauseLimited, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "limit", "set", "postman", "2"}, repair)
			return enginetest.Do(t.Context(), e, workflow.SetLimit("postman", 2))
		}}
	},
	"a suspended case": func(t *testing.T) stranding {
		e := enginetest.New(t, compiled(t, line)...)
		id := begun(t, e, "line")
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(id, workflow.By("ann"), workflow.Because("an audit"))))
		e.Advance(time.Hour)
		return stranding{e: e, id: id, cause: why.CauseSuspended, older: time.Minute, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "case", "resume", id.String()}, repair)
			if err := enginetest.Do(t.Context(), e, workflow.Resume(id, nil)); err != nil {
				return err
			}
			enginetest.CompleteItem(e, id, "A", 1)
			enginetest.CompleteItem(e, id, "B", 1)
			return nil
		}}
	},
	"a timer that gave up": func(t *testing.T) stranding {
		down := newFlaky()
		var escalated atomic.Int32
		b := builder.New[any]("timed")
		a := builder.Task(b, "a", builder.Work[any, any]{Timers: []activities.Timer{{Name: "escalate", After: time.Minute,
			Task: func(context.Context, *activities.Activation) error {
				if err := down.err(); err != nil {
					return err
				}
				escalated.Add(1)
				return nil
			}}}})
		b.Path(b.Start(), a, b.End())
		w, err := b.Build()
		require.NoError(t, err)
		e := enginetest.New(t, w)
		id := begun(t, e, "timed")
		e.Advance(24 * time.Hour)
		return stranding{e: e, id: id, cause: why.CauseIncident, read: true, act: func(repair []string) error {
			down.broken.Store(false)
			err := retryIncident(t, e, repair)
			e.Drain()
			require.EqualValues(t, 1, escalated.Load())
			enginetest.CompleteItem(e, id, "a", 1)
			return err
		}}
	},
	"a completion handler that gave up": func(t *testing.T) stranding {
		down := newFlaky()
		h := builder.Handler("h", func(context.Context, *builder.Completion[int], string) error { return down.err() })
		f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(h))
		e := enginetest.New(t, f)
		run, err := f.Run(t.Context(), e, 1, builder.OnComplete(h, "x"))
		require.NoError(t, err)
		e.Advance(24 * time.Hour)
		return stranding{e: e, id: run.ID, cause: why.CauseIncident, read: true, act: func(repair []string) error {
			down.broken.Store(false)
			return retryIncident(t, e, repair)
		}}
	},
	"a crash loop": func(t *testing.T) stranding {
		begin := make(chan struct{}, 8)
		down := newFlaky()
		f := builder.MustFunc("deadly", func(ctx context.Context, n int) (int, error) {
			if down.err() == nil {
				return n, nil
			}
			begin <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		e := enginetest.New(t, f)
		id := begun(t, e, "deadly")
		for range kernel.MaxCrashes + 1 {
			<-begin
			e.Crash()
		}
		e.Drain()
		return stranding{e: e, id: id, cause: why.CauseIncident, read: true, act: func(repair []string) error {
			down.broken.Store(false)
			return retryItem(t, e, repair)
		}}
	},
	"attempts that are used up": func(t *testing.T) stranding {
		e := enginetest.New(t, compiled(t, "workflow w\n start s\n end e\n task C policy=incident\n flow s -> C\n flow C -> e\n")...)
		id := begun(t, e, "w")
		e.FailItem(id, "C", &workitem.Failure{Code: "no-box"})
		return stranding{e: e, id: id, cause: why.CauseIncident, read: true, act: func(repair []string) error {
			err := retryItem(t, e, repair)
			enginetest.CompleteItem(e, id, "C", 1)
			return err
		}}
	},
	"an event that is never sent": func(t *testing.T) stranding {
		f := builder.MustFunc("awaits", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "paid") })
		e := enginetest.New(t, f)
		id := begun(t, e, "awaits")
		e.Drain()
		e.Advance(48 * time.Hour)
		return stranding{e: e, id: id, cause: why.CauseForgotten, older: 24 * time.Hour, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "event", "send", id.String(), "paid"}, repair)
			return enginetest.Do(t.Context(), e, workflow.Send(id, "paid", 7))
		}}
	},
	"a topic that is never broadcast": func(t *testing.T) stranding {
		f := builder.MustFunc("awaits", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "rates", step.Topic()) })
		e := enginetest.New(t, f)
		id := begun(t, e, "awaits")
		e.Drain()
		e.Advance(48 * time.Hour)
		return stranding{e: e, id: id, cause: why.CauseForgotten, older: 24 * time.Hour, read: true, act: func(repair []string) error {
			require.Equal(t, []string{"tasq", "event", "broadcast", "rates"}, repair)
			return enginetest.Do(t.Context(), e, workflow.Broadcast("rates", 7))
		}}
	},
}

func begun(t *testing.T, e *enginetest.Engine, name string) workitem.CaseID {
	t.Helper()
	id, err := enginetest.Start(t.Context(), e, name, json.RawMessage("1"))
	require.NoError(t, err)
	return id
}

func retryIncident(t *testing.T, e *enginetest.Engine, repair []string) error {
	require.Equal(t, []string{"tasq", "incident", "retry"}, repair[:3])
	id, err := workitem.ParseID(repair[3])
	require.NoError(t, err)
	return enginetest.Do(t.Context(), e, workflow.RetryIncident(workitem.JobID(id), workflow.By("ann"), workflow.Because("the network is back")))
}

func retryItem(t *testing.T, e *enginetest.Engine, repair []string) error {
	require.Equal(t, []string{"tasq", "item", "retry"}, repair[:3])
	id, err := workitem.ParseID(repair[3])
	require.NoError(t, err)
	return enginetest.Do(t.Context(), e, workflow.Retry(id, nil))
}

// A case that was stranded by hand in any of these ways is found with the cause and the act that repairs it; after that
// one act nothing is found, the case ends, and the database is whole.
func TestTheDoctorFindsWhatIsStranded(t *testing.T) {
	t.Parallel()
	for name, strand := range strandings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := strand(t)
			found := func(here why.Here) (all []why.StrandedCase) {
				for f, err := range why.Stranded(t.Context(), s.e, why.Search{Here: here, Now: s.e.Now(), Older: s.older}) {
					require.NoError(t, err)
					all = append(all, f)
				}
				return all
			}
			all := found(s.e.Here())
			require.Len(t, all, 1)
			require.Equal(t, s.id, all[0].Case)
			require.Equal(t, s.cause, all[0].Cause, all[0].Reason)
			if s.older > 0 {
				require.Less(t, all[0].Since, s.e.Now().Add(-s.older))
			}
			if read := found(why.Here{}); s.read {
				require.Len(t, read, 1)
				require.Equal(t, s.cause, read[0].Cause, read[0].Reason)
			}
			require.NoError(t, s.act(strings.Fields(all[0].Repair)))
			s.e.Drain()
			require.Empty(t, found(s.e.Here()))
			require.Empty(t, found(why.Here{}))
			require.Equal(t, state.CaseCompleted, caseOf(t, s.e, s.id).State)
			s.e.Check()
		})
	}
}
