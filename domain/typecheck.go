package domain

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/tasq-dev/tasq/internal/printable"
)

// TypeError says that a type cannot be a payload or a record as it is declared. It is an error of the program, not of the
// data.
type TypeError struct {
	Type    string // the Go type, such as "article.Prompt"
	Field   string // the field in question, by its Go name; "" for the type itself
	Problem string // what is wrong, for a person
}

// Error returns "field Text of article.Prompt: rule "max=ten" can't work: ...".
func (e *TypeError) Error() string {
	where := e.Type
	if e.Field != "" {
		where = "field " + e.Field + " of " + e.Type
	}
	return where + ": " + e.Problem
}

// CheckType reports why T cannot be a payload or record: T or a field cannot be encoded as JSON, or a validate tag
// names an unknown rule, has an invalid parameter, or does not apply to the type of the field. It checks all structs
// within T. The error joins a *TypeError for every problem; it is nil if there is none.
//
// Without it, an invalid tag is only found when the first value is validated, which may be long after the program has
// started. Of rules that compare fields with each other (eqfield, required_if), only the names are checked.
func CheckType[T any]() error {
	t := reflect.TypeFor[T]()
	if known, ok := checked.Load(t); ok {
		return known.(answer).err
	}
	err := checkType(t)
	checked.Store(t, answer{err})
	return err
}

// checked remembers the answers of CheckType, of which a program has as many as it has types: it is asked before every
// step of a function.
var checked sync.Map

type answer struct{ err error }

func checkType(t reflect.Type) error {
	c := typeChecker{seen: make(map[reflect.Type]bool)}
	if what := notJSON(t, 0); what != "" {
		c.problems = append(c.problems, &TypeError{Type: t.String(), Problem: what + " has no JSON form"})
	}
	c.look(t)
	return errors.Join(c.problems...)
}

type typeChecker struct {
	seen     map[reflect.Type]bool
	problems []error
}

func (c *typeChecker) look(t reflect.Type) {
	if c.seen[t] {
		return
	}
	c.seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.look(t.Elem())
	case reflect.Struct:
		if isTime(t) {
			return
		}
		for i := range t.NumField() {
			c.field(t, t.Field(i))
		}
	}
}

func (c *typeChecker) field(t reflect.Type, f reflect.StructField) {
	if !f.IsExported() && !f.Anonymous {
		return
	}
	report := func(format string, args ...any) {
		c.problems = append(c.problems, &TypeError{t.String(), f.Name, fmt.Sprintf(format, args...)})
	}
	if what := notJSON(f.Type, 0); what != "" && f.Tag.Get("json") != "-" && !writesItself(t) {
		report(`%s has no JSON form; tag it json:"-"`, what)
	}
	tag := f.Tag.Get("validate")
	if tag == "-" {
		return
	}
	if tag != "" {
		checkTag(f.Type, tag, report)
	}
	c.look(f.Type)
}

// notJSON names what encoding/json can't write or read; "" if it can. Structs are looked at field by field elsewhere.
// The depth ends the search in a type such as "type Tree []Tree".
func notJSON(t reflect.Type, depth int) string {
	if depth > 16 || writesItself(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return "a " + t.Kind().String()
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return "an interface with methods"
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return notJSON(t.Elem(), depth+1)
	case reflect.Map:
		if k := t.Key(); !isText(k) && !isInteger(k.Kind()) && k.Kind() != reflect.String {
			return "a map whose keys are of type " + k.String()
		}
		return notJSON(t.Elem(), depth+1)
	}
	return ""
}

func writesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) || isText(t)
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uintptr }

// checkTag tries each rule of a tag on a value of the type that it is about. A tag
// "max=3,dive,keys,len=2,endkeys,alpha" is about the map, then its keys, then its elements.
func checkTag(t reflect.Type, tag string, report func(string, ...any)) {
	parent, before := t, ""
	for rule := range strings.SplitSeq(tag, ",") {
		switch rule {
		case "omitempty", "omitnil", "omitzero", "structonly", "nostructlevel":
		case "dive":
			parent, t = deref(t), deref(t)
			switch t.Kind() {
			case reflect.Slice, reflect.Array, reflect.Map:
				t = t.Elem()
			case reflect.Interface:
				return // what it holds isn't known before
			default:
				report("dive needs a list or a map, not %s", printable.WithArticle(t.String()))
				return
			}
		case "keys":
			if before != "dive" || parent.Kind() != reflect.Map {
				report("keys must come right after the dive into a map")
				return
			}
			t = parent.Key()
		case "endkeys":
			t = parent.Elem()
		case "":
			report("the tag %q has an empty rule: take a comma out", tag)
		default:
			for one := range strings.SplitSeq(rule, "|") {
				if problem := try(deref(t), one); problem != "" {
					report("rule %q can't work: %s", one, problem)
				}
			}
		}
		before = rule
	}
}

// try applies one rule to a sample, and returns the complaint of the validator about the rule, if it has one. Whether
// the sample passes doesn't matter.
func try(t reflect.Type, rule string) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = strings.TrimSuffix(fmt.Sprint(r), " on field ''")
		}
	}()
	name, _, _ := strings.Cut(rule, "=")
	var value any // nil only has the rule parsed
	if !comparesFields(name) && t.Kind() != reflect.Struct && t.Kind() != reflect.Interface {
		value = sample(t).Interface()
	}
	_ = rules().Var(value, rule)
	return ""
}

// comparesFields reports whether a rule looks at the struct around the field, which a sample doesn't have.
func comparesFields(rule string) bool {
	return strings.HasSuffix(rule, "field") || strings.HasPrefix(rule, "field") ||
		strings.HasPrefix(rule, "required_") || strings.HasPrefix(rule, "excluded_") ||
		rule == "skip_unless" || rule == "validateFn"
}

// sample makes a value that isn't zero, since rules don't look at a zero value closely.
func sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch k := t.Kind(); {
	case k == reflect.String:
		v.SetString("x")
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	case k == reflect.Bool:
		v.SetBool(true)
	case k == reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		if t.Elem().Kind() == reflect.Pointer {
			v.Index(0).Set(reflect.New(t.Elem().Elem()))
		}
	case k == reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.Zero(t.Key()), reflect.Zero(t.Elem()))
	}
	return v
}
