//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// transfer is work whose effects are counted in a table of the user's: two of each number.
func transfer(t testing.TB) engine.Workflow {
	effect := func(ctx context.Context, name string, n int) error {
		_, err := step.Tx(ctx, name, func(ctx context.Context, db domain.DB) (int, error) {
			_, err := db.ExecContext(ctx, "INSERT INTO effects (n, effect, pid) VALUES ($1, $2, $3)", n, name, os.Getpid())
			return n, err
		})
		return err
	}
	w, _ := function(t, "transfer", func(ctx context.Context, n int) (int, error) {
		if err := effect(ctx, "debit", n); err != nil {
			return 0, err
		}
		if err := step.Sleep(ctx, "clearing", 20*time.Millisecond); err != nil {
			return 0, err
		}
		return n, effect(ctx, "credit", n)
	})
	return w
}

// Of three processes under load one is killed, or is stopped and continues later, again and again. Each effect happens
// once, everything that was acknowledged comes to its end, and what callers of all of them ask and are answered is linearizable.
func TestProcessesThatDie(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes and kills them, which takes half a minute; run without -short")
	}
	f := newFleet(t)
	f.sql("CREATE TABLE effects (n int, effect text, pid int)")
	rounds := testsize.Pick(2, 3, 200) // the third is the first process that is stopped and continues
	e := f.open(engine.Config{Workers: -1}, transfer(t), tallied(t))
	var processes []*member
	for range 3 {
		processes = append(processes, f.process())
	}
	load := newLoad(t, e)
	for round := range rounds {
		l := newLinear(t, e, tallied(t))
		stops := round%4 == 2
		l.pace = 20 * time.Millisecond
		if stops {
			l.pace = 300 * time.Millisecond // so that the others change what the process does as it continues
		}
		var callers []*caller
		for c := range 6 {
			callers = append(callers, l.caller(c, processes[c%3].ask, asks(e)))
		}
		l.begin(25, append(callers, l.caller(6, asks(e)))...)
		l.underWay(3)
		p := processes[round%3]
		if stops {
			p.signal(t, syscall.SIGSTOP)
			pause(t, time.Second)
			load.hold()             // what begins now meets nothing that differs from a kill
			pause(t, 8*time.Second) // it is declared dead meanwhile
			load.goOn()
			p.signal(t, syscall.SIGCONT)
			pause(t, time.Second)
		} else {
			p.signal(t, syscall.SIGKILL)
			p.end()
			processes[round%3] = f.process()
			pause(t, time.Second)
		}
		l.check()
	}
	ids := load.stop()
	t.Logf("%d faults survived, with %d cases", rounds, len(ids))
	for n, id := range ids {
		require.Equal(t, fmt.Sprintf("completed: %d", n), ends(t, e, id), "case %s", id)
	}
	require.Equal(t, 2*len(ids), f.sql("SELECT count(*) FROM effects"))
	require.Equal(t, 2*len(ids), f.sql("SELECT count(*) FROM (SELECT DISTINCT n, effect FROM effects) e"))
	require.GreaterOrEqual(t, f.sql("SELECT count(DISTINCT pid) FROM effects"), 3, "all processes worked")
}

// load starts cases until it is stopped. Each of its callers waits for the end of its case before it starts the next
// one, so that a slow machine has no backlog. The usual form has few callers: more of them load the machine, and not
// the engines.
type load struct {
	over chan struct{}
	held sync.RWMutex // by those who begin; locked while nothing is to begin
	done sync.WaitGroup
	mu   sync.Mutex
	ids  map[int]workitem.CaseID
}

func newLoad(t *testing.T, e *engine.Engine) *load {
	l := &load{over: make(chan struct{}), ids: make(map[int]workitem.CaseID)}
	callers := testsize.Pick(6, 24, 24)
	for caller := range callers {
		l.done.Go(func() {
			for n := caller; !l.isOver(); n += callers {
				l.held.RLock()
				r, err := e.Do(t.Context(), workflow.Start("transfer", []byte(fmt.Sprint(n))))
				l.held.RUnlock()
				if err != nil {
					continue
				}
				l.mu.Lock()
				l.ids[n] = r.Case
				l.mu.Unlock()
				_, _ = e.Wait(t.Context(), r.Case) // how it ends is checked later
			}
		})
	}
	return l
}

func (l *load) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// hold has no case begin until goOn is called: those that wait for a process use no processor.
func (l *load) hold() { l.held.Lock() }

func (l *load) goOn() { l.held.Unlock() }

// stop returns the cases that were acknowledged, by their numbers.
func (l *load) stop() map[int]workitem.CaseID {
	close(l.over)
	l.done.Wait()
	return l.ids
}
