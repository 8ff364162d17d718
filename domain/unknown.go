package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
)

// unknownError names a field that its type doesn't have: most often it is misspelt.
type unknownError struct {
	path  string   // of the object that has the field, such as "items[2]"; "" for the value itself
	name  string   // of the field
	known []string // the names that the type has
}

func (e *unknownError) Error() string {
	text := fmt.Sprintf("unknown field %q", e.at())
	switch best := spelling.Closest(e.name, e.known); {
	case best != "":
		return fmt.Sprintf("%s; did you mean %q? The fields are %s", text, best, list(e.known))
	case len(e.known) == 0:
		return text + "; there are no fields here"
	}
	return text + "; the fields are " + list(e.known)
}

// at is the field with its path.
func (e *unknownError) at() string {
	name := e.name
	if len(name) > maxPath {
		name = strings.ToValidUTF8(name[:maxPath], "") + "..."
	}
	return tail(strings.TrimPrefix(e.path+"."+name, "."), max(maxPath, len(name)))
}

// maxPath is how much of a path an error's text has, in bytes. Data from outside may be a thousand objects deep.
const maxPath = 80

// tail is the end of a path that is too long, where the name is that its sender has to correct.
func tail(path string, most int) string {
	if over := len(path) - most; over > 0 {
		return "..." + strings.ToValidUTF8(path[over:], "")
	}
	return path
}

// findUnknown looks for the first field of the data that the type doesn't have; nil if there is none. The data is read
// once, however deep it is.
func findUnknown(t reflect.Type, data []byte) *unknownError {
	f := &finder{dec: json.NewDecoder(bytes.NewReader(data)), fields: make(map[reflect.Type][]field), twiceAt: -1}
	f.dec.UseNumber() // any number will do
	return f.value(t)
}

// finder reads JSON token by token, along with the type that it should be of.
type finder struct {
	dec    *json.Decoder
	path   []string                 // where it is: ".items", "[2]", ...
	fields map[reflect.Type][]field // of the structs so far
	ended  bool                     // there is no token any more

	twice   string // the first field that is there a second time
	twiceAt int    // the byte behind that second name; -1 if there is none
}

func (f *finder) token() json.Token {
	token, err := f.dec.Token()
	f.ended = f.ended || err != nil
	return token
}

func (f *finder) more() bool { return !f.ended && f.dec.More() }

// value reads a value. A nil type is one of which nothing is known, or of which the JSON says nothing.
func (f *finder) value(t reflect.Type) *unknownError {
	open, _ := f.token().(json.Delim)
	if t != nil {
		if t = deref(t); readsItself(t) {
			t = nil
		}
	}
	switch open {
	case '{':
		return f.object(t)
	case '[':
		return f.list(t)
	}
	return nil
}

func (f *finder) object(t reflect.Type) *unknownError {
	var seen []string
	for f.more() {
		key, _ := f.token().(string)
		inner, step := reflect.Type(nil), ""
		switch {
		case t == nil:
		case t.Kind() == reflect.Map:
			inner, step = t.Elem(), "["+key+"]"
		case t.Kind() == reflect.Struct:
			known := f.field(t, key)
			if known == nil {
				return &unknownError{path: strings.TrimPrefix(strings.Join(f.path, ""), "."), name: key, known: namesOf(t)}
			}
			inner, step = known.t, "."+known.name
			if f.twiceAt < 0 && slices.Contains(seen, known.name) {
				f.twice, f.twiceAt = strings.TrimPrefix(strings.Join(f.path, "")+step, "."), int(f.dec.InputOffset())
			}
			seen = append(seen, known.name)
		}
		if u := f.within(inner, step); u != nil {
			return u
		}
	}
	f.token() // what ends it
	return nil
}

func (f *finder) list(t reflect.Type) *unknownError {
	var inner reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		inner = t.Elem()
	}
	for i := 0; f.more(); i++ {
		if u := f.within(inner, fmt.Sprintf("[%d]", i)); u != nil {
			return u
		}
	}
	f.token()
	return nil
}

// within reads a value one step further inside.
func (f *finder) within(t reflect.Type, step string) *unknownError {
	f.path = append(f.path, step)
	defer func() { f.path = f.path[:len(f.path)-1] }()
	return f.value(t)
}

// field finds the one that a key means, as encoding/json does: the very name first, then one that differs in small and
// capital letters.
func (f *finder) field(t reflect.Type, key string) *field {
	fields, known := f.fields[t]
	if !known {
		fields = fieldsOf(t)
		f.fields[t] = fields
	}
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
	if i < 0 {
		i = slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, key) })
	}
	if i < 0 {
		return nil
	}
	return &fields[i]
}
