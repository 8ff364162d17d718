package main

import (
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

// watch has viewers, in a process of their own, look at one case that changes, and prints how late they see it and what they cost the server.
func watch(ctx context.Context, e *engine.Engine, pages http.Handler, w *world, t *targets, viewers int, length time.Duration) error {
	server := httptest.NewServer(pages)
	defer server.Close()
	before, goroutines := settled(), runtime.NumGoroutine()
	a, err := begin(ctx, server.URL+"/live?page="+url.QueryEscape("/cases/"+w.claim), viewers)
	if err != nil {
		return err
	}
	watching, used, began := settled(), processor(), time.Now()
	changes, err := change(ctx, e, w.claim, int(length.Seconds()*perSecond))
	took := time.Since(began)
	used = processor() - used
	for until := time.Now().Add(10 * time.Second); err == nil && a.without(changes[len(changes)-1]) > 0 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := errors.Join(err, a.end()); err != nil {
		return err
	}
	server.Close()
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	delays := a.delays(changes)
	slices.Sort(delays)
	if len(delays) == 0 {
		return errors.New("no viewer saw a change")
	}
	share := used.Seconds() / took.Seconds()
	fmt.Printf("viewers without the last change: %d; goroutines before and after: %d, %d; memory after: %.1f MB\n", a.without(changes[len(changes)-1]), goroutines,
		runtime.NumGoroutine(), (settled()-before)/1e6)
	fmt.Printf("%d viewers, %d changes: %d events, p50 %s, p99 %s, memory of the server %.1f MB, %.2f of a processor\n", viewers, len(changes), len(delays),
		delays[len(delays)/2].Round(time.Millisecond), delays[len(delays)*99/100].Round(time.Millisecond), (watching-before)/1e6, share)
	t.viewers(delays[len(delays)/2], watching-before, share)
	return nil
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
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
