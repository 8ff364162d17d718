package workitem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Key is a version 7 UUID with the type of the object that it identifies, so that the id of a case cannot be passed as
// the id of an item. Its text form has the usual 36 characters. Keys of one Generator sort in the order of their
// creation. The zero value identifies nothing.
type Key[T any] [16]byte

type (
	itemKey struct{}
	caseKey struct{}
	jobKey  struct{}
)

// ID names a work item.
type ID = Key[itemKey]

// CaseID names a case.
type CaseID = Key[caseKey]

// JobID names a job.
type JobID = Key[jobKey]

// IsZero reports whether the key is the zero value.
func (k Key[T]) IsZero() bool { return k == Key[T]{} }

// String returns the text form, "0197a3c4-…", or "" for the zero key.
func (k Key[T]) String() string {
	if k.IsZero() {
		return ""
	}
	return uuid.UUID(k).String()
}

// AppendText appends the text form without allocating.
func (k Key[T]) AppendText(dst []byte) ([]byte, error) {
	if k.IsZero() {
		return dst, nil
	}
	const digits = "0123456789abcdef"
	for i, b := range k {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst, nil
}

// MarshalText returns the text form, which is empty for the zero key.
func (k Key[T]) MarshalText() ([]byte, error) { return k.AppendText(make([]byte, 0, 36)) }

// UnmarshalText parses the text form.
func (k *Key[T]) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*k = Key[T]{}
		return nil
	}
	u, err := uuid.ParseBytes(text)
	if err != nil {
		return fmt.Errorf("%q is not an id: %w", text, err)
	}
	*k = Key[T](u)
	return nil
}

// ParseID reads the id of a work item.
func ParseID(s string) (ID, error) { return parse[itemKey](s) }

// ParseCaseID reads the id of a case.
func ParseCaseID(s string) (CaseID, error) { return parse[caseKey](s) }

// ParseJobID reads the id of a job.
func ParseJobID(s string) (JobID, error) { return parse[jobKey](s) }

func parse[T any](s string) (Key[T], error) {
	var k Key[T]
	if s == "" {
		return k, fmt.Errorf("an empty text is not an id")
	}
	return k, k.UnmarshalText([]byte(s))
}

// LeastKey returns the least key that a Generator generates at time t or later. The time in a key is never before its generation; it
// is after it if the clock was set back, or if more than four thousand keys were generated in a millisecond.
func LeastKey[T any](t time.Time) (k Key[T]) {
	binary.BigEndian.PutUint64(k[:8], uint64(max(0, t.UnixMilli()))<<16)
	return k
}

// Generator generates keys that increase with time, also within one millisecond. It is safe for concurrent
// use.
type Generator struct {
	mu     sync.Mutex
	random io.Reader
	millis int64
	count  uint16 // 12 bits, rising within a millisecond
	buf    [512]byte
	unused []byte
	failed error // of the source, since the last call of Failed
}

// ErrRandom says that the source of random bits of a Generator failed.
var ErrRandom = errors.New("the source of random bits failed")

// NewGenerator returns a generator that reads random bits from a reader, usually crypto/rand.Reader.
func NewGenerator(random io.Reader) *Generator { return &Generator{random: random} }

// next lays out RFC 9562 §5.7: 48 bits of milliseconds, a 12-bit counter, 62 random bits. A clock that goes back keeps
// the last millisecond, and a counter that runs over borrows the next one, so keys never fall.
func (g *Generator) next(now time.Time) [16]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ms := now.UnixMilli(); ms > g.millis {
		g.millis, g.count = ms, 0
	} else if g.count++; g.count > 0xfff {
		g.millis, g.count = g.millis+1, 0
	}
	var k [16]byte
	binary.BigEndian.PutUint64(k[:8], uint64(g.millis)<<16|0x7000|uint64(g.count))
	copy(k[8:], g.bits())
	k[8] = k[8]&0x3f | 0x80
	return k
}

// Above makes all further keys greater than the given one, such as the last key in a database, so that keys increase
// from one process to the next even if the clock was set back.
func (g *Generator) Above(key [16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	head := binary.BigEndian.Uint64(key[:8])
	if ms := int64(head >> 16); ms >= g.millis {
		g.millis, g.count = ms, max(g.count, uint16(head&0xfff))
	}
}

// Failed returns an error that wraps ErrRandom if the source of random bits has failed since the last call, or fails now. Keys that
// were generated since then are not random, and must not be used.
func (g *Generator) Failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fill()
	err := g.failed
	if g.failed = nil; err != nil {
		g.unused = nil
	}
	return err
}

// bits returns eight random bytes out of a block, since a system call for each key would cost more than the key.
func (g *Generator) bits() []byte {
	g.fill()
	b := g.unused[:8]
	g.unused = g.unused[8:]
	return b
}

// fill makes a block of random bytes if none are left. If the source fails, its bytes are zero and serve the key that is being made.
func (g *Generator) fill() {
	if len(g.unused) >= 8 {
		return
	}
	if err := g.draw(g.buf[:]); err != nil {
		clear(g.buf[:8])
		g.failed, g.unused = fmt.Errorf("%w: %w", ErrRandom, err), g.buf[:8]
		return
	}
	g.unused = g.buf[:]
}

// Read fills p with random bytes of the source. If the source fails, it returns 0 and an error that wraps ErrRandom.
func (g *Generator) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.draw(p); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRandom, err)
	}
	return len(p), nil
}

// maxEmptyReads is how often in a row a source may give nothing and no error, as [io.Reader] allows, until it is taken for one that never
// will give anything.
const maxEmptyReads = 100

// draw fills a block. A source that panics fails.
func (g *Generator) draw(block []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	empty := 0
	for n := 0; n < len(block); {
		read, err := g.random.Read(block[n:])
		if n += read; n >= len(block) {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case read > 0:
			empty = 0
		default:
			if empty++; empty == maxEmptyReads {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// NewID makes the id of a work item created now.
func (g *Generator) NewID(now time.Time) ID { return g.next(now) }

// NewCaseID makes the id of a case created now.
func (g *Generator) NewCaseID(now time.Time) CaseID { return g.next(now) }

// NewJobID makes the id of a job created now.
func (g *Generator) NewJobID(now time.Time) JobID { return g.next(now) }
