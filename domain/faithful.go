package domain

import (
	"bytes"
	"reflect"
	"strings"
)

// IsFaithful reports whether values of a type survive a round trip through JSON: decoding what Encode wrote gives an equal value, which
// passes the same validation, unless invalid UTF-8 was replaced (see Corrected). Then Canonical has nothing to change and can be skipped.
// It is true for structs of strings, numbers, booleans, and lists and maps of them, if all fields are encoded. It is false if a tag, a
// method, an interface or a pointer can omit or replace a value.
func IsFaithful(t reflect.Type) bool { return faithful(t, make(map[reflect.Type]bool)) }

// faithful looks into a type. seen are the types that need no other look.
func faithful(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if reflect.PointerTo(t).NumMethod() > 0 {
		return false
	}
	switch k := t.Kind(); k {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64:
		return true
	case reflect.Slice, reflect.Array:
		return faithful(t.Elem(), seen)
	case reflect.Map:
		return (t.Key().Kind() == reflect.String || isInteger(t.Key().Kind())) && faithful(t.Key(), seen) && faithful(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			tag := f.Tag.Get("json")
			if f.Anonymous || !f.IsExported() || tag == "-" || strings.Contains(tag, ",") || !faithful(f.Type, seen) {
				return false
			}
		}
		return distinct(t)
	default:
		return isInteger(k)
	}
}

// distinct reports whether no two fields of a struct have names that JSON could take for one another.
func distinct(t reflect.Type) bool {
	names := make(map[string]bool, t.NumField())
	for i := range t.NumField() {
		name := strings.ToLower(jsonName(t.Field(i)))
		if names[name] {
			return false
		}
		names[name] = true
	}
	return true
}

// Corrected reports whether JSON that Encode wrote may contain a string whose invalid UTF-8 was replaced.
func Corrected(data []byte) bool { return bytes.Contains(data, []byte(`\ufffd`)) }
