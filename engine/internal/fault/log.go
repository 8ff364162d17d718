package fault

import (
	"log/slog"
	"sync"
	"time"
)

// Log logs the first fault of a kind, a line per minute while it lasts, and its end: a store that fails for an hour
// must not fill the log. Make one with [NewLog]; it is safe for concurrent use.
type Log struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	open map[string]*lasting
}

// lasting is a fault that has not ended.
type lasting struct {
	since, logged, last time.Time
	n                   int
}

// pace is the interval between two log lines of one fault.
const pace = time.Minute

// NewLog returns a Log without open faults.
func NewLog(log *slog.Logger, now func() time.Time) *Log {
	return &Log{log: log, now: now, open: make(map[string]*lasting)}
}

// Note records the outcome of an operation: err is its fault, or nil. It reports whether that ends a fault of this kind.
func (l *Log) Note(kind string, err error, text string, args ...any) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.open[kind]
	switch {
	case err == nil && f == nil:
		return false
	case err == nil:
		delete(l.open, kind)
		l.log.Info("a fault is over", "of", kind, "times", f.n, "since", f.since)
		return true
	}
	now := l.now()
	if f == nil || now.Sub(f.last) > 2*pace { // the operation may not have run since, so the old fault ended unnoticed
		f = &lasting{since: now}
		l.open[kind] = f
	}
	f.last = now
	f.n++
	if f.n == 1 || now.Sub(f.logged) >= pace || now.Before(f.logged) {
		f.logged = now
		l.log.Error(text, append(args, "error", err, "times", f.n, "since", f.since)...)
	}
	return false
}

// Since returns when the open fault of the first kind that has one began; zero if none has.
func (l *Log) Since(kinds ...string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kind := range kinds {
		if f := l.open[kind]; f != nil {
			return f.since
		}
	}
	return time.Time{}
}
