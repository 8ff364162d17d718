package postgres

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Engines notify each other of changes with NOTIFY. Notifications are batched for a moment and sent outside of commits,
// which they would slow down. A lost notification delays the others until their next Tick, which finds the change.
//
// If this engine has sent nothing for a busy pace, the notification is part of the commit. The other engines may then
// be idle, with a Tick only every ten seconds: if this engine died between its commit and the notification, they would
// notice the new work only that late.

// An engine with a thousand commits a second sends two hundred notifications, not a thousand: COMMIT of a transaction
// with NOTIFY takes a lock of the whole server, so such commits are serialized.
const (
	gather      = 5 * time.Millisecond // how long changes are collected before they are sent
	rootsInHint = 300                  // 22 bytes each in base64: PostgreSQL limits a payload to 8,000 bytes
	maxHints    = 64                   // received and not read by the engine; further ones are dropped, and the next Tick finds the changes
)

// hints collects what other engines are to be notified of, and buffers received notifications.
type hints struct {
	s        *Store
	mu       sync.Mutex
	roots    map[workitem.CaseID]struct{}
	free     bool
	set      bool // settings have changed
	closed   bool
	timer    *time.Timer // nil if there is nothing to notify of
	notified bool        // the others were notified of root cases within the time of a busy pace
	quiet    *time.Timer // resets notified; nil before the first time

	in chan store.Hint // what other engines sent
}

func newHints(s *Store) *hints {
	return &hints{s: s, roots: make(map[workitem.CaseID]struct{}), in: make(chan store.Hint, maxHints)}
}

// Hints implements [store.Fleet].
func (s *Store) Hints() <-chan store.Hint { return s.hints.in }

// queue adds the notification to the statements of a commit, if there are other engines and this one has not notified
// them for a busy pace.
// The commit costs more with it, and is known to the others as soon as it has happened.
func (h *hints) queue(tx *transaction, b *batch) {
	h.mu.Lock()
	// At most one commit in a busy pace pays for NOTIFY.
	tx.notifies = h.s.others.Load() > 0 && len(tx.appended) > 0 && !h.notified
	h.mu.Unlock()
	if !tx.notifies {
		return
	}
	roots := make(map[workitem.CaseID]struct{})
	for i := range tx.appended {
		roots[tx.appended[i].Entry.Root] = struct{}{}
	}
	for _, text := range texts16(roots) {
		b.queue(notification, payload(tx.s.self, "c", text))
	}
}

// committed collects the changes of a commit that its own notification did not report, if there are other engines.
// For example, after a quiet second:
//
//	0 ms   a commit, with its own notification
//	2 ms   a commit: its root case is collected, and the timer is set
//	4 ms   another one: collected; the timer stays as it is
//	7 ms   one notification for both
func (h *hints) committed(tx *transaction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tx.notifies {
		h.noteNotified()
	}
	if h.s.others.Load() == 0 || (len(tx.appended) == 0 || tx.notifies && len(tx.offered) == 0) && len(tx.settings) == 0 {
		return
	}
	for i := range tx.appended {
		if !tx.notifies {
			h.roots[tx.appended[i].Entry.Root] = struct{}{}
		}
	}
	h.free = h.free || len(tx.offered) > 0
	h.set = h.set || len(tx.settings) > 0
	// Later changes do not reset the timer of the first one, so none waits longer than gather.
	if h.timer == nil && !h.closed {
		h.timer = time.AfterFunc(gather, h.notify)
	}
}

// noteNotified records that the other engines were notified, and so are at the busy pace for a while. The lock
// is held.
// While they are at the busy pace, a lost notification delays them by that pace only, so the next one need not be
// part of a commit.
func (h *hints) noteNotified() {
	if h.notified = true; h.quiet != nil {
		h.quiet.Reset(busyPace)
		return
	}
	h.quiet = time.AfterFunc(busyPace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.notified = false
	})
}

// notify sends the collected changes to the other engines.
func (h *hints) notify() {
	h.mu.Lock()
	roots, free, set := h.roots, h.free, h.set
	h.roots, h.free, h.set, h.timer = make(map[workitem.CaseID]struct{}), false, false, nil
	if len(roots) > 0 {
		h.noteNotified()
	}
	over := h.closed
	h.mu.Unlock()
	if over {
		return
	}
	_ = h.s.onFleetConn(context.Background(), func(c *conn, self int64) error {
		for _, text := range texts16(roots) {
			if err := notify(c, self, "c", text); err != nil {
				return err
			}
		}
		if set {
			if err := notify(c, self, "s", ""); err != nil {
				return err
			}
		}
		if free {
			return notify(c, self, "f", "")
		}
		return nil
	}) // lost hints are found by the next Tick
}

const notification = "SELECT pg_notify('" + channel + "', $1)"

func notify(c *conn, from int64, kind, text string) error {
	_, err := c.run(notification, payload(from, kind, text))
	return err
}

// payload is what [hints.take] reads.
// For engine 7:
//
//	7:c:qrvM...   it has changed these root cases
//	7:f:          it has offered jobs that are free
//	7:s:          it has changed settings
func payload(from int64, kind, text string) string { return fmt.Sprintf("%d:%s:%s", from, kind, text) }

// texts16 encodes ids in base64, in as many payloads as they need.
func texts16(roots map[workitem.CaseID]struct{}) (texts []string) {
	var buf []byte
	n := 0
	for root := range roots {
		buf = append(buf, root[:]...)
		if n++; n%rootsInHint == 0 || n == len(roots) {
			texts, buf = append(texts, base64.RawStdEncoding.EncodeToString(buf)), buf[:0]
		}
	}
	return texts
}

// take decodes a notification and passes it to the engine. It is dropped if the channel is full.
// What cannot be decoded is dropped, as a lost notification: it may be that of an engine of a later version.
func (h *hints) take(payload string) {
	from, rest, _ := strings.Cut(payload, ":")
	kind, text, ok := strings.Cut(rest, ":")
	// LISTEN also delivers what this engine itself has sent.
	if !ok || from == fmt.Sprint(h.s.number.Load()) {
		return
	}
	hint := store.Hint{Free: kind == "f", Set: kind == "s"}
	data, _ := base64.RawStdEncoding.DecodeString(text)
	for ; len(data) >= 16; data = data[16:] {
		hint.Roots = append(hint.Roots, workitem.CaseID(data[:16]))
	}
	h.send(hint)
}

func (h *hints) send(hint store.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	// The listening goroutine must not block on the engine, which may be in an update: the server buffers the
	// notifications of a session that does not read, in one queue for all databases.
	select {
	case h.in <- hint:
	default:
	}
}

// close ends the channel of hints.
func (h *hints) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	// The lock is held, so no send is under way when the channel is closed.
	h.closed = true
	for _, timer := range []*time.Timer{h.timer, h.quiet} {
		if timer != nil {
			timer.Stop()
		}
	}
	close(h.in)
}
