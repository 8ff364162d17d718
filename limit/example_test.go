package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
)

var errDatabase = errors.New("database is locked")

// database counts how many queries run on it. The first two fail.
type database struct {
	mu            sync.Mutex
	queries       int
	running, peak int
}

func (d *database) query(string) ([]string, error) {
	d.mu.Lock()
	d.running++
	d.queries++
	d.peak = max(d.peak, d.running)
	failed := d.queries <= 2
	d.mu.Unlock()
	<-time.After(time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	if failed {
		return nil, errDatabase
	}
	return []string{"alice", "bob"}, nil
}

// Each attempt holds one of five connections. Between attempts none is held.
func Example_resourceWithRetry() {
	connections := limit.Must(limit.NewSet(limit.Resource("connections", 5)))
	db := new(database)
	policy := retry.Exponential(4, time.Millisecond)
	policy.Filters = []retry.Filter{retry.On(errDatabase)}

	users, err := retry.Do(context.Background(), policy, func(ctx context.Context, attempt int) ([]string, error) {
		return limit.Do(ctx, connections, func(context.Context, limit.Lease) ([]string, error) {
			users, err := db.query("SELECT * FROM users")
			fmt.Println("attempt", attempt, err, "- held:", connections.Usage()[0].Used)
			return users, err
		})
	})
	fmt.Println(users, err, "- held:", connections.Usage()[0].Used)
	// Output:
	// attempt 1 database is locked - held: 1
	// attempt 2 database is locked - held: 1
	// attempt 3 <nil> - held: 1
	// [alice bob] <nil> - held: 0
}

// An API admits 100 requests in any minute. An attempt that fails before it says what it used has used its request: its
// own error is returned, and nothing is held.
func Example_rateWithRetry() {
	requests := limit.Must(limit.NewSet(limit.Rate("requests", 100, time.Minute, limit.SlidingWindow)))
	calls := 0
	get := func(string) (string, error) {
		if calls++; calls < 3 {
			return "", errors.New("503 Service Unavailable")
		}
		return `{"id": 7}`, nil
	}

	body, err := retry.Do(context.Background(), retry.Exponential(6, time.Millisecond),
		func(ctx context.Context, attempt int) (string, error) {
			lease, err := requests.Acquire(ctx, limit.Take("requests", 1))
			if err != nil {
				return "", err
			}
			defer lease.Release()
			body, err := get("/users/7")
			if err != nil {
				return "", err
			}
			return body, lease.Commit("requests", 1)
		})
	fmt.Println(body, err)
	fmt.Println("used:", requests.Usage()[0].Used)
	// Output:
	// {"id": 7} <nil>
	// used: 3
}

// Twenty workers share ten connections, through their retries too.
func Example_sharedByWorkers() {
	connections := limit.Must(limit.NewSet(limit.Resource("connections", 10)))
	db := new(database)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 20 {
		workers.Go(func() {
			for range 5 {
				_, err := retry.Do(context.Background(), retry.Constant(4, time.Millisecond),
					func(ctx context.Context, _ int) ([]string, error) {
						return limit.Do(ctx, connections, func(context.Context, limit.Lease) ([]string, error) {
							return db.query("SELECT * FROM users")
						})
					})
				mu.Lock()
				if err == nil {
					done++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Println("queries that succeeded:", done)
	fmt.Println("at most ten at a time:", db.peak <= 10)
	// Output:
	// queries that succeeded: 100
	// at most ten at a time: true
}

// Ten calls in any second, attempts included: each attempt is a call.
func Example_calls() {
	calls := limit.Must(limit.NewSet(limit.Calls(10, time.Second)))
	admitted := 0
	for range 25 {
		lease, err := calls.TryAcquire()
		if err != nil {
			fmt.Println(err)
			return
		}
		if lease == nil {
			continue
		}
		admitted++
		lease.Release()
	}
	fmt.Println(admitted, "of 25 at once; the next in", calls.Wait().Round(time.Second))
	// Output: 10 of 25 at once; the next in 1s
}

// A call to a model takes as many tokens as it may need, and gives back what it did not.
func Example_tokens() {
	model := limit.Must(limit.NewSet(
		limit.Calls(60, time.Minute),
		limit.Rate("tokens", 10_000, time.Minute, limit.SlidingWindow),
	))
	text, err := limit.Do(context.Background(), model, func(ctx context.Context, lease limit.Lease) (string, error) {
		answer, tokens := "Petri nets are ...", int64(1200)
		return answer, lease.Commit("tokens", tokens)
	}, limit.Take("tokens", 4000))
	fmt.Println(text, err)
	for _, u := range model.Usage() {
		fmt.Println(u.Used, "used:", u.Limit)
	}
	_, err = model.Acquire(context.Background(), limit.Take("tokens", 20_000))
	fmt.Println(err)
	// Output:
	// Petri nets are ... <nil>
	// 1 used: 60 of rate calls in 1m0s (sliding-window)
	// 1200 used: 10000 of rate tokens in 1m0s (sliding-window)
	// limit: 20000 of rate tokens were asked for, and it admits 10000 at once: ask for less, or raise it: more than the limit admits at once
}

// Two at once and ten a minute, for each customer.
func ExampleKeys() {
	customers := limit.Must(limit.NewKeys(limit.Resource("running", 2), limit.Calls(10, time.Minute)))
	for _, customer := range []string{"ada", "ada", "ada", "bob"} {
		lease, err := customers.For(customer).TryAcquire()
		fmt.Println(customer, lease != nil, err)
	}
	// Output:
	// ada true <nil>
	// ada true <nil>
	// ada false <nil>
	// bob true <nil>
}

// Three API keys, each with its own limit.
func ExamplePool() {
	var keys []limit.Member
	for _, name := range []string{"key-1", "key-2", "key-3"} {
		keys = append(keys, limit.Member{Name: name, Set: limit.Must(limit.NewSet(limit.Calls(50, time.Minute)))})
	}
	pool := limit.Must(limit.NewPool(keys...))
	used := make(map[string]int)
	for range 150 {
		_, err := limit.Do(context.Background(), pool, func(_ context.Context, lease limit.Lease) (string, error) {
			used[lease.From()]++
			return "answer", nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(used, pool.Wait().Round(time.Minute))
	// Output: map[key-1:50 key-2:50 key-3:50] 1m0s
}

// A store that shares a limit keeps the bytes of its state, and decides in a transaction.
func ExampleState() {
	l := limit.Rate("openai", 2, time.Minute, limit.GCRA)
	var row []byte // of the store
	acquire := func(now time.Time) (limit.Grant, time.Duration) {
		var s limit.State
		if err := s.UnmarshalBinary(row); err != nil {
			panic(err)
		}
		wait := l.Wait(&s, now.UnixNano(), 1)
		var g limit.Grant
		if wait == 0 {
			g = l.Take(&s, now.UnixNano(), 1)
		}
		row, _ = s.MarshalBinary()
		return g, wait
	}
	now := time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)
	for range 3 {
		_, wait := acquire(now)
		fmt.Println(now.Format(time.TimeOnly), "wait", wait)
		now = now.Add(wait)
	}
	// Output:
	// 08:00:00 wait 0s
	// 08:00:00 wait 30s
	// 08:00:30 wait 0s
}
