package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxSize is the largest payload or record, in bytes of JSON: 1 MiB. Store larger data in a file or an object store,
// and its address in the record.
const MaxSize = 1 << 20

// ErrTooLarge says that a payload or record is longer than [MaxSize].
var ErrTooLarge error = tooLargeError{}

// tooLargeError has its own code as the failure of some work, which another attempt does not repair.
type tooLargeError struct{}

func (tooLargeError) Error() string                   { return "too large" }
func (tooLargeError) Permanent() bool                 { return true }
func (tooLargeError) FailureCode() string             { return "too-large" }
func (tooLargeError) FailureDetails() json.RawMessage { return nil }

// Encode validates v and returns it as JSON text, in UTF-8. The error is an [*InvalidError] if v breaks its own rules
// or holds raw JSON that isn't UTF-8, an [*TypeError] if its type has rules that can't work, or is [ErrTooLarge].
func Encode(v any) ([]byte, error) {
	if err := Validate(v); err != nil {
		return nil, err
	}
	return write(v)
}

// Decode reads JSON that comes from outside, and validates it. It is strict, since the sender of the data can still
// correct it: a field that T doesn't have is refused, for it may be a misspelt one whose value would be lost, and so is
// anything that follows the value. The JSON null is T's zero value, and must obey the rules like any other.
//
// The error is an *InvalidError if the data is invalid, a *TypeError if a tag of T is invalid, or ErrTooLarge. For an
// unknown field it suggests the field that was probably meant.
func Decode[T any](data []byte) (T, error) {
	var none T
	if len(data) > MaxSize {
		return none, tooLarge(fmt.Sprintf("the JSON for %v", reflect.TypeFor[T]()), len(data))
	}
	if at := notText(data); at >= 0 {
		return none, &InvalidError{Type: reflect.TypeFor[T]().String(), Err: fmt.Errorf("%w, at byte %d", errNotText, at)}
	}
	v, err := read[T](data)
	if err != nil {
		return none, malformed(reflect.TypeFor[T](), data, err)
	}
	if err := CheckForm[T](data); err != nil {
		return none, err
	}
	if err := Validate(v); err != nil {
		return none, err
	}
	return v, nil
}

// Canonical is Decode followed by Encode, but validates only once. It returns the form in which a value is stored,
// regardless of which program wrote the data.
func Canonical[T any](data []byte) ([]byte, error) {
	v, err := Decode[T](data)
	if err != nil {
		return nil, err
	}
	return write(v)
}

// Restore decodes JSON that Encode wrote, perhaps long ago and for an older T: fields that T no longer has are dropped,
// and values are not validated.
func Restore[T any](data []byte) (T, error) {
	var v, none T
	if err := json.Unmarshal(data, &v); err != nil {
		return none, fmt.Errorf("read stored %v: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

// CheckJSON returns an error unless data is a single JSON value in UTF-8, as databases require. Package encoding/json
// accepts strings of any bytes, and replaces invalid UTF-8 when it decodes them. The error is an *InvalidError.
func CheckJSON(data []byte) error {
	if at := notText(data); at >= 0 {
		return &InvalidError{Type: "JSON", Err: fmt.Errorf("%w, at byte %d", errNotText, at)}
	}
	if json.Valid(data) {
		return checkForm(nil, data)
	}
	err := json.Unmarshal(data, new(json.RawMessage))
	return &InvalidError{Type: "JSON", Err: fmt.Errorf("not JSON: %w", err)}
}

var errNotText = errors.New("not UTF-8")

// notText returns where data stops being UTF-8; -1 if it doesn't.
func notText(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

func tooLarge(what string, size int) error {
	return fmt.Errorf("%s is %w: %d bytes, and the limit is %d; store it elsewhere and keep its address",
		what, ErrTooLarge, size, MaxSize)
}
