package tables

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Row reads the columns of a row from left to right. It keeps the first error, for a value that does not have the
// expected type.
//
// Databases have different types: an id is a text or bytes, a flag a number or a boolean.
type Row struct {
	Values []driver.Value
	Err    error // the first error
	next   int
}

// Begin starts reading a row, after its Values were set.
func (r *Row) Begin() { r.next, r.Err = 0, nil }

func (r *Row) value() driver.Value {
	v := r.Values[r.next]
	r.next++
	return v
}

func (r *Row) bad(what string, err error) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: column %d of a row is %.60q and no %s (%w)",
			store.ErrCorrupt, r.next, fmt.Sprint(r.Values[r.next-1]), what, err)
	}
}

var errType = errors.New("wrong type")

// Text reads a text; NULL is "".
func (r *Row) Text() string {
	switch v := r.value().(type) {
	case string:
		return v
	case nil:
		return ""
	}
	r.bad("text", errType)
	return ""
}

// Number reads an integer; NULL is 0.
func (r *Row) Number() int64 {
	switch v := r.value().(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	case nil:
		return 0
	}
	r.bad("number", errType)
	return 0
}

// Flag reads a boolean; NULL is false.
func (r *Row) Flag() bool {
	if v, ok := r.Values[r.next].(bool); ok {
		r.next++
		return v
	}
	return r.Number() != 0
}

// JSON reads a payload; NULL is nil.
func (r *Row) JSON() json.RawMessage {
	if s := r.Text(); s != "" {
		return json.RawMessage(s)
	}
	return nil
}

// Failure reads a failure; NULL is nil.
func (r *Row) Failure() *workitem.Failure {
	data := r.JSON()
	if data == nil {
		return nil
	}
	f, err := state.DecodeFailure(data)
	if err != nil {
		r.bad("failure", err)
	}
	return f
}

// Time reads a time; NULL is the zero time.
func (r *Row) Time() time.Time {
	if r.Values[r.next] == nil {
		r.next++
		return time.Time{}
	}
	return state.FromMicros(r.Number())
}

func parsed[T any](r *Row, what string, parse func(string) (T, error)) T {
	v, err := parse(r.Text())
	if err != nil {
		r.bad(what, err)
	}
	return v
}

// ID reads an id; NULL is the zero id.
func ID[K interface{ ~[16]byte }, P interface {
	*K
	UnmarshalText([]byte) error
}](r *Row) K {
	var k K
	if v, ok := r.Values[r.next].([16]byte); ok {
		r.next++
		return K(v)
	}
	if err := P(&k).UnmarshalText([]byte(r.Text())); err != nil {
		r.bad("id", err)
	}
	return k
}
