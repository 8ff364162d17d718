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

// Engines notify each other of what they changed. Notifications are gathered for a moment and not part of a commit, which they would slow
// down. One that is lost costs a pace: the next Tick finds the change.
//
// If this engine has notified of nothing for the time of a busy pace, the notification is part of the commit. The others may look only once in ten
// seconds then, and would leave what the commit began for so long if this engine died before it notifies them.

// Five milliseconds: an engine with a thousand commits a second sends two hundred notifications, and not a thousand. NOTIFY
// takes a lock of the whole server at COMMIT, so that commits which notify come one after the other.
const (
	gather      = 5 * time.Millisecond
	rootsInHint = 300 // a notification has 8,000 bytes at most
	maxHints    = 64  // that wait to be taken
)

// hints gathers what other engines are to be notified of.
type hints struct {
	s        *Store
	mu       sync.Mutex
	roots    map[workitem.CaseID]struct{}
	free     bool
	set      bool // settings have changed
	closed   bool
	timer    *time.Timer // nil if there is nothing to notify of
	notified bool        // the others were notified of root cases within the time of a busy pace
	quiet    *time.Timer // ends that; nil before the first time

	in chan store.Hint // what other engines sent
}

func newHints(s *Store) *hints {
	return &hints{s: s, roots: make(map[workitem.CaseID]struct{}), in: make(chan store.Hint, maxHints)}
}

// Hints implements [store.Fleet].
func (s *Store) Hints() <-chan store.Hint { return s.hints.in }

// queue adds the notification to the statements of a commit, if there is another engine, which was not notified by this one for a while.
func (h *hints) queue(tx *transaction, b *batch) {
	h.mu.Lock()
	// At most one commit in a busy pace pays for it.
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

// committed gathers what a commit did and did not notify of, if there is another engine.
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
	// The timer of the first change is not set again by later ones: what was gathered waits for five milliseconds, and no
	// longer.
	if h.timer == nil && !h.closed {
		h.timer = time.AfterFunc(gather, h.notify)
	}
}

// noteNotified notes that the others are notified by this engine, and soon look what it does. The lock is held.
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

// notify sends the others what was gathered.
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
	_ = h.s.onSide(context.Background(), func(c *conn, self int64) error {
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
func payload(from int64, kind, text string) string { return fmt.Sprintf("%d:%s:%s", from, kind, text) }

// texts16 puts ids into as many texts as are needed.
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

// take takes a notification of another engine. One that finds no room is lost.
func (h *hints) take(payload string) {
	from, rest, _ := strings.Cut(payload, ":")
	kind, text, ok := strings.Cut(rest, ":")
	// The session that listens also hears what this engine has sent.
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
	// The goroutine that listens must not wait for the engine, which may be within an update: the server keeps notifications
	// for a session that does not read them, in a queue that all databases share.
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
	h.closed = true
	for _, timer := range []*time.Timer{h.timer, h.quiet} {
		if timer != nil {
			timer.Stop()
		}
	}
	close(h.in)
}
