package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store/internal/tables"
)

// lookAfter is how long a statement runs before the session that it waits for is looked up, and the time between two such queries. It is half
// of lock_timeout: the server knows who blocks a statement only while the statement waits.
const lookAfter = time.Second

// blockerSearch finds the session for whose lock a statement of a connection waits, on another connection. The error of a statement that waited in
// vain then names that session.
//
//	statement of the writer     0 s  waits for a lock of session 7              2 s  canceled: lock_timeout
//	search                                                      1 s  session 7
//
// It is used by one goroutine at a time, as the connection is.
type blockerSearch struct {
	find  func(context.Context) string // what a statement waits for, until the context ends; "" if nothing is known. nil: no look
	timer *time.Timer
	found chan string

	mu   sync.Mutex
	end  context.CancelFunc // ends find; nil before it begins
	over bool               // the statement has ended
}

func newBlockerSearch(find func(context.Context) string) *blockerSearch {
	l := &blockerSearch{find: find, found: make(chan string)}
	// As the watchdog, the timer is reset for each call.
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop()
	return l
}

// during runs f, which runs a statement, and adds to its error what the statement waited for.
func (l *blockerSearch) during(f func() error) (err error) {
	if l == nil {
		return f()
	}
	l.timer.Reset(lookAfter)
	defer func() { // also when f panics
		if l.timer.Stop() {
			return
		}
		holder := l.stop()
		if c := code(err); holder != "" && (c == lockNotAvailable || c == queryCanceled) {
			err = &waited{holder, err}
		}
	}()
	return f()
}

func (l *blockerSearch) look() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	l.mu.Lock()
	l.end = end
	if l.over {
		end()
	}
	l.mu.Unlock()
	l.found <- l.find(ctx)
}

// stop ends a look that has begun, or is about to, and returns what it has found.
func (l *blockerSearch) stop() string {
	l.mu.Lock()
	l.over = true
	if l.end != nil {
		l.end()
	}
	l.mu.Unlock()
	holder := <-l.found
	l.over, l.end = false, nil
	return holder
}

// waited is the error of a statement that waited in vain for a lock of a known session.
type waited struct {
	holder string
	err    error
}

func (w *waited) Error() string { return w.err.Error() + ", held by " + w.holder }
func (w *waited) Unwrap() error { return w.err }

// findBlocker returns the session that a server process waited for last, until the context ends.
// A statement may wait several times: for locks that it gets, and for one that it does not.
func (db database) findBlocker(ctx context.Context, pid uint32) (holder string) {
	c, err := db.connectFor(ctx, lookAfter)
	if err != nil {
		return ""
	}
	defer func() { _ = c.close() }()
	c.blocker, c.ctx = nil, ctx
	again := time.NewTicker(lookAfter)
	defer again.Stop()
	for {
		now, err := c.blockers(pid)
		if err != nil {
			return holder
		}
		if now != "" {
			holder = now
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return holder
		}
	}
}

// findBlockers finds the session that the server process $1 waits for. If that one waits for another one, it is the last of them: a statement that
// waits for the lock of a table makes all later ones wait, also those that may go on beside the holder. A prepared transaction has no session, and
// the number 0.
const findBlockers = "WITH RECURSIVE w(pid, depth) AS (SELECT b, 1 FROM unnest(pg_blocking_pids($1)) b " +
	"UNION SELECT b, w.depth + 1 FROM w, unnest(pg_blocking_pids(w.pid)) b WHERE w.depth < 8) " +
	"SELECT w.pid" + ofSession + " FROM w LEFT JOIN pg_stat_activity a ON a.pid = w.pid " +
	"ORDER BY cardinality(pg_blocking_pids(w.pid)), w.depth, a.xact_start LIMIT 1"

// blockers describes the session that a server process waits for; "" if it waits for none.
func (c *conn) blockers(pid uint32) (holder string, err error) {
	err = c.each(findBlockers, []any{int32(pid)}, func(r *tables.Row) error {
		holder = readSession(r)
		return r.Err
	})
	return holder, err
}

// ofSession are the columns behind the number of a session a that readSession reads. The state and the time are NULL for a session of a role
// whose statements this one may not see.
const ofSession = ", COALESCE(a.application_name, ''), COALESCE(a.state, ''), COALESCE(a.usename, ''), " +
	"(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint"

// readSession describes a session and its transaction.
func readSession(r *tables.Row) string {
	pid, about := r.Number(), []string{r.Text(), r.Text()}
	if role := r.Text(); role != "" {
		about = append(about, "role "+role)
	}
	since := time.Duration(r.Number()) * time.Microsecond
	if pid == 0 {
		return "a prepared transaction, see pg_prepared_xacts"
	}
	text := fmt.Sprintf("session %d (%s)", pid, strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), ", "))
	if since > 0 {
		text += fmt.Sprintf(", whose transaction began %s ago", since.Round(time.Millisecond))
	}
	return text
}
