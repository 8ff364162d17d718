package domain

import (
	"errors"
	"reflect"
	"strings"
	"sync"
)

// maxDepth is how deep values may be nested, where each pointer, interface, list, map and struct on the way counts:
// about a thousand objects within each other. The validator follows pointers for as long as there are any, so a value
// that refers back to itself would overflow the stack, which no program survives; and the paths of the fields of deep
// data from outside would fill the memory.
const maxDepth = 3000

var errTooDeep = errors.New("the value is cyclic, or nested too deeply")

// tooDeep reports whether the validator would follow v for more than maxDepth levels.
func tooDeep(v reflect.Value, depth int) bool {
	if depth > maxDepth {
		return true
	}
	if !v.IsValid() || !unbounded(v.Type()) {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return tooDeep(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if followed(v.Type().Field(i)) && tooDeep(v.Field(i), depth+1) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if tooDeep(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if tooDeep(it.Value(), depth+1) {
				return true
			}
		}
	}
	return false
}

// followed reports whether the validator looks into a field.
func followed(f reflect.StructField) bool {
	tag := f.Tag.Get("validate")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return false
	}
	switch deref(f.Type).Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return strings.Contains(tag, "dive")
	}
	return true
}

var unboundedTypes sync.Map // reflect.Type to bool

// unbounded reports whether values of a type can be of any depth: the type contains itself, or an interface, behind
// which anything may stand. Most types aren't, and their values need no look.
func unbounded(t reflect.Type) bool {
	if known, ok := unboundedTypes.Load(t); ok {
		return known.(bool)
	}
	found := search(t, make(map[reflect.Type]bool))
	unboundedTypes.Store(t, found)
	return found
}

// search looks for t's recursion. open holds the types above t as true, and those that are done with as false.
func search(t reflect.Type, open map[reflect.Type]bool) bool {
	if above, seen := open[t]; seen {
		return above
	}
	open[t] = true
	defer func() { open[t] = false }()
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return search(t.Elem(), open)
	case reflect.Struct:
		for i := range t.NumField() {
			if search(t.Field(i).Type, open) {
				return true
			}
		}
	}
	return false
}
