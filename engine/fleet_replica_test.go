package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// The primary is killed under load, and its standby is promoted. If it is a synchronous one, all that was acknowledged is there and comes to
// its end, each effect once. If not, the last of it may be gone, as if it had never been asked for: what is there is consistent, each of its
// effects is there once, and the engines continue. The usual form has the synchronous one.
func TestAStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts two servers and kills one under load, which takes seconds; run without -short")
	}
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		if !synchronous && !testsize.Long() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := pgtest.Replicated(t, synchronous)
			f := fleetOn(t, pair.DSN)
			var engines []*engine.Engine
			for range 3 {
				engines = append(engines, f.open(engine.Config{Workers: 4}, booked(t)))
			}
			b := f.bookings(engines...)
			b.book(60)
			f.until("SELECT count(*) FROM effects", func(n int) bool { return n >= b.next/4 })
			if !synchronous {
				require.NoError(t, pair.Detach()) // it lacks some of what is acknowledged from here on
				b.book(20)
				b.all.Wait()
			}
			require.NoError(t, pair.Kill())
			require.NoError(t, pair.Promote())
			b.book(20)
			if synchronous {
				b.check(f)
				return
			}
			b.all.Wait()
			b.settle(f)
		})
	}
}

// settle demands that all cases which there are come to their end, and that each effect of theirs is there once, and no other one.
func (b *bookings) settle(f fleetOf) {
	b.t.Helper()
	lost := 0
	for n, id := range b.ids {
		if f.sql("SELECT count(*) FROM tasq.cases WHERE id = $1", [16]byte(id)) == 0 {
			lost++
			continue
		}
		require.Contains(b.t, b.ends(b.engines[n%len(b.engines)], id), "completed")
	}
	b.t.Logf("%d of %d cases were lost with the primary", lost, b.next)
	require.Positive(b.t, lost, "or nothing is shown")
	there := f.sql("SELECT count(*) FROM tasq.cases")
	require.Equal(b.t, b.next-lost, there)
	require.Equal(b.t, there, f.sql("SELECT count(*) FROM tasq.cases WHERE state = 'completed'"))
	require.Equal(b.t, 2*there, f.sql("SELECT count(*) FROM effects"))
	require.Equal(b.t, 2*there, f.sql("SELECT count(*) FROM (SELECT DISTINCT n, effect FROM effects) e"))
}
