package fault

import (
	"log/slog"
	"sync"
	"time"
)

// Log logs faults: the first of a kind, the kind once a minute while it lasts, and its end. Make one with [NewLog]; it is
// safe for concurrent use.
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

// pace is how often a fault that lasts is logged.
const pace = time.Minute

// NewLog makes a log that is empty.
func NewLog(log *slog.Logger, now func() time.Time) *Log {
	return &Log{log: log, now: now, open: make(map[string]*lasting)}
}

// Note takes the outcome of something that may meet faults. It reports whether a fault of that kind has ended.
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
	if f == nil || now.Sub(f.last) > 2*pace { // nothing says when some faults are over
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

// Since is when the first open fault of the kinds given began; of several kinds the first that has one decides. Zero is none.
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
