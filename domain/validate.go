package domain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/validator/v10"
)

// InvalidError says that data violates the rules of its type, or does not have its type. The sender of the data can correct
// it. The error does not contain values, since they may be secret and errors are logged.
type InvalidError struct {
	Type   string       // the Go type that the data should have been, such as "article.Prompt"
	Fields []FieldError // every field that is wrong, sorted by path; none if the data can't be read as fields
	Err    error        // why the data can't be decoded or encoded as JSON; nil if it only violates rules
}

// FieldError describes a field that violates a rule: the first rule that it violates.
type FieldError struct {
	Path  string `json:"path"`            // by JSON names, such as "items[2].name"; "" for the value itself
	Rule  string `json:"rule"`            // as in the validate tag, such as "max"; "type" for JSON of another type
	Param string `json:"param,omitempty"` // what the tag says after "=", such as "4000"; "" if nothing
}

// String returns "text: max=4000", and for JSON of another type "text: must be of type string".
func (f FieldError) String() string {
	s := f.Rule
	switch {
	case f.Rule == "type":
		s = "must be of type " + f.Param
	case f.Param != "":
		s += "=" + f.Param
	}
	if f.Path != "" {
		s = f.Path + ": " + s
	}
	return s
}

// maxShown is how many fields an error's text names. Data from outside may have a hundred thousand wrong ones.
const maxShown = 20

// Error returns "invalid article.Prompt: lang: oneof=de en; text: required", with the first 20 fields, and the end of a
// path that is long.
func (e *InvalidError) Error() string {
	var parts []string
	for _, f := range e.Fields[:min(len(e.Fields), maxShown)] {
		f.Path = tail(f.Path, maxPath)
		parts = append(parts, f.String())
	}
	if more := len(e.Fields) - maxShown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if len(parts) == 0 && e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return "invalid " + e.Type + ": " + strings.Join(parts, "; ")
}

// Unwrap returns why the data can't be read or written as JSON, if that was the reason.
func (e *InvalidError) Unwrap() error { return e.Err }

// FailureCode returns the failure code of work that returns this error: "invalid".
func (e *InvalidError) FailureCode() string { return "invalid" }

// FailureDetails returns the details of that failure: the fields as a JSON list; nil if there are none.
func (e *InvalidError) FailureDetails() json.RawMessage {
	if len(e.Fields) == 0 {
		return nil
	}
	fields, _ := json.Marshal(e.Fields) // strings only, which cannot fail
	return fields
}

// Validate reports every field of v that breaks the rule in its validate tag, as an [*InvalidError]; nil if all is
// well. Structs in structs are followed; the elements of a list or map where the field's tag says dive; those of a
// list or map that is v itself, always. Nil, and what holds no struct, has no rules and passes. A struct field that
// has "required" must not be the zero value.
//
// If a tag is invalid, the error is a *TypeError, see CheckType. Validate is safe for concurrent use.
func Validate(v any) error {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return nil
	}
	if tooDeep(rv, 0) {
		return &InvalidError{Type: deref(rv.Type()).String(), Err: errTooDeep}
	}
	if ruleless(rv.Type()) {
		return nil
	}
	c := collector{}
	if err := c.value(rv, ""); err != nil {
		return err
	}
	if len(c.fields) == 0 {
		return nil
	}
	slices.SortStableFunc(c.fields, func(a, b FieldError) int { return cmp.Compare(a.Path, b.Path) })
	return &InvalidError{Type: deref(rv.Type()).String(), Fields: c.fields}
}

// rules is the validator with Tasq's settings. It caches what it learns of each struct type.
var rules = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled(), validator.WithTagNameFuncBlankOmit())
	v.RegisterTagNameFunc(jsonName)
	return v
})

type collector struct{ fields []FieldError }

// value looks for structs in a value that no tag speaks about.
func (c *collector) value(v reflect.Value, path string) error {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if !isTime(v.Type()) {
			return c.strukt(v, path)
		}
	case reflect.Slice, reflect.Array:
		if holdsNone(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := c.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if holdsNone(v.Type().Elem()) {
			return nil
		}
		for it := v.MapRange(); it.Next(); {
			if err := c.value(it.Value(), fmt.Sprintf("%s[%v]", path, it.Key())); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsNone saves walking through what is long and has no rules, such as a []byte.
func holdsNone(t reflect.Type) bool {
	return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String
}

func isTime(t reflect.Type) bool { return t.ConvertibleTo(reflect.TypeFor[time.Time]()) }

// strukt applies the rules of a struct. The validator panics where a tag makes no sense; that is a mistake in a type,
// which must not take the process down that meets it.
func (c *collector) strukt(v reflect.Value, path string) (err error) {
	t := v.Type()
	defer func() {
		if r := recover(); r != nil {
			err = cmp.Or(checkType(t), error(&TypeError{Type: t.String(), Problem: fmt.Sprint(r)}))
		}
	}()
	broken, _ := errors.AsType[validator.ValidationErrors](rules().Struct(v.Interface()))
	for _, f := range broken {
		c.fields = append(c.fields, fieldError(f, t, path))
	}
	return nil
}

// fieldError turns the validator's description, which begins with the name of the outermost type, into ours.
func fieldError(f validator.FieldError, t reflect.Type, path string) FieldError {
	name := strings.TrimPrefix(f.Namespace(), t.Name()+".")
	switch {
	case t.Name() != "" && f.Namespace() == t.Name(): // an embedded struct itself
		name = ""
	case path != "" && name != "":
		name = path + "." + name
	}
	out := FieldError{Path: cmp.Or(name, path), Rule: f.Tag(), Param: f.Param()}
	if strings.Contains(out.Rule, "|") { // "len=3|len=5" holds its parameters
		out.Param = ""
	}
	return out
}
