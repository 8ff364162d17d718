package domain

import (
	"encoding/json"
	"reflect"
	"time"
)

// IsPlain reports whether decoding, validating and encoding values of a type calls no user code, which could panic or block. A type
// with methods, or that contains one, is not plain, whatever the methods are for, since the tag "validateFn" can name any of them.
func IsPlain(t reflect.Type) bool { return plain(t, make(map[reflect.Type]bool)) }

// plain looks for methods in a type and in what it holds. seen are the types that need no other look.
func plain(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || isStandard(t) {
		return true
	}
	seen[t] = true
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).NumMethod() > 0 {
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return t.NumMethod() == 0 // JSON puts maps, lists, strings, numbers and booleans into any
	case reflect.Map:
		return plain(t.Key(), seen) && plain(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return plain(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type, seen) {
				return false
			}
		}
	}
	return true
}

// isStandard reports whether a type is one of Go's own that have methods and are common in payloads.
func isStandard(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number]():
		return true
	}
	return false
}
