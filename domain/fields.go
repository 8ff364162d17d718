package domain

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// readsItself reports whether a type has a form of its own in JSON, so that its fields say nothing.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// field is one that JSON may give a struct.
type field struct {
	name string
	t    reflect.Type
}

// fieldsOf lists the fields that encoding/json would fill, those of embedded structs among them.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		name := jsonName(f)
		promoted := len(f.Index) > 1 && hidden(t, f.Index)
		if promoted || name == "" || f.Tag.Get("json") == "-" || !f.IsExported() {
			continue
		}
		fields = append(fields, field{name, f.Type})
	}
	return fields
}

// hidden reports whether a promoted field isn't one to JSON, because one of the structs that embed it has a name there.
func hidden(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		if outer := t.FieldByIndex(index[:i]); jsonName(outer) != "" {
			return true
		}
	}
	return false
}

func namesOf(t reflect.Type) []string {
	var names []string
	for _, f := range fieldsOf(t) {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

// jsonName names a field as its JSON does. The empty name is that of an embedded struct, whose fields JSON shows as
// those of the outer one.
func jsonName(f reflect.StructField) string {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return f.Name
	case name != "":
		return name
	case f.Anonymous && deref(f.Type).Kind() == reflect.Struct:
		return ""
	}
	return f.Name
}

// deref returns what a pointer points to, over several levels; not endlessly, since "type P *P" is legal.
func deref(t reflect.Type) reflect.Type {
	for range 16 {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}
