package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// malformed explains JSON that isn't a T in words for its sender: as a broken rule of a field where a field is
// known.
func malformed(t reflect.Type, data []byte, err error) error {
	invalid := &InvalidError{Type: t.String(), Err: err}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			invalid.Fields = []FieldError{{Path: e.Field, Rule: "type", Param: e.Type.String()}}
		} else {
			invalid.Err = &formError{got: e.Value, want: form(e.Type), err: err}
		}
		return invalid
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		invalid.Err = fmt.Errorf("not JSON, at byte %d: %w", e.Offset, err)
		return invalid
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		invalid.Err = fmt.Errorf("not JSON: unexpected end: %w", err)
		return invalid
	}
	if unknown := findUnknown(t, data); unknown != nil { // encoding/json has no type for this error
		invalid.Err = unknown
	}
	return invalid
}

// formError says that a whole value has another form than its type.
type formError struct {
	got, want string
	err       error
}

func (e *formError) Error() string {
	return fmt.Sprintf("it is JSON of another form (%s); send %s", e.got, e.want)
}

func (e *formError) Unwrap() error { return e.err }

// form says in the words of JSON how a type is written.
func form(t reflect.Type) string {
	switch t = deref(t); t.Kind() {
	case reflect.Struct:
		if names := namesOf(t); len(names) > 0 && !readsItself(t) {
			return "an object with the fields " + list(names)
		}
		return "an object"
	case reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "a whole number that fits an " + t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a " + t.String()
}

// list shows names, and only the first of many.
func list(names []string) string {
	if more := len(names) - maxShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
