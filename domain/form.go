package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// JSON may be valid and have no certain meaning (RFC 8259, 4 and 6): an object that names a field twice, of which most readers drop one
// value, a number that no float64 holds, or levels without end. Such data is refused where it comes in, so that no later reader takes it for
// something else, or fails.

// MaxDepth is how many objects and lists of JSON may be within each other: 1000. It is also the limit of the JSON functions of SQLite.
const MaxDepth = 1000

var (
	errDeep  = fmt.Errorf("objects and lists are nested too deeply, in more than %d levels", MaxDepth)
	errRange = errors.New("is beyond the range of a float64; send it as a text")
	errTwice = errors.New("is there twice; send it once")
)

// meaningError says what is wrong with JSON that is valid, and where.
type meaningError struct {
	err  error
	path string // of the field or number, such as "items[2].name"; "" for the value itself
	at   int    // in bytes, from zero
}

// Error names the place, and no value, as all of [InvalidError].
func (e *meaningError) Error() string {
	switch e.err {
	case errTwice:
		return fmt.Sprintf("the field %q %s (byte %d)", tail(e.path, maxPath), e.err, e.at)
	case errRange:
		if e.path == "" {
			return "the number " + e.err.Error()
		}
		return fmt.Sprintf("the number %q %s (byte %d)", tail(e.path, maxPath), e.err, e.at)
	}
	return fmt.Sprintf("%s, at byte %d", e.err, e.at)
}

func (e *meaningError) Unwrap() error { return e.err }

// CheckForm returns an error if data, which is JSON, has an object with the same field twice, is nested deeper than [MaxDepth], or holds a
// number beyond the range of a float64. Names that differ only in small and capital letters are one name if they mean the same field of T.
// The error is an [*InvalidError].
func CheckForm[T any](data []byte) error { return checkForm(reflect.TypeFor[T](), data) }

// checkForm is CheckForm for a type, or for no type in particular: nil.
func checkForm(t reflect.Type, data []byte) error {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(t != nil)
	at, err := s.scan(data)
	path := ""
	switch {
	case err == nil && !s.alike:
		return nil
	case err == nil:
		if path, at = findTwice(t, data); at < 0 {
			return nil
		}
		err = errTwice
	case err != errDeep: // a path of a thousand levels is no help
		path = pathAt(data, at)
	}
	name := "JSON"
	if t != nil {
		name = t.String()
	}
	return &InvalidError{Type: name, Err: &meaningError{err: err, path: path, at: at}}
}

// scanner goes through JSON once. It takes it to be valid.
type scanner struct {
	open  []level
	keys  [][]byte // of all open objects, without their quotes
	folds bool     // names that are alike but for small and capital letters are of interest
	alike bool     // there are such names in one object
}

// level is an object or list that has not ended.
type level struct {
	object bool
	key    bool            // the next text is the name of a field
	first  int             // of its keys in scanner.keys
	many   map[string]bool // its keys, if they are many: true for one that is there, false for one that is alike
}

// fewKeys is up to how many keys are compared with each other, which takes less than a map.
const fewKeys = 16

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) reset(folds bool) {
	clear(s.open)
	clear(s.keys)
	s.open, s.keys, s.folds, s.alike = s.open[:0], s.keys[:0], folds, false
}

// scan returns which rule the data breaks, and where.
func (s *scanner) scan(data []byte) (at int, broken error) {
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '"':
			end := i + 1 + endOfText(data[i+1:])
			if top := len(s.open) - 1; top >= 0 && s.open[top].key {
				s.open[top].key = false
				if s.isTwice(&s.open[top], unquoted(data[i:end])) {
					return i, errTwice
				}
			}
			i = end
			continue
		case '{', '[':
			if len(s.open) == MaxDepth {
				return i, errDeep
			}
			s.open = append(s.open, level{object: c == '{', key: c == '{', first: len(s.keys)})
		case '}', ']':
			if top := len(s.open) - 1; top >= 0 {
				s.keys, s.open = s.keys[:s.open[top].first], s.open[:top]
			}
		case ',':
			if top := len(s.open) - 1; top >= 0 {
				s.open[top].key = s.open[top].object
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			n := lengthOfNumber(data[i:])
			if isBeyond(data[i : i+n]) {
				return i, errRange
			}
			i += n
			continue
		}
		i++
	}
	return 0, nil
}

// isTwice reports whether an object has a key already, and notes it if not.
func (s *scanner) isTwice(l *level, key []byte) bool {
	before := s.keys[l.first:]
	s.keys = append(s.keys, key)
	if len(before) >= fewKeys {
		return s.isOneOfMany(l, before, key)
	}
	for _, k := range before {
		if string(k) == string(key) {
			return true
		}
		s.alike = s.alike || s.folds && mayFold(k, key) && bytes.EqualFold(k, key)
	}
	return false
}

// mayFold reports whether two names can be alike but for small and capital letters, by their first letters: most are not,
// and EqualFold takes longer.
func mayFold(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && (a[0]|0x20 == b[0]|0x20 || a[0] >= utf8.RuneSelf || b[0] >= utf8.RuneSelf)
}

func (s *scanner) isOneOfMany(l *level, before [][]byte, key []byte) bool {
	if l.many == nil {
		l.many = make(map[string]bool, 4*fewKeys)
		for _, k := range before {
			s.note(l, k)
		}
	}
	return s.note(l, key)
}

func (s *scanner) note(l *level, key []byte) (known bool) {
	if l.many[string(key)] {
		return true
	}
	if s.folds {
		fold := strings.ToLower(strings.ToUpper(string(key)))
		_, alike := l.many[fold]
		s.alike = s.alike || alike
		l.many[fold] = false
	}
	l.many[string(key)] = true
	return false
}

// endOfText returns the length of a text behind its first quote, with the last one.
func endOfText(data []byte) int {
	for i := 0; ; {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			return len(data)
		}
		i += next
		slashes := 0
		for slashes < i && data[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
}

// unquoted returns a name without its quotes and escapes.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var text string
		_ = json.Unmarshal(quoted, &text) // it is valid
		return []byte(text)
	}
	return quoted[1 : len(quoted)-1]
}

func lengthOfNumber(data []byte) int {
	n := 1
	for ; n < len(data); n++ {
		switch c := data[n]; {
		case '0' <= c && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return n
		}
	}
	return n
}

// isBeyond reports whether no float64 is near a number. A number that is too small for one is zero.
func isBeyond(number []byte) bool {
	if len(number) < 300 && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return false
	}
	f, _ := strconv.ParseFloat(string(number), 64)
	return math.IsInf(f, 0)
}

var rawTypes sync.Map // reflect.Type to bool

// mayLackForm reports whether JSON of a value that was written may break the rules of CheckForm: the value is of any depth, or some of it writes itself.
func mayLackForm(t reflect.Type) bool {
	if known, ok := rawTypes.Load(t); ok {
		return known.(bool)
	}
	may := unbounded(t) || holdsWriter(t, make(map[reflect.Type]bool))
	rawTypes.Store(t, may)
	return may
}

// holdsWriter looks for methods that write JSON in a type and in what it holds. seen are the types that need no other look.
func holdsWriter(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || t == reflect.TypeFor[time.Time]() {
		return false
	}
	seen[t] = true
	if writesItself(t) || t == reflect.TypeFor[json.Number]() {
		return true
	}
	switch t.Kind() {
	case reflect.Map:
		return holdsWriter(t.Key(), seen) || holdsWriter(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsWriter(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsWriter(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
