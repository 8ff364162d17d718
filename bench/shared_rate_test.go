package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
)

// BenchmarkSharedRate is what a rate that the workers of a store share costs functions of which 64 are in flight, on SQLite. Each
// operation is a pair: five hundred runs without the limit, and as many with it, in an order that changes. The costs are
// medians of the pairs: of the time, and of the CPU.
func BenchmarkSharedRate(b *testing.B) {
	const runs = 500
	work := func(_ context.Context, n int) (int, error) { return n, nil }
	plain := builder.MustFunc("plain", work)
	rated := builder.MustFunc("rated", work, builder.Limits(builder.Takes(limit.Calls(1_000_000, time.Minute).Shared(), 0)))
	e, err := engine.Open(b.Context(), file(b.TempDir()), plain, rated)
	require.NoError(b, err)
	took := func(f *builder.FuncRef[int, int]) (wall, cpu float64) {
		begin, before := time.Now(), used()
		var left atomic.Int64
		left.Store(runs)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					run, err := f.Run(b.Context(), e, 1)
					if err == nil {
						_, err = run.Result(b.Context(), e)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begin).Seconds(), metrics{}.since(before, runs)["cpu"]
	}
	took(plain)
	took(rated)
	var walls, cpus []float64
	for i := range b.N {
		pair := []*builder.FuncRef[int, int]{plain, rated}
		wall, cpu := make(map[any]float64), make(map[any]float64)
		for n := range pair {
			f := pair[(i+n)%2]
			wall[f], cpu[f] = took(f)
		}
		walls = append(walls, (wall[rated]-wall[plain])/wall[rated]*100)
		cpus = append(cpus, (cpu[rated]-cpu[plain])/cpu[rated]*100)
	}
	for name, list := range map[string][]float64{"throughput": walls, "cpu": cpus} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], "%-"+name)
		b.ReportMetric(list[len(list)*3/4]-list[len(list)/4], "%-"+name+"-between-quarters")
	}
	require.NoError(b, e.Close())
}
