package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journals are the numbers of steps that a function has behind it when it is resumed.
var journals = []int{10, 100, 1000}

// replaySteps measure what it costs to resume functions with so many steps behind them: in the process that ran them,
// and, in a second process on the same file, after a restart.
func replaySteps(s system) []step {
	var all []step
	for _, n := range journals {
		name, long := replayName(s.name, n), n > s.replays
		all = append(all,
			step{name: name, shared: name, rare: true, long: long, run: func(r job) (metrics, error) {
				return grow(r, s, n)
			}},
			step{name: name + "-again", shared: name, rare: true, long: long, run: func(r job) (metrics, error) {
				return again(r, s, n)
			}})
	}
	return all
}

func replayName(who string, n int) string { return fmt.Sprintf("replay-%s-%d", who, n) }

// parked is where the ids of the functions are kept between the two processes.
func (r job) parked() string { return filepath.Join(r.dir, "parked.json") }

// waiters is how many functions with n steps are measured: all of them together have the same number of steps.
func (r job) waiters(s system, n int) int { return max(2, s.replays*r.pick(1, 5)/n) }

// park starts functions, a wave after the other, and returns when all wait.
func (r job) park(d durable, s system, n int) (ids []string, err error) {
	for count := r.waiters(s, n); len(ids) < count; {
		more, err := startAll(d, min(s.wave, count-len(ids)))
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

func waitingFor(steps int) script {
	return script{steps: steps, waits: true, there: func(int) {}, awake: func(int) {}}
}

// grow has functions do n steps and wait, first some that are left for the next process, and then as many that are
// resumed here. A step costs the same however many there are, and so does its replay, if both columns stay the same.
func grow(r job, s system, n int) (metrics, error) {
	if err := empty(r.dir); err != nil {
		return nil, err
	}
	d, err := s.open(r.dir, waitingFor(n))
	if err != nil {
		return nil, err
	}
	before := used()
	left, err := r.park(d, s, n)
	if err != nil {
		return nil, err
	}
	m := metrics{}.since(before, float64(len(left)*n))
	m["step"] = m["cpu"]
	data, err := json.Marshal(left)
	if err == nil {
		err = os.WriteFile(r.parked(), data, 0o600)
	}
	if err != nil {
		return nil, err
	}
	ids, err := r.park(d, s, n)
	if err != nil {
		return nil, err
	}
	return resume(d, ids, s.wave, n, m)
}

// again is the first thing that a process does with the file: it opens it, and resumes what another one has left.
func again(r job, s system, n int) (metrics, error) {
	data, err := os.ReadFile(r.parked())
	if err != nil {
		return nil, err
	}
	var ids []string
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, err
	}
	before := used()
	d, err := s.open(r.dir, waitingFor(n))
	if err != nil {
		return nil, err
	}
	m, err := resume(d, ids, s.wave, n, metrics{})
	if err == nil {
		m.since(before, float64(len(ids)))
		m["perstep"] = m["cpu"] / float64(n)
	}
	return m, err
}

// resume sends the functions their events, so many at a time, and waits for their results.
func resume(d durable, ids []string, hands, n int, m metrics) (metrics, error) {
	before := used()
	took, errs := make([]time.Duration, len(ids)), make([]error, len(ids))
	var wg sync.WaitGroup
	for hand := range hands {
		wg.Go(func() {
			for i := hand; i < len(ids); i += hands {
				at := time.Now()
				errs[i] = errors.Join(d.Send(ids[i]), d.Result(ids[i]))
				took[i] = time.Since(at)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	times := waits(took)
	m["p50"], m["p99"] = times["p50"], times["p99"]
	m.since(before, float64(len(ids)))
	m["perstep"] = m["cpu"] / float64(n)
	return m, d.Close()
}

// empty removes what an earlier round left in a folder.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
