package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
)

// Two limits are in use all the time, and when one has room the other has none. A job that needs both is not starved by
// those that need one of them, and those that wait for its reservation say so.
func TestAJobOfTwoLimitsIsNotStarved(t *testing.T) {
	var onlyA, onlyB, both callLog
	a, b := builder.Takes(limit.Resource("a", 1), 1), builder.Takes(limit.Resource("b", 1), 1)
	needsA := builder.MustFunc("needs-a", busyFor(&onlyA, 4*time.Minute), builder.Limits(a))
	needsB := builder.MustFunc("needs-b", busyFor(&onlyB, 4*time.Minute), builder.Limits(b), builder.OnQueue("other"))
	needsBoth := builder.MustFunc("needs-both", busyFor(&both, time.Minute), builder.Limits(a, b))
	inBubble(t, engine.Config{Workers: 10}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		startAll(t, e, needsA, 0)
		<-time.After(2 * time.Minute) // so that they never end together
		startAll(t, e, needsB, 0)
		waits := startAll(t, e, needsBoth, 0)
		<-time.After(time.Second)
		first, rest := startAll(t, e, needsA, 1), startAll(t, e, needsA, numbers(9)...)
		others := startAll(t, e, needsB, numbers(10)...)

		// a has room at 4, b at 6, and a again at 8, when it is the turn of needs-both: a is reserved until b has room at 10.
		<-time.After(time.Until(begin.Add(9 * time.Minute)))
		says(t, e, waits[0].ID, "waits for 1 of slots b, not enough are free")
		says(t, e, rest[0].ID, "waits for 1 of slots a, 1 other goes first")
		require.Equal(t, 0, onlyA.now())
		<-time.After(time.Until(begin.Add(10*time.Minute + time.Second)))
		require.Equal(t, 1, both.now())
		endAll(t, e, waits)
		endAll(t, e, first)
		endAll(t, e, rest)
		endAll(t, e, others)
		require.Equal(t, []int{1, 1, 1}, []int{onlyA.highest(), onlyB.highest(), both.highest()})
	}, needsA, needsB, needsBoth)
}

// The first in the line of a limit belongs to a queue whose workers are busy for an hour. What it does not use is used by a job of another queue, and
// tasq says what the first one waits for.
func TestALimitIsNotIdleForAQueueWithoutWorkers(t *testing.T) {
	var c callLog
	slots := limit.Resource("slots", 4)
	long := builder.MustFunc("long", busyFor(&c, time.Hour), builder.OnQueue("mail"))
	mails := builder.MustFunc("mails", busyFor(&c, time.Minute), builder.OnQueue("mail"), builder.Limits(builder.Takes(slots, 3)))
	files := builder.MustFunc("files", busyFor(&c, time.Minute), builder.Limits(builder.Takes(slots, 4)))
	inBubble(t, engine.Config{Workers: 2}, func(t *testing.T, e *engine.Engine) {
		first := startAll(t, e, files, 0)
		<-time.After(time.Second)
		mail := startAll(t, e, mails, 0)
		<-time.After(time.Second)
		longs := startAll(t, e, long, 0, 1) // the workers of mail are free, as mails waits for slots
		<-time.After(time.Second)
		begin, second := time.Now(), startAll(t, e, files, 1)
		endAll(t, e, first)
		endAll(t, e, second)
		require.Less(t, time.Since(begin), 3*time.Minute)
		says(t, e, mail[0].ID, "worker")
		endAll(t, e, mail)
		endAll(t, e, longs)
		require.Less(t, time.Since(begin), 62*time.Minute)
	}, long, mails, files)
}
