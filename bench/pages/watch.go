package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// perSecond is how often the watched case changes.
const perSecond = 4

// audience is a number of viewers of one page.
type audience struct {
	changed atomic.Int64 // when the case changed last, in nanoseconds
	behind  atomic.Int64 // viewers that have seen no event since
	last    atomic.Bool  // it changes no more
	mu      sync.Mutex
	took    []time.Duration // from a change to the event that a viewer gets
	failed  error
}

// watch has viewers look at one case that changes, and prints how late they see it and what they cost. Viewers and server share the process, so the
// memory is that of both.
func watch(ctx context.Context, e *engine.Engine, pages http.Handler, w *world, t *targets, viewers int, length time.Duration) error {
	server := httptest.NewServer(pages)
	defer server.Close()
	ctx, stop := context.WithTimeout(ctx, length+time.Minute)
	defer stop()
	before, goroutines := settled(), runtime.NumGoroutine()
	a := new(audience)
	address := server.URL + "/live?page=" + url.QueryEscape("/cases/"+w.claim)
	var all, ready sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: viewers}}
	for range viewers {
		ready.Add(1)
		all.Go(func() { a.look(ctx, client, address, sync.OnceFunc(ready.Done)) })
	}
	ready.Wait()
	watching := settled()
	a.behind.Store(int64(viewers))
	err := change(ctx, e, a, w.claim, int(length.Seconds()*perSecond))
	for until := time.Now().Add(10 * time.Second); err == nil && a.behind.Load() > 0 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	client.CloseIdleConnections()
	server.Close()
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("viewers without the last change: %d; goroutines before and after: %d, %d; memory after: %.1f MB\n", a.behind.Load(), goroutines,
		runtime.NumGoroutine(), (settled()-before)/1e6)
	slices.Sort(a.took)
	if len(a.took) == 0 {
		return fmt.Errorf("no viewer saw a change: %w", a.failed)
	}
	fmt.Printf("%d viewers, %d changes: %d events, p50 %s, p99 %s, memory of viewers and server %.1f MB\n", viewers, int(length.Seconds()*perSecond), len(a.took),
		a.took[len(a.took)/2].Round(time.Millisecond), a.took[len(a.took)*99/100].Round(time.Millisecond), (watching-before)/1e6)
	t.viewers(a.took[len(a.took)/2], watching-before)
	return nil
}

// look reads the events of a page; ready is called with the first one.
func (a *audience) look(ctx context.Context, client *http.Client, address string, ready func()) {
	defer ready()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	answer, err := client.Do(r)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.failed = err
		return
	}
	defer answer.Body.Close()
	seen := false // the last change
	for lines, err := bufio.NewReader(answer.Body), error(nil); err == nil; {
		var line string
		if line, err = lines.ReadString('\n'); !strings.HasPrefix(line, "event:") {
			continue
		}
		ready()
		if at := a.changed.Load(); at > 0 {
			a.mu.Lock()
			a.took = append(a.took, time.Since(time.Unix(0, at)))
			a.mu.Unlock()
			if a.last.Load() && !seen {
				seen = true
				a.behind.Add(-1)
			}
		}
	}
}

// change suspends and resumes a case so many times.
func change(ctx context.Context, e *engine.Engine, a *audience, id string, times int) error {
	parsed, err := workitem.ParseID(id)
	if err != nil {
		return err
	}
	for n := range times {
		a.last.Store(n == times-1)
		c := workflow.Suspend(workitem.CaseID(parsed))
		if n%2 == 1 {
			c = workflow.Resume(workitem.CaseID(parsed), nil)
		}
		if _, err := e.Do(ctx, c); err != nil {
			return err
		}
		a.changed.Store(time.Now().UnixNano())
		time.Sleep(time.Second / perSecond)
	}
	return nil
}

// settled is the memory that the program holds once the collector has done all it can.
func settled() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
