package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// aheadBy is a clock that is ahead of the system's.
type aheadBy struct {
	retry.Clock
	by time.Duration
}

func (c aheadBy) Now() time.Time { return c.Clock.Now().Add(c.by) }

// On a server, the cases of a page that retention removes are read together: other commands wait for a removal, and would
// wait for the round trips of each of its cases.
func TestTheCasesThatRetentionRemovesAreReadTogether(t *testing.T) {
	const cases = 100
	f := newFleet(t)
	a := builder.MustFunc("a", echo, builder.Keep(day))
	e := f.open(engine.Config{}, a)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for i := range cases {
			if _, err := a.Run(t.Context(), tx, i); err != nil {
				return err
			}
		}
		return nil
	}))
	f.until("SELECT count(*) FROM tasq.cases WHERE state = 'completed'", exactly(cases))
	require.NoError(t, e.Close())

	p, through := pgproxy.New(t, f.dsn)
	var c sentThrough
	p.Decide(c.take)
	fleetOf{t, through}.open(engine.Config{Clock: aheadBy{retry.SystemClock, 2 * day}}, a)
	f.until("SELECT count(*) FROM tasq.cases", exactly(0))
	read := 0
	for _, text := range c.sent() {
		if strings.Contains(text, "FROM tasq.cases WHERE root = ") {
			read++
		}
	}
	require.Less(t, read, 10, "trees of root cases")
}

// A case that is resumed after retention has read it, and before it is removed, stays.
func TestACaseThatIsResumedWhileRetentionReadsItStays(t *testing.T) {
	f := newFleet(t)
	fail := builder.MustFunc("fail", func(context.Context, int) (int, error) { return 0, retry.Permanent(errors.New("no")) }, builder.Keep(day))
	first := f.open(engine.Config{}, fail)
	id := startOn(t, first, "fail", `1`)
	f.until("SELECT count(*) FROM tasq.cases WHERE state = 'failed'", exactly(1))
	require.NoError(t, first.Close())
	other := f.open(engine.Config{Workers: -1}, fail)

	p, through := pgproxy.New(t, f.dsn)
	var c sentThrough
	resumed := make(chan error, 1)
	p.Decide(func(statement string) pgproxy.Fault {
		c.take(statement)
		// The last part of the trees that retention reads: the row of the case was read before.
		if strings.Contains(statement, "FROM tasq.messages WHERE root = ANY") && len(resumed) == 0 {
			resumed <- enginetest.Do(t.Context(), other, workflow.Resume(id, nil))
		}
		return ""
	})
	e := fleetOf{t, through}.open(engine.Config{Workers: -1, Clock: aheadBy{retry.SystemClock, 2 * day}}, fail)
	require.Eventually(t, func() bool {
		for _, text := range c.sent() {
			if strings.Contains(text, "FROM tasq.cases WHERE root = $1") {
				return true // it was read again
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, <-resumed)
	require.NoError(t, e.Close())
	k, err := other.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseStarted, k.State)
}
