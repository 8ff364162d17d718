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

// call is one call of a closed loop.
type call struct {
	at   time.Time
	took time.Duration
}

// load has so many callers call do, each one call after the other. It returns the rate of calls that ended in the
// measured time, p50 and p99 (milliseconds) of those that began in it, and the number of all calls. Where calls take
// longer than the measured time, so that none began in it, the percentiles are those of all calls.
func load(callers int, s span, do func(caller int) error) (metrics, error) {
	var (
		wg     sync.WaitGroup
		failed atomic.Bool
		errs   = make([]error, callers)
		calls  = make([][]call, callers)
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
				calls[c] = append(calls[c], call{at, time.Since(at)})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := slices.Concat(calls...)
	ended := 0
	var times, whole []time.Duration
	for _, c := range all {
		if done := c.at.Add(c.took); !done.Before(began) && done.Before(end) {
			ended++
		}
		if whole = append(whole, c.took); !c.at.Before(began) {
			times = append(times, c.took)
		}
	}
	if len(times) == 0 {
		times = whole
	}
	slices.Sort(times)
	return metrics{
		"rate": float64(ended) / s.length.Seconds(),
		"p50":  ms(percentile(times, 50)), "p99": ms(percentile(times, 99)),
		"n": float64(len(all)),
	}, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// usage is what the process has used so far.
type usage struct {
	cpu    time.Duration
	server time.Duration // of the PostgreSQL server's processes
	syncs  int64
}

func used() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return usage{}
	}
	return usage{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), server: serverCPU(), syncs: files.syncs.Load()}
}

// since adds what was used since an earlier moment, for each of n items: CPU of this process and of the server in microseconds, and
// syncs.
func (m metrics) since(before usage, n float64) metrics {
	now := used()
	m["cpu"] = float64(now.cpu-before.cpu) / float64(time.Microsecond) / n
	if server != "" {
		m["server"] = float64(now.server-before.server) / float64(time.Microsecond) / n
	}
	m["syncs"] = float64(now.syncs-before.syncs) / n
	return m
}
