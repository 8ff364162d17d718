package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// later calls Acquire on another goroutine. The result says when it returned.
func later(ctx context.Context, from limit.Limiter) <-chan acquired {
	done := make(chan acquired, 1)
	go func() {
		lease, err := from.Acquire(ctx)
		done <- acquired{lease, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

type acquired struct {
	lease limit.Lease
	err   error
	at    time.Time
}

// Jobs and code outside of jobs take of the same slots, in the order in which they ask, and what they wait for is said of each.
func TestJobsAndCallersTakeOfOneLimit(t *testing.T) {
	for _, db := range []limit.Limit{limit.Resource("db", 1), limit.Resource("db", 1).Shared()} {
		var c callLog
		f := builder.MustFunc("f", busyFor(&c, time.Minute), builder.Limits(builder.Takes(db, 0)))
		inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
			from := engine.Limits(e, step.Takes(db, 0))
			held, err := from.Acquire(t.Context())
			require.NoError(t, err)
			first := startAll(t, e, f, 1)
			<-time.After(time.Second)
			second := later(t.Context(), from)
			<-time.After(time.Second)
			third := startAll(t, e, f, 3)
			<-time.After(time.Second)

			says(t, e, first[0].ID, "waits for 1 of slots db, not enough are free, 1 held outside of jobs")
			says(t, e, third[0].ID, "waits for 1 of slots db, not enough are free, 1 held outside of jobs, 2 others go first, 1 of them outside of jobs")
			r, err := e.Do(t.Context(), workflow.Limits())
			require.NoError(t, err)
			require.Equal(t, []int64{1, 1}, []int64{r.Limits[0].Used, r.Limits[0].HeldOutside})
			require.Equal(t, []int{3, 1}, []int{r.Limits[0].Waiting, r.Limits[0].WaitingOutside})

			begin := time.Now()
			held.Release()
			held.Release()
			endAll(t, e, first)
			got := <-second
			require.NoError(t, got.err)
			require.Equal(t, time.Minute, got.at.Sub(begin))
			require.Equal(t, 0, c.now())
			got.lease.Release()
			endAll(t, e, third)
			require.Equal(t, 1, c.highest())
		}, f)
	}
}

// A waiting acquisition whose context ends leaves the line, and those behind it continue.
func TestACallerLeavesTheLine(t *testing.T) {
	db := limit.Resource("db", 3)
	inBubble(t, engine.Config{Limits: []limit.Limit{db}}, func(t *testing.T, e *engine.Engine) {
		held, err := engine.Limits(e, step.Takes(db, 2)).Acquire(t.Context())
		require.NoError(t, err)
		defer held.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		large := later(ctx, engine.Limits(e, step.Takes(db, 2)))
		small := later(t.Context(), engine.Limits(e, step.Takes(db, 1)))
		begin := time.Now()
		got := <-large
		require.ErrorIs(t, got.err, context.DeadlineExceeded)
		require.ErrorContains(t, got.err, "limit: stopped while it waited for 2 of slots db, not enough are free")
		got = <-small
		require.NoError(t, got.err)
		require.Equal(t, time.Second, got.at.Sub(begin))
		got.lease.Release()

		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		_, err = engine.Limits(e, step.Takes(db, 1)).Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// slowRows is a store whose rows of limits take a minute to read.
type slowRows struct {
	store.Opener
	slow chan time.Duration
}

type slowStore struct {
	store.Store
	slow chan time.Duration
}

// Open implements store.Opener.
func (o slowRows) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := o.Opener.Open(ctx, opts)
	return slowStore{s, o.slow}, err
}

// ReadLimits implements store.Limits.
func (s slowStore) ReadLimits(ctx context.Context, keys []store.LimitKey) (store.LimitView, error) {
	select {
	case d := <-s.slow:
		<-time.After(d)
	default:
	}
	return s.Store.ReadLimits(ctx, keys)
}

// An acquisition whose context ends while the store is asked leaves at once, and what the store then grants is for the next one.
func TestACallerLeavesWhileTheStoreIsAsked(t *testing.T) {
	calls := limit.Calls(1, time.Hour).Shared()
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan time.Duration, 1)
		cfg := quietConfig()
		cfg.Limits = []limit.Limit{calls}
		e, err := cfg.Open(t.Context(), slowRows{sqlite.Memory(), slow})
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		from := engine.Limits(e, step.Takes(calls, 0))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		slow <- 10 * time.Second
		begin := time.Now()
		_, err = from.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(begin))
		lease, err := from.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(begin))
		lease.Release()
		require.Equal(t, time.Hour+72*time.Second, from.Wait().Round(time.Minute/5), "an hour, and Hold")
		require.NoError(t, e.Close())
	})
}

// Close does not wait for leases, and ends waits with an error.
func TestCloseEndsTheWaitsOfCallers(t *testing.T) {
	for _, db := range []limit.Limit{limit.Resource("db", 1), limit.Calls(1, time.Hour), limit.Calls(1, time.Hour).Shared()} {
		synctest.Test(t, func(t *testing.T) {
			cfg := quietConfig()
			cfg.Limits = []limit.Limit{db}
			e, err := cfg.Open(t.Context(), sqlite.Memory())
			require.NoError(t, err)
			<-time.After(3 * time.Millisecond)
			from := engine.Limits(e, step.Takes(db, 0))
			leaked, err := from.Acquire(t.Context())
			require.NoError(t, err)
			waits := later(t.Context(), from)
			begin := time.Now()
			require.NoError(t, e.Close())
			require.Zero(t, time.Since(begin))
			got := <-waits
			require.ErrorIs(t, got.err, engine.ErrClosed)
			require.ErrorContains(t, got.err, "the engine that has the limits stops")
			_, err = from.Acquire(t.Context())
			require.ErrorIs(t, err, engine.ErrClosed)
			_, err = from.TryAcquire()
			require.ErrorIs(t, err, engine.ErrClosed)
			leaked.Release()
		})
	}
}

// What does not wait for room waits for the answer of the store, if the limit is shared.
func TestCallersThatDoNotWait(t *testing.T) {
	for _, l := range []limit.Limit{limit.Calls(3, time.Hour), limit.Calls(3, time.Hour).Shared(), limit.Resource("slots", 3), limit.Resource("slots", 3).Shared()} {
		inBubble(t, engine.Config{Limits: []limit.Limit{l}}, func(t *testing.T, e *engine.Engine) {
			from := engine.Limits(e, step.TakesBy(l, 1, "ada"))
			require.Zero(t, from.Wait())
			require.Zero(t, from.Wait(limit.Take(l.Name, 3)))
			first, err := from.TryAcquire(limit.Take(l.Name, 2))
			require.NoError(t, err)
			require.NotNil(t, first)
			require.Equal(t, "ada", first.From())
			<-time.After(time.Minute)
			none, err := from.TryAcquire(limit.Take(l.Name, 2))
			require.NoError(t, err)
			require.Nil(t, none)
			<-time.After(2 * time.Second)
			last, err := from.TryAcquire()
			require.NoError(t, err)
			require.NotNil(t, last, "what was refused is in no line")
			reasons, err := from.Why()
			require.NoError(t, err)
			require.Len(t, reasons, 1)
			require.Equal(t, from.Wait(), reasons[0].Wait)
			if l.Algorithm == limit.Slots {
				require.Equal(t, limit.Unknown, reasons[0].Wait)
				last.Release()
				require.Zero(t, from.Wait())
			} else {
				require.InDelta(t, time.Hour-time.Minute, reasons[0].Wait, float64(2*time.Minute))
			}
			require.Zero(t, engine.Limits(e, step.TakesBy(l, 3, "bob")).Wait(), "another key")
			first.Release()
		})
	}
}

// Commit gives back what was not used, and failures open a breaker.
func TestLeasesOfCallers(t *testing.T) {
	for _, tokens := range []limit.Limit{limit.Rate("tokens", 100, time.Hour, limit.SlidingWindow), limit.Rate("tokens", 100, time.Hour, limit.SlidingWindow).Shared()} {
		provider := limit.Breaker("provider", 0.5, time.Minute, 30*time.Second)
		provider.Least = 1
		inBubble(t, engine.Config{Limits: []limit.Limit{tokens, provider}}, func(t *testing.T, e *engine.Engine) {
			from := engine.Limits(e, step.Takes(tokens, 0), step.Takes(provider, 0))
			_, err := limit.Do(t.Context(), from, func(_ context.Context, lease limit.Lease) (int, error) {
				require.ErrorIs(t, lease.Commit("tokens", -1), limit.ErrAmount)
				require.ErrorIs(t, lease.Commit("other", 1), limit.ErrUnknownLimit)
				return 0, lease.Commit("tokens", 10)
			}, limit.Take("tokens", 100))
			require.NoError(t, err)
			begin := time.Now()
			lease, err := from.Acquire(t.Context(), limit.Take("tokens", 90))
			require.NoError(t, err)
			require.Less(t, time.Since(begin), time.Minute, "90 were given back")
			lease.Fail()
			lease.Release()
			require.ErrorIs(t, lease.Commit("tokens", 1), limit.ErrReleased)
			begin = time.Now()
			_, err = from.Acquire(t.Context(), limit.Take("tokens", 0))
			require.NoError(t, err)
			require.Equal(t, 30*time.Second, time.Since(begin), "the breaker is open")
		})
	}
}

// What a limiter can never acquire is an error of each acquisition.
func TestCallersThatCannotBeAdmitted(t *testing.T) {
	tokens := limit.Rate("tokens", 100, time.Hour, limit.SlidingWindow)
	inBubble(t, engine.Config{Limits: []limit.Limit{tokens}}, func(t *testing.T, e *engine.Engine) {
		for _, c := range []struct {
			takes   []step.Take
			amounts []limit.Amount
			is      error
			says    string
		}{
			{[]step.Take{step.Takes(limit.Resource("db", 1), 0)}, nil, limit.ErrUnknownLimit, `no function of the engine takes of limit "db": add it to engine.Config.Limits`},
			{[]step.Take{step.Takes(tokens.Shared(), 1)}, nil, limit.ErrInvalid, "use the same definition"},
			{[]step.Take{step.Takes(tokens, 1), step.Takes(tokens, 1)}, nil, limit.ErrInvalid, "taken twice"},
			{[]step.Take{step.Takes(tokens, 1).AnyOf("")}, nil, limit.ErrInvalid, "one of its keys is empty"},
			{[]step.Take{step.Takes(tokens, 0)}, nil, limit.ErrAmount, "the amount of tokens is missing"},
			{[]step.Take{step.Takes(tokens, 1)}, []limit.Amount{limit.Take("tokens", -1)}, limit.ErrAmount, "the amount of tokens is -1"},
			{[]step.Take{step.Takes(tokens, 1)}, []limit.Amount{limit.Take("other", 1)}, limit.ErrUnknownLimit, "name it in engine.Limits"},
			{[]step.Take{step.Takes(tokens, 101)}, nil, limit.ErrTooMuch, "the call takes 101 of 100 of rate tokens"},
		} {
			from := engine.Limits(e, c.takes...)
			_, err := from.Acquire(t.Context(), c.amounts...)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			_, again := from.TryAcquire(c.amounts...)
			require.EqualError(t, again, err.Error())
			_, again = from.Why(c.amounts...)
			require.EqualError(t, again, err.Error())
			require.Equal(t, limit.Unknown, from.Wait(c.amounts...))
		}
		_, err := e.Do(t.Context(), workflow.SetLimitOf("tokens", "ada", 5))
		require.NoError(t, err, "code outside of jobs may use keys")
	})
	_, err := engine.Limits(nil, step.Takes(tokens, 1)).Acquire(t.Context())
	require.ErrorIs(t, err, limit.ErrInvalid)
	f := builder.MustFunc("f", echo, builder.Limits(builder.Takes(tokens, 1)))
	for says, l := range map[string]limit.Limit{"engine.Config.Limits": tokens.Shared(), "Config.Limits: invalid limit": {Name: "x"}} {
		cfg := quietConfig()
		cfg.Limits = []limit.Limit{l}
		_, err := cfg.Open(t.Context(), sqlite.Memory(), f)
		require.ErrorContains(t, err, says)
	}
}

// Engines of one database share the slots of code outside of jobs, and those of an engine that died come back.
func TestSlotsOfCallersOfADeadEngineComeBack(t *testing.T) {
	f := newFleet(t)
	slots := limit.Resource("slots", 2).Shared()
	cfg := engine.Config{Limits: []limit.Limit{slots}}
	a, b := f.open(cfg), f.open(cfg)
	of := func(e *engine.Engine) limit.Limiter { return engine.Limits(e, step.Takes(slots, 1)) }
	_, err := of(a).Acquire(t.Context())
	require.NoError(t, err)
	mine, err := of(b).Acquire(t.Context())
	require.NoError(t, err)
	require.Equal(t, limit.Unknown, of(b).Wait())
	none, err := of(b).TryAcquire()
	require.NoError(t, err)
	require.Nil(t, none)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = of(b).Acquire(ctx)
	require.True(t, errors.Is(err, context.DeadlineExceeded), err)
	require.NoError(t, a.Kill())
	lease, err := of(b).Acquire(t.Context())
	require.NoError(t, err)
	lease.Release()
	mine.Release()
}
