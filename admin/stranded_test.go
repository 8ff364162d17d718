package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// stranding is a case that does not continue.
type stranding struct {
	o  *office
	id workitem.CaseID
	// repair is what a person does who begins at the overview.
	repair func(v visitor)
	// finish does what the case needs to end once it continues again; nil if it ends by itself.
	finish func()
	// forgotten has the case looked for by how long it waits.
	forgotten bool
}

// line is a workflow of two tasks for people, and branch one whose join needs both of its branches.
const line = "workflow line\n start s\n end e\n task A\n task B\n flow s -> A\n flow A -> B\n flow B -> e\n" +
	"workflow branch\n start s\n end e\n task A\n task B\n task C\n task J join=and\n flow s -> A\n flow A -> B, C\n flow B -> J\n flow C -> J\n flow J -> e\n" +
	"workflow bill\n start s\n end e\n task charge policy=incident\n flow s -> charge\n flow charge -> e\n"

func compiled(t *testing.T, notation string) (flows []engine.Workflow) {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{}, notation)
	require.NoError(t, err)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, d := range defs {
		flows = append(flows, d)
	}
	return flows
}

// strand opens an engine and starts a case.
func strand(t *testing.T, name string, flows ...engine.Workflow) stranding {
	t.Helper()
	s := stranding{o: &office{Engine: enginetest.New(t, flows...)}}
	s.begin(t, name)
	return s
}

// unsent is a case that has waited for two days for something that is not sent. The link leads to the form that sends it.
func unsent(t *testing.T, link, button string, opts ...step.Option) stranding {
	t.Helper()
	s := strand(t, "awaits", builder.MustFunc("awaits", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "paid", opts...) }))
	s.forgotten = true
	s.o.Advance(48 * time.Hour)
	s.repair = func(v visitor) {
		v.begin()
		v.follow("Find stranded cases")
		v.sees("Every live case is active, or waits for a person or an event.")
		v.follow("Also show waits for events")
		v.sees("who sends it may be gone")
		v.follow(shortID(s.id))
		v.follow(link)
		v.fill("payload", "7")
		v.send(button)
	}
	return s
}

func (s *stranding) begin(t *testing.T, name string) {
	t.Helper()
	id, err := enginetest.Start(t.Context(), s.o.Engine, name, json.RawMessage("1"))
	require.NoError(t, err)
	s.o.Drain()
	s.id = id
}

// complete completes items of the case.
func (s *stranding) complete(labels ...string) {
	for _, label := range labels {
		enginetest.CompleteItem(s.o.Engine, s.id, label, 1)
	}
}

// examine leads from the overview to the page of the case, by the doctor.
func (s *stranding) examine(v visitor) {
	v.begin()
	v.follow("Find stranded cases")
	v.sees("Stranded cases")
	v.follow(shortID(s.id))
}

// inQueue is a function of a queue, with a limit.
func inQueue() *builder.FuncRef[int, int] {
	return builder.MustFunc("posted", func(_ context.Context, n int) (int, error) { return n, nil }, builder.OnQueue("mail"),
		builder.Limits(builder.Takes(limit.Resource("postman", 2), 0)))
}

// strandings are the ways in which a case ceases to continue, each with the way to its repair.
var strandings = map[string]func(t *testing.T) stranding{
	"attempts that are used up": func(t *testing.T) stranding {
		s := strand(t, "bill", compiled(t, line)...)
		s.o.FailItem(s.id, "charge", &workitem.Failure{Code: "no-funds", Message: "12.50 EUR are there"})
		s.repair = func(v visitor) {
			v.begin()
			v.sees("bill/charge: no-funds: 12.50 EUR are there")
			v.follow("bill/charge: no-funds")
			v.follow("Retry…")
			v.fill("reason", "the account is filled")
			v.send("Retry")
			v.sees("Retry now: done.")
		}
		s.finish = func() { s.complete("charge.1.2") }
		return s
	},
	"a suspended case": func(t *testing.T) stranding {
		s := strand(t, "line", compiled(t, line)...)
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.Suspend(s.id, workflow.By("ann"), workflow.Because("an audit"))))
		s.repair = func(v visitor) {
			s.examine(v)
			v.sees("suspended", "by ann", "(an audit)")
			v.follow("Resume the case…")
			v.send("Resume the case")
		}
		s.finish = func() { s.complete("A", "B") }
		return s
	},
	"a paused queue": func(t *testing.T) stranding {
		s := stranding{o: &office{Engine: enginetest.New(t, inQueue())}}
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.PauseQueue("mail", workflow.By("ann"))))
		s.begin(t, "posted")
		s.repair = func(v visitor) {
			v.begin()
			v.sees("queue mail is paused")
			s.examine(v)
			v.sees("queue mail is paused")
			v.follow("Resume the queue…")
			v.send("Resume")
		}
		return s
	},
	"a limit at 0": func(t *testing.T) stranding {
		s := stranding{o: &office{Engine: enginetest.New(t, inQueue())}}
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.SetLimit("postman", 0, workflow.By("ann"))))
		s.begin(t, "posted")
		s.o.Advance(time.Minute)
		s.repair = func(v visitor) {
			v.begin()
			v.sees("limit postman is set to 0")
			s.examine(v)
			v.sees("postman")
			v.follow("Set limit postman…")
			v.fill("number", "2")
			v.send("Change it")
		}
		return s
	},
	"a paused key of a queue": func(t *testing.T) stranding {
		s := stranding{o: &office{Engine: enginetest.New(t, builder.MustFunc("posted", func(_ context.Context, n int) (int, error) { return n, nil },
			builder.OnQueue("mail"), builder.FairBy(func(int) string { return "ada" })))}}
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.PauseKey("mail", "ada", workflow.By("ann"))))
		s.begin(t, "posted")
		s.o.Advance(time.Minute)
		s.repair = func(v visitor) {
			v.begin()
			v.sees("queue mail is paused for 1 key")
			s.examine(v)
			v.sees("key ada of queue mail is paused")
			v.follow("Resume key ada…")
			v.send("Resume")
		}
		return s
	},
	"a limit at 0 for a key": func(t *testing.T) stranding {
		s := stranding{o: &office{Engine: enginetest.New(t, builder.MustFunc("posted", func(_ context.Context, n int) (int, error) { return n, nil },
			builder.Limits(builder.TakesBy(limit.Resource("postman", 2), 1, func(int) string { return "ada" }))))}}
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.SetLimitOf("postman", "ada", 0, workflow.By("ann"))))
		s.begin(t, "posted")
		s.o.Advance(time.Minute)
		s.repair = func(v visitor) {
			v.begin()
			v.sees("limit postman is set to 0 for 1 key")
			s.examine(v)
			v.follow("Set limit postman for key ada, now 0…")
			v.fill("number", "2")
			v.send("Change it")
		}
		return s
	},
	"a topic that is never broadcast": func(t *testing.T) stranding {
		return unsent(t, "Broadcast…", "Broadcast", step.Topic())
	},
	"an event that is never sent": func(t *testing.T) stranding {
		return unsent(t, "Send it…", "Send the event")
	},
	"a timer that gave up": func(t *testing.T) stranding {
		var fixed atomic.Bool
		b := builder.New[any]("timed")
		a := builder.Task(b, "a", builder.Work[any, any]{Timers: []activities.Timer{{Name: "escalate", After: time.Minute,
			Task: func(context.Context, *activities.Activation) error {
				if !fixed.Load() {
					return errors.New("no connection")
				}
				return nil
			}}}})
		b.Path(b.Start(), a, b.End())
		s := strand(t, "timed", b.MustBuild())
		s.o.Advance(24 * time.Hour)
		s.repair = func(v visitor) {
			v.begin()
			v.follow("timed/a")
			v.sees("no connection")
			fixed.Store(true)
			v.follow("Retry…")
			v.fill("reason", "the network is back")
			v.send("Retry")
			v.sees("Retry now: done.")
		}
		s.finish = func() { s.complete("a") }
		return s
	},
	"a completion handler that gave up": func(t *testing.T) stranding {
		var fixed atomic.Bool
		h := builder.Handler("h", func(context.Context, *builder.Completion[int], string) error {
			if !fixed.Load() {
				return errors.New("no connection")
			}
			return nil
		})
		f := builder.MustFunc("told", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(h))
		s := stranding{o: &office{Engine: enginetest.New(t, f)}}
		run, err := f.Run(t.Context(), s.o, 1, builder.OnComplete(h, "x"))
		require.NoError(t, err)
		s.id = run.ID
		s.o.Advance(24 * time.Hour)
		s.repair = func(v visitor) {
			s.examine(v)
			v.sees("no connection")
			fixed.Store(true)
			v.follow("Retry…")
			v.send("Retry")
		}
		return s
	},
	"a crash loop": func(t *testing.T) stranding {
		begin := make(chan struct{}, 8)
		var fixed atomic.Bool
		s := strand(t, "line", append(compiled(t, line), builder.MustFunc("deadly", func(ctx context.Context, n int) (int, error) {
			if fixed.Load() {
				return n, nil
			}
			begin <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}))...)
		id, err := enginetest.Start(t.Context(), s.o, "deadly", json.RawMessage("1"))
		require.NoError(t, err)
		s.id = id
		for range 4 { // its worker dies as often as it is allowed to, and once more
			<-begin
			s.o.Crash()
		}
		s.o.Drain()
		s.repair = func(v visitor) {
			v.begin()
			v.sees("crash")
			s.examine(v)
			fixed.Store(true)
			v.follow("Retry…")
			v.send("Retry")
		}
		return s
	},
	"a token that was moved to where nothing takes it": func(t *testing.T) stranding {
		s := strand(t, "branch", compiled(t, line)...)
		s.complete("A")
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.Move(s.id, "B", "C->J", workflow.Force())))
		s.complete("C")
		s.repair = func(v visitor) {
			s.examine(v)
			v.sees("cannot go on")
			v.follow("Move a token…")
			v.fill("from", "C->J")
			v.fill("to", "B")
			v.fill("reason", "B was never done")
			v.send("Move it")
			v.sees("Move a token: done.")
		}
		s.finish = func() { s.complete("B", "J") }
		return s
	},
	"a case that cannot end, though people work on it": func(t *testing.T) stranding {
		s := strand(t, "branch", compiled(t, line)...)
		s.complete("A")
		require.NoError(t, enginetest.Do(t.Context(), s.o, workflow.Move(s.id, "B", "C->J", workflow.Force())))
		s.repair = func(v visitor) {
			v.begin()
			v.follow("Find stranded cases")
			v.sees("dead-end")
			v.follow(shortID(s.id))
			v.follow("Move a token…")
			v.fill("from", "C->J")
			v.fill("to", "B")
			v.send("Move it")
		}
		s.finish = func() { s.complete("B", "C", "J") }
		return s
	},
	"an input that is wrong": func(t *testing.T) stranding {
		s := strand(t, "halved", builder.MustFunc("halved", func(_ context.Context, n int) (int, error) {
			if n%2 != 0 {
				return 0, workitem.Failf("odd", "%d cannot be halved", n)
			}
			return n / 2, nil
		}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 })))
		s.repair = func(v visitor) {
			v.begin()
			v.follow("failed cases")
			v.sees("odd: 1 cannot be halved")
			v.follow(shortID(s.id))
			v.follow("Resume…")
			v.fill("payload", "2")
			v.send("Resume the case")
		}
		return s
	},
	"an item whose holder is gone": func(t *testing.T) stranding {
		s := strand(t, "line", compiled(t, line)...)
		s.o.StartItem(s.id, "A", workflow.By("bob"))
		s.o.Advance(72 * time.Hour)
		s.repair = func(v visitor) {
			v.begin()
			v.follow("started")
			v.follow("Items")
			v.follow("started")
			v.sees("A.1.1", "bob")
			v.follow("A.1.1")
			v.follow("Reset…")
			v.send("Reset it")
			v.follow("Start")
			v.send("Start it")
			v.follow("Complete…")
			v.send("Complete it")
		}
		s.finish = func() { s.complete("B") }
		return s
	},
}

// A case that was stranded in any of these ways is found, understood and repaired by what the pages show alone: from the overview by links, buttons and
// forms, in a browser and as text.
func TestStrandedCasesAreRepairedInThePagesAlone(t *testing.T) {
	visitEach(t, slices.Collect(maps.Keys(strandings)), func(t *testing.T, name string, as func(*testing.T, http.Handler) visitor) {
		s := strandings[name](t)
		s.repair(as(t, s.o.handler(admin.Config{Access: eve})))
		s.o.Drain()
		search := why.Search{Here: s.o.Here(), Now: s.o.Now()}
		if s.forgotten {
			search.Older = time.Hour
		}
		for found, err := range why.Stranded(t.Context(), s.o, search) {
			require.NoError(t, err)
			require.Fail(t, "still stranded", "%+v", found)
		}
		if s.finish != nil {
			s.finish()
		}
		s.o.Drain()
		require.Equal(t, "completed", s.o.stateOf(t, s.id).String())
	})
}

// eve may do everything.
func eve(r *http.Request) (admin.User, error) { return as("eve")(r) }
