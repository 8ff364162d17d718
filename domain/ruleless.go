package domain

import (
	"reflect"
	"sync"
)

var rulelessTypes sync.Map // reflect.Type to bool

// ruleless reports whether no value of a type can break a rule: nothing in it has a validate tag, and nothing is an interface, behind which
// there may be one. Such values need not be walked through.
func ruleless(t reflect.Type) bool {
	if known, ok := rulelessTypes.Load(t); ok {
		return known.(bool)
	}
	found := !holdsRules(t, make(map[reflect.Type]bool))
	rulelessTypes.Store(t, found)
	return found
}

// holdsRules looks for rules in a type and in what it holds. seen are the types that need no other look.
func holdsRules(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsRules(t.Elem(), seen)
	case reflect.Map:
		return holdsRules(t.Key(), seen) || holdsRules(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if _, tagged := f.Tag.Lookup("validate"); tagged || holdsRules(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
