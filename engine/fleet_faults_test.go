package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// booked is a workflow whose function has two effects in a table of the user's, in steps of their own.
func booked(t *testing.T) engine.Workflow {
	w, _ := function(t, "transfer", func(ctx context.Context, n int) (int, error) {
		for _, name := range []string{"debit", "credit"} {
			if _, err := step.Tx(ctx, name, func(ctx context.Context, db domain.DB) (int, error) {
				_, err := db.ExecContext(ctx, "INSERT INTO effects (n, effect) VALUES ($1, $2)", n, name)
				return n, err
			}); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	return w
}

// bookings are commands given to engines while something fails. Each caller that is refused asks again with the same
// key.
type bookings struct {
	t       *testing.T
	engines []*engine.Engine
	next    int
	all     sync.WaitGroup
	mu      sync.Mutex
	ids     map[int]workitem.CaseID
}

func (f fleetOf) bookings(engines ...*engine.Engine) *bookings {
	f.sql("CREATE TABLE effects (n int, effect text)")
	return &bookings{t: f.t, engines: engines, ids: make(map[int]workitem.CaseID)}
}

// book starts cases, each by a caller of its own.
func (b *bookings) book(n int) {
	for range n {
		n := b.next
		b.next++
		b.all.Go(func() {
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for try := 0; ; try++ {
				e := b.engines[(n+try)%len(b.engines)]
				r, err := e.Do(b.t.Context(), workflow.Start("transfer", []byte(fmt.Sprint(n)), workflow.Key(fmt.Sprintf("booking %d", n))))
				if err == nil {
					b.mu.Lock()
					b.ids[n] = r.Case
					b.mu.Unlock()
					return
				}
				select {
				case <-again.C:
				case <-b.t.Context().Done():
					return
				}
			}
		})
	}
}

// check demands that all was done once, as seen by each engine: none was restarted.
func (b *bookings) check(f fleetOf) {
	b.t.Helper()
	b.all.Wait()
	require.Len(b.t, b.ids, b.next)
	for n, id := range b.ids {
		require.Equal(b.t, fmt.Sprintf("completed: %d", n), b.ends(b.engines[n%len(b.engines)], id), "case %s", id)
	}
	require.Equal(b.t, b.next, f.sql("SELECT count(*) FROM tasq.cases WHERE workflow = 'transfer'"), "cases")
	require.Equal(b.t, 2*b.next, f.sql("SELECT count(*) FROM effects"), "effects")
	require.Equal(b.t, 2*b.next, f.sql("SELECT count(*) FROM (SELECT DISTINCT n, effect FROM effects) e"), "different effects")
}

// ends is like the function of that name, for an engine whose connections may just have been lost.
func (b *bookings) ends(e *engine.Engine, id workitem.CaseID) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		c, err := e.Wait(ctx, id)
		if err == nil {
			return c.State.String() + ": " + string(c.Output)
		}
		require.ErrorIs(b.t, err, store.ErrUnavailable)
	}
}

// The server is restarted under load, as by an administrator and as by a crash. The engines continue by themselves, and what their callers ask and
// are answered is linearizable.
func TestTheServerIsRestarted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("restarts servers under load, which takes seconds; run without -short")
	}
	for _, n := range []int{3, 1}[:testsize.Pick(1, 2, 2)] {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			server := pgtest.Restartable(t)
			f := fleetOn(t, server.DSN)
			var engines []*engine.Engine
			for range n {
				engines = append(engines, f.open(engine.Config{Workers: 4}, booked(t), tallied(t)))
			}
			b := f.bookings(engines...)
			for _, immediate := range []bool{false, true} {
				b.book(40)
				f.until("SELECT count(*) FROM effects", func(n int) bool { return n >= b.next/4 })
				l := newLinear(t, engines[0], tallied(t))
				l.pace = 20 * time.Millisecond
				var callers []*caller
				for c := range 6 {
					callers = append(callers, l.caller(c, asks(engines[c%n]), asks(engines[(c+1)%n])))
				}
				l.begin(25, callers...)
				l.underWay(3)
				require.NoError(t, server.Restart(immediate))
				b.book(10)
				l.check()
			}
			b.check(f)
		})
	}
}

// Connections break at random statements, in all ways, under load. The nightly form continues for longer.
func TestConnectionsThatBreakUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("breaks connections under load, which takes seconds; run without -short")
	}
	rounds := testsize.Pick(1, 1, 10)
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := newFleet(t)
			var engines []*engine.Engine
			var proxies []*pgproxy.Proxy
			for range n {
				p, dsn := pgproxy.New(t, f.dsn)
				proxies = append(proxies, p)
				engines = append(engines, fleetOf{t, dsn}.open(engine.Config{Workers: 4}, booked(t)))
			}
			for i, p := range proxies { // an engine that opens beside those that lose their connections may fail to
				p.Decide(randomFaults(uint64(i)))
			}
			b := f.bookings(engines...)
			met := 0
			for round := 0; round < rounds || met == 0; round++ {
				b.book(20)
				f.until("SELECT count(*) FROM effects", func(n int) bool { return n >= b.next })
				met = 0
				for _, p := range proxies {
					p.Deliver()
					met += p.Met()
				}
			}
			for _, p := range proxies {
				p.Decide(nil)
				p.Deliver()
			}
			b.check(f)
			t.Logf("%d faults survived", met)
		})
	}
}

// randomFaults has one statement in forty of those that write break its connection.
func randomFaults(seed uint64) func(string) pgproxy.Fault {
	r := rand.New(rand.NewPCG(seed, 1))
	faults := []pgproxy.Fault{pgproxy.Request, pgproxy.Reply, pgproxy.Late, pgproxy.Delay}
	return func(statement string) pgproxy.Fault {
		for _, text := range []string{"INSERT", "UPDATE", "COMMIT", "SAVEPOINT", "pg_current_xact_id"} {
			if strings.Contains(statement, text) && r.IntN(40) == 0 {
				return faults[r.IntN(len(faults))]
			}
		}
		return ""
	}
}

// An engine whose connection is lost as it takes a job does it nevertheless, whether the database has given it the job
// or not.
func TestAJobIsTakenByACommitThatIsLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply, pgproxy.Late} {
		t.Run(string(fault), func(t *testing.T) {
			f := newFleet(t)
			p, dsn := pgproxy.New(t, f.dsn)
			w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
			a := f.open(engine.Config{Workers: -1}, w)
			fleetOf{t, dsn}.open(engine.Config{}, w)
			taking, broken, again := false, make(chan struct{}), make(chan struct{}, 100)
			p.Decide(func(statement string) pgproxy.Fault {
				switch {
				case broken == nil && strings.Contains(statement, "FOR UPDATE"):
					again <- struct{}{}
				case strings.Contains(statement, "FOR UPDATE OF j SKIP LOCKED"):
					taking = true
				case taking && strings.HasPrefix(statement, "COMMIT") && broken != nil && f.sql("SELECT count(*) FROM tasq.jobs") > 0:
					close(broken)
					broken = nil
					return fault
				}
				return ""
			})
			met := broken
			id := startOn(t, a, "double", `7`)
			for _, c := range []chan struct{}{met, again} {
				select {
				case <-c:
				case <-time.After(time.Minute):
					t.Fatal("the job was not taken")
				}
			}
			p.Deliver()
			require.Equal(t, "completed: 14", ends(t, a, id))
		})
	}
}

// An engine registers again although its connection is lost during the registration: the locks of the lost session are
// released soon, even if the server does not learn that its client is gone.
func TestAnEngineComesBackByACommitThatIsLost(t *testing.T) {
	f := newFleet(t)
	p, dsn := pgproxy.New(t, f.dsn)
	w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	e := fleetOf{t, dsn}.open(engine.Config{}, w)
	stage := 0
	p.Decide(func(statement string) pgproxy.Fault {
		for at, s := range []struct {
			text  string
			fault pgproxy.Fault
		}{{"start double", pgproxy.Request}, {"SET epoch = epoch + 1", ""}, {"COMMIT", pgproxy.Late}} {
			if at == stage && strings.Contains(statement, s.text) {
				stage++
				return s.fault
			}
		}
		return ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		r, err := e.Do(ctx, workflow.Start("double", []byte("7")))
		if err == nil {
			require.Equal(t, "completed: 14", ends(t, e, r.Case))
			break
		}
		require.NoError(t, ctx.Err(), "%v", err)
	}
	require.Equal(t, 2, p.Met())
	p.Deliver()
}

// atCommitOf has a fault happen at the first COMMIT behind a statement that has a text.
func atCommitOf(text string, f pgproxy.Fault) func(string) pgproxy.Fault {
	sent, over := false, false
	return func(statement string) pgproxy.Fault {
		sent = sent || strings.Contains(statement, text)
		if over || !sent || !strings.HasPrefix(statement, "COMMIT") {
			return ""
		}
		over = true
		return f
	}
}

// The outcome that a caller gets is true: a command whose connection was lost has happened if it succeeded, and has not
// if it failed. One with SQL of the user, which most of these are, is executed again.
func TestALostReplyIsNoLie(t *testing.T) {
	f := newFleet(t)
	p, dsn := pgproxy.New(t, f.dsn)
	e := fleetOf{t, dsn}.open(engine.Config{Workers: 2}, booked(t))
	f.sql("CREATE TABLE effects (n int, effect text)")
	var done []workitem.CaseID
	for n := range testsize.Pick(10, 30, 30) {
		p.Decide(atCommitOf("start transfer", []pgproxy.Fault{pgproxy.Reply, pgproxy.Request}[n%2]))
		r, err := e.Do(t.Context(), workflow.Start("transfer", []byte(fmt.Sprint(n))))
		if err == nil {
			done = append(done, r.Case)
			continue
		}
		require.ErrorIs(t, err, store.ErrUnavailable)
	}
	require.NotEmpty(t, done)
	for _, id := range done {
		require.Contains(t, (&bookings{t: t}).ends(e, id), "completed")
	}
	require.Equal(t, len(done), f.sql("SELECT count(*) FROM tasq.cases"))
	require.Equal(t, 2*len(done), f.sql("SELECT count(*) FROM effects"))
}
