package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
)

// BenchmarkIdleSchedules is what schedules cost while none is due. Each operation is a second of an engine without other work: its CPU, and that
// of the server. Open is the time of opening the engine and comparing its schedules with the database, heap what it keeps in memory for each.
func BenchmarkIdleSchedules(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprint("sqlite/", n), func(b *testing.B) { idleSchedules(b, file(b.TempDir()), n, func() {}) })
	}
	if (&bench{}).hasServer() {
		for _, n := range []int{0, 10_000} {
			b.Run(fmt.Sprint("postgres/", n), func(b *testing.B) {
				_, err := inDatabase(job{}, func(r job) (metrics, error) {
					idleSchedules(b, postgres.Open(r.dsn), n, func() { vacuum(b, r.dsn) })
					return nil, nil
				})
				require.NoError(b, err)
			})
		}
	}
	os.Unsetenv(pgtest.EnvServer)
}

// vacuum does at once what autovacuum would do within a minute for the rows of the schedules, once.
func vacuum(b *testing.B, dsn string) {
	c, err := pgx.Connect(b.Context(), dsn)
	require.NoError(b, err)
	_, err = c.Exec(b.Context(), "VACUUM ANALYZE")
	require.NoError(b, err)
	require.NoError(b, c.Close(b.Context()))
}

// idleSchedules declares n schedules, opens the engine again, and has it wait. settle is called before it waits.
func idleSchedules(b *testing.B, in store.Opener, n int, settle func()) {
	f := builder.MustFunc("ticked", func(_ context.Context, n int) (int, error) { return n, nil })
	later := time.Now().AddDate(0, 6, 0)
	var list []workflow.Scheduled
	for i := range n {
		list = append(list, builder.Schedule(schedule.Schedule{Name: fmt.Sprint("s", i),
			Cron: fmt.Sprintf("%d %d 1 %d *", i%60, i/60%24, later.Month())}, f, i))
	}
	serve := func() *engine.Engine {
		s := schedules.New(engine.Code, list...)
		e, err := engine.Open(b.Context(), in, f, s)
		require.NoError(b, err)
		_, err = s.Serve(b.Context(), e)
		require.NoError(b, err)
		return e
	}
	begin := time.Now()
	require.NoError(b, serve().Close())
	declare, heap := time.Since(begin), heapInUse()
	begin = time.Now()
	e := serve()
	opened := time.Since(begin)
	time.Sleep(3 * time.Second) // the tables are updated after the commits
	settle()
	kept := heapInUse() - heap
	b.Run("seconds", func(b *testing.B) {
		before := used()
		for range b.N {
			time.Sleep(time.Second)
		}
		m := metrics{}.since(before, float64(b.N))
		b.ReportMetric(m["cpu"], "cpu-us/s")
		b.ReportMetric(m["server"], "server-us/s")
		b.ReportMetric(float64(declare.Milliseconds()), "declare-ms")
		b.ReportMetric(float64(opened.Milliseconds()), "open-ms")
		b.ReportMetric(kept/1024, "heap-KiB")
		b.ReportMetric(0, "ns/op")
	})
	require.NoError(b, e.Close())
}

// heapInUse is the size of what is reachable.
func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
