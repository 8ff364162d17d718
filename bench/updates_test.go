package main

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
)

// BenchmarkUpdates is a row that 64 callers at once put into a table of their own, by functions that are called once at most, and
// by ones that may be called again and so share a transaction.
func BenchmarkUpdates(b *testing.B) {
	for name, opts := range map[string][]engine.UpdateOption{"once": nil, "repeatable": {engine.Repeatable()}} {
		b.Run(name, func(b *testing.B) {
			e, err := open(file(b.TempDir()), 1, oneTask)
			require.NoError(b, err)
			do := func(query string) error {
				return e.Update(noTimeout, func(tx *engine.Tx) error {
					_, err := tx.DB().ExecContext(noTimeout, query)
					return err
				}, opts...)
			}
			require.NoError(b, do("CREATE TABLE mine (n INTEGER)"))
			b.ResetTimer()
			before := used()
			fromCallers(b, func() error { return do("INSERT INTO mine VALUES (1)") })
			b.StopTimer()
			m := metrics{}.since(before, float64(b.N))
			b.ReportMetric(m["cpu"], "cpu-us/op")
			b.ReportMetric(m["syncs"], "syncs/op")
			require.NoError(b, e.Close())
		})
	}
}

// fromCallers has 64 callers at once call f, b.N times in all.
func fromCallers(b *testing.B, f func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
