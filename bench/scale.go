package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// blocked is oneTask for a worker that never comes to an end: all further items stay pending.
var blocked, _ = chain("blocked", 1, builder.Work[order, receipt]{
	Run: func(ctx context.Context, _ order) (receipt, error) {
		<-ctx.Done()
		return receipt{}, ctx.Err()
	},
})

// asleep is a case that waits for a person, or for its timeout a day later.
var asleep, _ = chain("asleep", 1, builder.Work[order, receipt]{Timeout: 24 * time.Hour})

// atOnce is a case that ends in the transaction that starts it.
var atOnce, _ = chain("at-once", 1, builder.Work[order, receipt]{Auto: true})

// oneWorker does not wait for the blocked one when it closes.
var oneWorker = engine.Config{Workers: 1, Logger: quiet, Grace: time.Millisecond}

// memory measures what n cases of a workflow, which all stay where they are, add to the process that started them: in
// bytes a case, once in Go's heap, and once in all that the process holds (RSS). It begins with as many finished
// cases as fill SQLite's page cache, which is 64 MiB whatever there is to do. What a certain number of cases would
// add is worked out from the second half, in which the cache of cases is full.
func memory(r job, with engine.Config, w *builder.Workflow[order], n, want int) (metrics, error) {
	e, err := with.Open(noTimeout, file(r.dir), atOnce, w)
	if err != nil {
		return nil, err
	}
	var heap, rss [3]float64
	for i, cases := range []int{50_000, n / 2, n - n/2} {
		of := w
		if i == 0 {
			of = atOnce
		}
		if err := startMany(e, of, cases); err != nil {
			return nil, err
		}
		if with.Workers > 1 { // no job runs without end
			if err := e.Drain(noTimeout); err != nil {
				return nil, err
			}
		}
		if err := e.View(noTimeout, nothing); err != nil { // writes the tables
			return nil, err
		}
		heap[i], rss[i] = settled()
	}
	m := metrics{"heap": (heap[2] - heap[0]) / float64(n), "rss": (rss[2] - rss[0]) / float64(n),
		"wanted": rss[2] - rss[0] + float64(want-n)*(rss[2]-rss[1])/float64(n-n/2)}
	return m, e.Close()
}

// opened measures opening a file that holds cases: the time, and what the process holds afterwards over what it held
// before.
func opened(r job, n int, w *builder.Workflow[order]) (metrics, error) {
	heap, rss := settled()
	at := time.Now()
	e, err := oneWorker.Open(noTimeout, file(r.dir), oneTask, atOnce, w)
	if err != nil {
		return nil, err
	}
	took := time.Since(at)
	heap2, rss2 := settled()
	m := metrics{"open": took.Seconds(), "heap": (heap2 - heap) / float64(n), "rss": (rss2 - rss) / float64(n)}
	return m, e.Close()
}

// settled returns the bytes of live objects and of the whole process once the collector has done all it can.
func settled() (heap, rss float64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), residentBytes()
}

func residentBytes() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}

// crash works on a file until a whole window of commands is in the journal and not in the tables. Then it says so,
// and waits to be killed. It never comes back.
func crash(r job, say *bufio.Writer) error {
	var once sync.Once
	commands := 0
	full := make(chan struct{})
	c := &counted{Opener: file(r.dir, sqlite.Window(1<<20, time.Hour)), noIdle: true}
	c.afterUpdate = func(n int) {
		if commands += n; commands >= sqlite.DefaultWindow {
			once.Do(func() { close(full) })
			select {}
		}
	}
	e, err := open(c, 64, oneTask)
	if err != nil {
		return err
	}
	for range 64 {
		go func() {
			for {
				id, err := oneTask.Start(noTimeout, e, anOrder)
				if err == nil {
					_, err = e.Wait(noTimeout, id)
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, "before the crash:", err)
					os.Exit(1)
				}
			}
		}()
	}
	<-full
	if _, err := say.WriteString("full\n"); err != nil {
		return err
	}
	if err := say.Flush(); err != nil {
		return err
	}
	select {}
}

// idle measures an engine with nothing due, by the minute: calls of the store, calls of the operating system for
// files, and CPU. A look is the engine's question whether another process left a command.
func idle(r job) (metrics, error) {
	c := &counted{Opener: file(r.dir)}
	e, err := engine.Config{Logger: quiet}.Open(noTimeout, c, oneTask, asleep)
	if err != nil {
		return nil, err
	}
	if err := startMany(e, asleep, 100); err != nil {
		return nil, err
	}
	if _, err := load(8, span{length: 200 * time.Millisecond}, func(int) error {
		id, err := oneTask.Start(noTimeout, e, anOrder)
		if err == nil {
			_, err = e.Wait(noTimeout, id)
		}
		return err
	}); err != nil {
		return nil, err
	}
	time.Sleep(time.Second) // for the housekeeping after the last command
	calls := func() float64 { return float64(c.updates.Load() + c.views.Load() + c.idles.Load()) }
	before, called, looks, io := used(), calls(), c.looks.Load(), fileCalls()
	time.Sleep(r.rest)
	minute := time.Minute.Seconds() / r.rest.Seconds()
	m := metrics{
		"queries": (calls() - called) * minute, "looks": float64(c.looks.Load()-looks) * minute,
		"files": (fileCalls() - io) * minute, "cpu": ms(used().cpu-before.cpu) * minute,
	}
	return m, errors.Join(err, e.Close())
}

func fileCalls() float64 {
	return float64(files.reads.Load() + files.writes.Load() + files.syncs.Load())
}
