package step_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
)

// BenchmarkReplay is a run of a job that has n steps behind it. The cost of one step does not grow with n.
func BenchmarkReplay(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			job := steptest.New()
			fn := func(ctx context.Context) error {
				for i := range n {
					_, err := step.Do(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) { return i, nil })
					if err != nil {
						return err
					}
				}
				_, err := step.Await[int](ctx, "never")
				return err
			}
			require.True(b, job.Run(b.Context(), fn).Suspended)
			b.ReportAllocs()
			for b.Loop() {
				job.Run(b.Context(), fn)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n), "ns/step")
		})
	}
}

// BenchmarkBranches is a run of a job with n branches that wait.
func BenchmarkBranches(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			job := steptest.New()
			fn := func(ctx context.Context) error {
				_, err := step.Map(ctx, make([]int, n), 0, func(ctx context.Context, i, _ int) (int, error) {
					return i, step.Sleep(ctx, fmt.Sprint("sleep ", i), time.Hour)
				})
				return err
			}
			require.True(b, job.Run(b.Context(), fn).Suspended)
			b.ReportAllocs()
			for b.Loop() {
				job.Run(b.Context(), fn)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n), "ns/branch")
		})
	}
}
