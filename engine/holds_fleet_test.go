package engine_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// berths notes which case is at each berth, and what should not have been.
type berths struct {
	mu    sync.Mutex
	at    map[int]workitem.CaseID
	wrong []string
	calls int
}

func (b *berths) arrives(berth int, id workitem.CaseID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if other, taken := b.at[berth]; taken && other != id {
		b.wrong = append(b.wrong, fmt.Sprintf("case %s arrives at berth %d, where case %s is", id, berth, other))
	}
	b.at[berth] = id
}

func (b *berths) leaves(berth int, id workitem.CaseID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at[berth] == id {
		delete(b.at, berth)
	}
}

func (b *berths) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// berthed is a workflow whose cases hold a berth from their arrival until they leave, each task on any engine.
func berthed(t *testing.T, seen *berths, busy time.Duration) *builder.Workflow[int] {
	t.Helper()
	b := builder.New[int]("berthed")
	berth := func(n int) int { return n % 3 }
	does := func(f func(int, workitem.CaseID)) func(context.Context, int) (int, error) {
		return func(ctx context.Context, n int) (int, error) {
			w, _ := builder.WorkFrom(ctx)
			f(berth(n), w.Case.ID)
			<-time.After(busy)
			return n, nil
		}
	}
	arrive := builder.Task(b, "arrive", builder.Work[int, int]{Input: builder.CaseInput(b), Run: does(seen.arrives)})
	unload := builder.Task(b, "unload", builder.Work[int, int]{Input: builder.Output(arrive), Run: does(seen.arrives)})
	leave := builder.Task(b, "leave", builder.Work[int, int]{Input: builder.Output(unload), Run: does(seen.leaves)})
	b.Path(b.Start(), arrive, unload, leave, b.End())
	b.Hold(builder.TakesBy(limit.Resource("berth", 1), 1, func(n int) string { return fmt.Sprint(berth(n)) }), arrive, leave)
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

// What cases hold is theirs in a fleet: their tasks are done by any engine, one engine dies, and no two cases are at one berth.
func TestCasesHoldSlotsInAFleet(t *testing.T) {
	f := newFleet(t)
	seen := &berths{at: make(map[int]workitem.CaseID)}
	one, two, three := berthed(t, seen, 5*time.Millisecond), berthed(t, seen, 5*time.Millisecond), berthed(t, seen, 5*time.Millisecond)
	a, b := f.open(engine.Config{Workers: 4}, one), f.open(engine.Config{Workers: 4}, two)
	ids := append(startShips(t, a, one, 20), startShips(t, b, two, 20)...)
	require.Eventually(t, func() bool { return seen.count() > 12 }, time.Minute, time.Millisecond)
	require.NoError(t, a.Kill())
	c := f.open(engine.Config{Workers: 4}, three)
	completed(t, c, ids)
	require.Empty(t, seen.wrong)
	require.GreaterOrEqual(t, seen.count(), 80)
}

// An engine that ends between the end of a hold and giving it back holds up no case: what holds up others is checked.
func TestAHoldThatWasNotGivenBackIsFound(t *testing.T) {
	f := newFleet(t)
	seen := &berths{at: make(map[int]workitem.CaseID)}
	w := berthed(t, seen, 0)
	a := f.open(engine.Config{}, w)
	first := startShips(t, a, w, 1)
	completed(t, a, first)
	row := fmt.Sprintf(`{"holds": [{"root": %q, "case": %q, "task": "arrive", "n": 1, "activation": 1, "after": 0}]}`, first[0], first[0])
	f.sql("INSERT INTO tasq.limits (name, key, version, state, until) VALUES ('berth', '0', 1000, $1, $2) "+
		"ON CONFLICT (name, key) DO UPDATE SET state = $1, until = $2, version = limits.version + 1", row, math.MaxInt64)
	completed(t, a, startShips(t, a, w, 1))
}
