package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// perSecond is how often the watched case changes.
const perSecond = 4

// watch has viewers, in a process of their own, look at one case that changes, and prints how late they see it and what they cost the server, and how many
// other cases the engine executes meanwhile.
func watch(ctx context.Context, e *engine.Engine, pages http.Handler, w *world, t *targets, viewers int, length time.Duration) error {
	server := httptest.NewServer(pages)
	defer server.Close()
	if _, err := perSecondOf(ctx, e, length/10); err != nil { // the engine has in memory what it needs for that
		return err
	}
	before, goroutines := settled(), runtime.NumGoroutine()
	a, err := begin(ctx, server.URL+"/live?page="+url.QueryEscape("/cases/"+w.claim), viewers)
	if err != nil {
		return err
	}
	memory := settled() - before
	median, share, err := a.delay(ctx, e, w.claim, length)
	ratio := 0.0
	if err == nil {
		ratio, err = throughput(ctx, e, w.claim, length/2)
	}
	if err := errors.Join(err, a.end()); err != nil {
		return err
	}
	server.Close()
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("memory of the server %.1f MB, %.1f MB after the viewers have left; goroutines before and after: %d, %d; processor time of the viewers %s\n", memory/1e6,
		(settled()-before)/1e6, goroutines, runtime.NumGoroutine(), (a.command.ProcessState.UserTime() + a.command.ProcessState.SystemTime()).Round(time.Second))
	t.viewers(median, memory, share, ratio)
	return nil
}

// delay changes the case and prints how late the viewers see it. It returns the median, and the share of a processor that the server takes for it.
func (a *audience) delay(ctx context.Context, e *engine.Engine, id string, length time.Duration) (median time.Duration, share float64, err error) {
	used, began := processor(), time.Now()
	changes, err := change(ctx, e, id, int(length.Seconds()*perSecond))
	if err != nil {
		return 0, 0, err
	}
	share = (processor() - used).Seconds() / time.Since(began).Seconds()
	last := changes[len(changes)-1]
	seen, err := a.seen()
	for until := time.Now().Add(10 * time.Second); err == nil && without(seen, last) > 0 && time.Now().Before(until); seen, err = a.seen() {
		time.Sleep(100 * time.Millisecond)
	}
	delays := delays(seen, changes)
	if err != nil || len(delays) == 0 {
		return 0, 0, cmp.Or(err, errors.New("no viewer saw a change"))
	}
	slices.Sort(delays)
	median = delays[len(delays)/2]
	fmt.Printf("%d viewers, %d changes: %d events, p50 %s, p99 %s, %.2f of a processor; viewers without the last change: %d\n", a.viewers, len(changes), len(delays),
		median.Round(time.Millisecond), delays[len(delays)*99/100].Round(time.Millisecond), share, without(seen, last))
	return median, share, nil
}

// change suspends and resumes a case so many times, and returns when each change was acknowledged.
func change(ctx context.Context, e *engine.Engine, id string, times int) ([]time.Time, error) {
	parsed, err := workitem.ParseID(id)
	if err != nil {
		return nil, err
	}
	var changes []time.Time
	for n := range times {
		c := workflow.Suspend(workitem.CaseID(parsed))
		if n%2 == 1 {
			c = workflow.Resume(workitem.CaseID(parsed), nil)
		}
		if _, err := e.Do(ctx, c); err != nil {
			return nil, err
		}
		changes = append(changes, time.Now())
		time.Sleep(time.Second / perSecond)
	}
	return changes, nil
}

// settled is the memory that the program holds once the collector has done all it can.
func settled() float64 {
	for range 2 { // what is in pools is freed by the second collection
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
