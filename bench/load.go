package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// span is how long a closed loop runs: first unmeasured, then measured.
type span struct{ warm, length time.Duration }

// load has so many callers call do, each one call after the other, and returns rate, p50 and p99 (milliseconds) of the
// calls that began after the warm-up, and the number of all calls.
func load(callers int, s span, do func(caller int) error) (metrics, error) {
	var (
		wg     sync.WaitGroup
		failed atomic.Bool
		errs   = make([]error, callers)
		took   = make([][]time.Duration, callers)
		all    atomic.Int64
		began  = time.Now().Add(s.warm)
		end    = began.Add(s.length)
	)
	for c := range callers {
		wg.Go(func() {
			for !failed.Load() {
				at := time.Now()
				if !at.Before(end) {
					return
				}
				if errs[c] = do(c); errs[c] != nil {
					failed.Store(true)
					return
				}
				all.Add(1)
				if done := time.Now(); !at.Before(began) && done.Before(end) {
					took[c] = append(took[c], done.Sub(at))
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	times := slices.Sorted(slices.Values(slices.Concat(took...)))
	return metrics{
		"rate": float64(len(times)) / s.length.Seconds(),
		"p50":  ms(percentile(times, 50)), "p99": ms(percentile(times, 99)),
		"n": float64(all.Load()),
	}, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// usage is what the process has used so far.
type usage struct {
	cpu   time.Duration
	syncs int64
}

func used() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return usage{}
	}
	return usage{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), syncs: files.syncs.Load()}
}

// since adds what was used since an earlier moment, for each of n items: CPU in microseconds, and syncs.
func (m metrics) since(before usage, n float64) metrics {
	now := used()
	m["cpu"] = float64(now.cpu-before.cpu) / float64(time.Microsecond) / n
	m["syncs"] = float64(now.syncs-before.syncs) / n
	return m
}
