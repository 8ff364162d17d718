package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// book is what the parties outside (the bank, the mail server, the model) write down of the calls that they get: a line
// of JSON each, in a file beside the database. It is theirs and not ours, so no transaction of the database undoes it:
// a call that a kill cut off is in it, though the database knows nothing of it.
type book struct {
	clock retry.Clock
	mu    sync.Mutex
	file  *os.File
	read  int64 // how many bytes of the file are in calls
	calls []call
}

// call is one call of a party.
type call struct {
	At    time.Time `json:"at"`
	Party string    `json:"party"`
	About string    `json:"about"`         // the order, or the person
	Key   string    `json:"key,omitempty"` // by which the party knows a call that it had before
	Did   bool      `json:"did"`           // it did something; otherwise it refused, or answered as before
	Says  string    `json:"says"`
}

// openBook opens the file, and makes it if it is not there.
func openBook(path string, clock retry.Clock) (*book, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	b := &book{clock: clock, file: file}
	if err := b.refresh(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return b, nil
}

func (b *book) close() error { return b.file.Close() }

// refresh reads what was written since, maybe by the process before this one. A line that a kill tore is not a call.
func (b *book) refresh() error {
	data, err := io.ReadAll(io.NewSectionReader(b.file, b.read, 1<<62))
	if err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return nil
		}
		var c call
		if json.Unmarshal(line, &c) == nil {
			b.calls = append(b.calls, c)
		}
		b.read += int64(len(line)) + 1
		data = rest
	}
}

// take has a party answer a call: it is shown the calls that it had about this before, and fills in Did and Says. The
// call is on the disk when take returns.
func (b *book) take(c call, answer func(c *call, before []call)) (call, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refresh(); err != nil {
		return c, err
	}
	answer(&c, b.of(c.Party, c.About))
	c.At = b.clock.Now()
	line, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	end, err := b.file.Seek(0, io.SeekEnd)
	if err != nil {
		return c, err
	}
	if end > b.read { // the beginning of a line that was torn
		line = append([]byte("\n"), line...)
	}
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		return c, err
	}
	if err := b.file.Sync(); err != nil {
		return c, err
	}
	return c, b.refresh()
}

// of lists the calls of a party about something. The lock is held.
func (b *book) of(party, about string) (found []call) {
	for _, c := range b.calls {
		if c.Party == party && c.About == about {
			found = append(found, c)
		}
	}
	return found
}

// count says how often a party was called about something, and how often it did something.
func (b *book) count(party, about string) (called, did int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.of(party, about) {
		called++
		if c.Did {
			did++
		}
	}
	return called, did
}

// once is a party that does what it is asked once for each key, and answers with a reference that begins with the
// prefix.
func once(prefix string) func(c *call, before []call) {
	return func(c *call, before []call) {
		c.Did, c.Says = true, prefix+c.Key[:min(8, len(c.Key))]
		for _, old := range before {
			if old.Key == c.Key {
				c.Did, c.Says = false, old.Says
			}
		}
	}
}

// busy is a party that refuses its first n calls about something.
func busy(n int, says string) func(c *call, before []call) {
	return func(c *call, before []call) {
		if c.Did, c.Says = len(before) >= n, says; !c.Did {
			c.Says = "busy"
		}
	}
}

// outside is the world of a demo: parties that take their time, and write down what they are asked.
type outside struct {
	book *book
	pace time.Duration // how long a call takes, half of it on the way there
}

// call calls a party. Between the two halves of its time the party has done its work, and we do not know it yet.
func (w *outside) call(ctx context.Context, c call, answer func(c *call, before []call)) (call, error) {
	if err := w.travel(ctx); err != nil {
		return c, err
	}
	c, err := w.book.take(c, answer)
	if err != nil {
		return c, err
	}
	return c, w.travel(ctx)
}

func (w *outside) travel(ctx context.Context) error {
	timer := time.NewTimer(w.pace / 2)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
