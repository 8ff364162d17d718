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

// callLog records the calls that external services (the bank, the mail server, the model) receive: one line of JSON
// each, in a file beside the database. The file belongs to the services, so it is not part of any transaction: a call
// whose result was lost when the process was killed is recorded, although the database does not have it.
type callLog struct {
	clock retry.Clock
	mu    sync.Mutex
	file  *os.File
	read  int64 // the number of bytes of the file that are in calls
	calls []call
}

// call is one call of a service.
type call struct {
	At    time.Time `json:"at"`
	Party string    `json:"party"`
	About string    `json:"about"`         // the order, or the person
	Key   string    `json:"key,omitempty"` // the idempotency key of the call
	Did   bool      `json:"did"`           // the service acted; otherwise it refused, or repeated its answer
	Says  string    `json:"says"`
}

// openCallLog opens the file, and creates it if it does not exist.
func openCallLog(path string, clock retry.Clock) (*callLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	b := &callLog{clock: clock, file: file}
	if err := b.refresh(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return b, nil
}

func (b *callLog) close() error { return b.file.Close() }

// refresh reads what was appended since, also by an earlier process. It ignores an incomplete last line, which a killed
// process has left.
func (b *callLog) refresh() error {
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

// record records a call with the answer of a service. fill gets the earlier calls about the same subject, and sets Did
// and Says. The call is durable when answer returns.
func (b *callLog) record(c call, fill func(c *call, before []call)) (call, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refresh(); err != nil {
		return c, err
	}
	fill(&c, b.of(c.Party, c.About))
	c.At = b.clock.Now()
	line, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	end, err := b.file.Seek(0, io.SeekEnd)
	if err != nil {
		return c, err
	}
	if end > b.read { // the beginning of an incomplete line
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

// of lists the calls of a service about a subject. The lock is held.
func (b *callLog) of(party, about string) (found []call) {
	for _, c := range b.calls {
		if c.Party == party && c.About == about {
			found = append(found, c)
		}
	}
	return found
}

// count returns the number of calls of a service about a subject, and how many of them had an effect.
func (b *callLog) count(party, about string) (called, did int) {
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

// idempotent returns a service that acts once for each key, and answers with a reference that begins with the prefix.
func idempotent(prefix string) func(c *call, before []call) {
	return func(c *call, before []call) {
		c.Did, c.Says = true, prefix+c.Key[:min(8, len(c.Key))]
		for _, old := range before {
			if old.Key == c.Key {
				c.Did, c.Says = false, old.Says
			}
		}
	}
}

// failFirst returns a service that refuses its first n calls about a subject.
func failFirst(n int, says string) func(c *call, before []call) {
	return func(c *call, before []call) {
		if c.Did, c.Says = len(before) >= n, says; !c.Did {
			c.Says = "busy"
		}
	}
}

// services are the simulated services of a demo, which take some time and record their calls.
type services struct {
	log  *callLog
	pace time.Duration // the duration of a call; half of it passes before the service acts
}

// call calls a service. In the second half of the call the service has acted, and the caller does not know it yet.
func (w *services) call(ctx context.Context, c call, answer func(c *call, before []call)) (call, error) {
	if err := w.delay(ctx); err != nil {
		return c, err
	}
	c, err := w.log.record(c, answer)
	if err != nil {
		return c, err
	}
	return c, w.delay(ctx)
}

func (w *services) delay(ctx context.Context) error {
	timer := time.NewTimer(w.pace / 2)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
