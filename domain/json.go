package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// Payloads are read and written many times in the life of a work item, and most are short: what encoding/json allocates
// for each would be more than they hold. So its readers and writers are kept for the next one.

// keptSize is up to which length of JSON a buffer is kept.
const keptSize = 64 << 10

// writer is an encoder with its buffer.
type writer struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var writers = sync.Pool{New: func() any {
	w := new(writer)
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false) // so that people who look into the database can read it
	return w
}}

func write(v any) ([]byte, error) {
	w := writers.Get().(*writer)
	w.buf.Reset()
	if err := w.enc.Encode(v); err != nil { // the encoder repeats some errors, so it is not kept
		return nil, &InvalidError{Type: fmt.Sprintf("%T", v), Err: fmt.Errorf("write %T as JSON: %w", v, err)}
	}
	data := bytes.Clone(bytes.TrimSuffix(w.buf.Bytes(), []byte("\n")))
	if len(data) <= keptSize {
		writers.Put(w)
	}
	if at := notText(data); at >= 0 { // of a json.RawMessage in it, or by its own MarshalJSON
		return nil, &InvalidError{Type: fmt.Sprintf("%T", v), Err: fmt.Errorf("%w, at byte %d of its JSON", errNotText, at)}
	}
	if len(data) > MaxSize {
		return data, tooLarge(fmt.Sprintf("a value of type %T", v), len(data))
	}
	if t := reflect.TypeOf(v); t != nil && mayLackForm(t) {
		if err := checkForm(t, data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// reader is a strict decoder of one text after the other.
type reader struct {
	text bytes.Reader
	dec  *json.Decoder
}

var readers = sync.Pool{New: func() any { return newReader() }}

func newReader() *reader {
	r := new(reader)
	r.dec = json.NewDecoder(&r.text)
	r.dec.DisallowUnknownFields()
	return r
}

var (
	errEmpty    = errors.New("there is no JSON; send {} or null for an empty value")
	errTrailing = errors.New("unexpected data after the JSON value; send one value")
)

// read decodes a text that holds one value and nothing else. A decoder that met an error is not used again, and counts
// the bytes of all that it has read: so what is wrong is found by a fresh one.
func read[T any](data []byte) (T, error) {
	var v, again T
	r := readers.Get().(*reader)
	if rest, err := r.read(data, &v); err == nil {
		if rest == 0 && len(data) <= keptSize {
			readers.Put(r)
		}
		return v, nil
	}
	_, err := newReader().read(data, &again)
	return again, err
}

// read returns how many bytes of white space follow the value.
func (r *reader) read(data []byte, v any) (rest int, err error) {
	start := r.dec.InputOffset()
	r.text.Reset(data)
	if err := r.dec.Decode(v); errors.Is(err, io.EOF) {
		return 0, errEmpty
	} else if err != nil {
		return 0, err
	}
	after := data[r.dec.InputOffset()-start:]
	if len(bytes.TrimLeft(after, " \t\r\n")) > 0 {
		return 0, errTrailing
	}
	return len(after), nil
}
