package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// MaxSize is the largest payload or record that is taken, in bytes of JSON: 1 MiB. What is larger belongs in a file or
// an object store, and its address into the record.
const MaxSize = 1 << 20

// ErrTooLarge says that a payload or record is longer than [MaxSize].
var ErrTooLarge = errors.New("too large")

// Encode validates v and returns it as JSON text. The error is an [*InvalidError] if v breaks its own rules, an
// [*TypeError] if its type has rules that can't work, or is [ErrTooLarge].
func Encode(v any) ([]byte, error) {
	if err := Validate(v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // so that people who look into the database can read it
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", v, err)
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return data, checkSize(fmt.Sprintf("a %T", v), len(data))
}

// Decode reads JSON that comes from outside, and validates it. It is strict, since whoever sent the data can still
// mend it: a field that T doesn't have is refused, for it may be a misspelt one whose value would be lost, and so is
// anything that follows the value. The JSON null is T's zero value, and must obey the rules like any other.
//
// The error is an [*InvalidError] if the data is to blame, an [*TypeError] if T's tags are, or is [ErrTooLarge].
func Decode[T any](data []byte) (T, error) {
	var v, none T
	if err := checkSize(fmt.Sprintf("the JSON for %v", reflect.TypeFor[T]()), len(data)); err != nil {
		return none, err
	}
	if err := read(data, &v); err != nil {
		return none, malformed(reflect.TypeFor[T](), err)
	}
	if err := Validate(v); err != nil {
		return none, err
	}
	return v, nil
}

// Restore reads JSON that [Encode] wrote, perhaps long ago and for an older T: fields that T no longer has are dropped,
// and rules aren't asked.
func Restore[T any](data []byte) (T, error) {
	var v, none T
	if err := json.Unmarshal(data, &v); err != nil {
		return none, fmt.Errorf("read stored %v: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

var (
	errEmpty    = errors.New("there is no JSON; send {} or null for an empty value")
	errTrailing = errors.New("something follows the JSON value; send one value")
)

func read(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); errors.Is(err, io.EOF) {
		return errEmpty
	} else if err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// malformed explains JSON that isn't a T: as a broken rule of a field where a field is known.
func malformed(t reflect.Type, err error) error {
	invalid := &InvalidError{Type: t.String(), Err: err}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		invalid.Fields = []FieldError{{Path: e.Field, Rule: "type", Param: e.Type.String()}}
	} else if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		invalid.Err = fmt.Errorf("not JSON, at byte %d: %w", e.Offset, err)
	}
	return invalid
}

func checkSize(what string, size int) error {
	if size <= MaxSize {
		return nil
	}
	return fmt.Errorf("%s is %w: %d bytes, and the limit is %d; store it elsewhere and keep its address",
		what, ErrTooLarge, size, MaxSize)
}
