package storetest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/tasq-dev/tasq/store"
)

// Rules lists the names of all rules, in the order in which [Run] checks them.
func Rules() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Problems checks the rules of the given names, or every rule if none is named, and returns what [Run] would report: the
// first failure of each rule that the store breaks, by the name of the rule. It fails t itself only for an unknown name.
// It serves to test the suite with stores that break a rule on purpose.
func Problems(t *testing.T, open func(t *testing.T) store.Opener, names ...string) map[string]string {
	t.Helper()
	for _, name := range names {
		if !slices.Contains(Rules(), name) {
			t.Fatalf("storetest has no rule %q", name)
		}
	}
	found := make(map[string]string)
	for _, r := range rules {
		if len(names) > 0 && !slices.Contains(names, r.name) {
			continue
		}
		if text, failed := record(t, func(tb testing.TB) { r.check(NewWorld(tb, open(t), 1)) }); failed {
			found[r.name] = text
		}
	}
	return found
}

// FleetRules lists the names of the rules of [RunFleet].
func FleetRules() []string {
	names := make([]string, len(fleetRules))
	for i, r := range fleetRules {
		names[i] = r.name
	}
	return names
}

// FleetProblem checks one rule of [RunFleet], and returns its first failure; "" if the store keeps it.
func FleetProblem(t *testing.T, open func(t *testing.T) store.Opener, name string) string {
	t.Helper()
	i := slices.Index(FleetRules(), name)
	if i < 0 {
		t.Fatalf("storetest has no rule %q for several stores", name)
	}
	text, _ := record(t, func(tb testing.TB) {
		o := shared{open(t)}
		fleetRules[i].check(NewWorld(tb, o, 1), NewWorld(tb, o, 2))
	})
	return text
}

// recorder is the testing.TB of a check that may fail: it keeps the first failure, and its own cleanups. Folders and
// contexts are those of the real test.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	text     string
	cleanups []func()
}

// record runs a check to its end, and returns its first failure. A panic is one.
func record(t *testing.T, check func(testing.TB)) (text string, failed bool) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine that calls it
		defer close(done)
		defer r.cleanUp()
		defer func() {
			if cause := recover(); cause != nil {
				r.Errorf("panic: %v", cause)
			}
		}()
		check(r)
	}()
	<-done
	return r.text, r.failed
}

func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// Errorf implements testing.TB, as do the methods below. They are those that the rules and testify call.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.failed {
		r.failed, r.text = true, fmt.Sprintf(format, args...)
	}
}

func (r *recorder) FailNow() {
	r.Errorf("failed")
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Failed() bool { return r.failed }

func (r *recorder) Helper() {}
