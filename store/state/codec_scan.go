package state

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
)

// scanner decodes changes in exactly the form of [AppendChanges], without spaces and with the keys of [wire], in a
// quarter of the time of encoding/json. For any other text it sets odd, and encoding/json decodes the text or reports
// the error.
// A text of another form is decoded from the beginning, so it costs what the scanner has spent on it in addition.
type scanner struct {
	data []byte
	at   int
	odd  bool              // the text has another form; nothing more is read
	list []string          // reused for the lists of one change
	word map[string]string // strings that occurred before, as most do: names of tasks, conditions, states and kinds
}

// Bounds of the strings that a scanner keeps: texts that are longer, such as messages, seldom occur twice.
const (
	maxWords = 512
	longWord = 48
)

// The words of a scanner stay with it, so a journal whose entries repeat the same names allocates each name once.
var scanners = sync.Pool{New: func() any { return &scanner{word: make(map[string]string)} }}

// begin starts with a list of changes.
func (s *scanner) begin(data []byte) {
	s.data, s.at, s.odd = data, 0, false
	s.expect('[')
}

// next decodes the next change; false after the last one, or if the text has another form.
func (s *scanner) next(first bool, w *wire) bool {
	switch {
	case s.odd:
		return false
	case s.skip(']'):
		s.odd = s.at != len(s.data)
		return false
	case !first:
		s.expect(',')
	}
	*w, s.list = wire{}, s.list[:0]
	s.expect('{')
	for first := true; !s.odd && !s.skip('}'); first = false {
		if !first {
			s.expect(',')
		}
		read := readers[string(s.quoted())]
		if s.expect(':'); s.odd || read == nil {
			s.odd = true
			return false
		}
		read(s, w)
	}
	return !s.odd
}

// readers decode a field by its key; wire has the same keys.
var readers = map[string]func(*scanner, *wire){
	"e":           func(s *scanner, w *wire) { s.text(&w.E) },
	"case":        func(s *scanner, w *wire) { s.id(w.Case.UnmarshalText) },
	"root":        func(s *scanner, w *wire) { s.id(w.Root.UnmarshalText) },
	"parent":      func(s *scanner, w *wire) { s.id(w.Parent.UnmarshalText) },
	"item":        func(s *scanner, w *wire) { s.id(w.Item.UnmarshalText) },
	"job":         func(s *scanner, w *wire) { s.id(w.Job.UnmarshalText) },
	"predecessor": func(s *scanner, w *wire) { s.id(w.Predecessor.UnmarshalText) },
	"successor":   func(s *scanner, w *wire) { s.id(w.Successor.UnmarshalText) },
	"task":        func(s *scanner, w *wire) { s.text(&w.Task) },
	"gen":         func(s *scanner, w *wire) { s.number(&w.Gen) },
	"n":           func(s *scanner, w *wire) { s.long(&w.N) },
	"workflow":    func(s *scanner, w *wire) { s.text(&w.Workflow) },
	"version":     func(s *scanner, w *wire) { s.text(&w.Version) },
	"fingerprint": func(s *scanner, w *wire) { s.text(&w.Fingerprint) },
	"options":     func(s *scanner, w *wire) { s.raw(&w.Options) },
	"restarts":    func(s *scanner, w *wire) { s.id(w.Restarts.UnmarshalText) },
	"key":         func(s *scanner, w *wire) { s.text(&w.Key) },
	"unique":      func(s *scanner, w *wire) { s.flag(&w.Unique) },
	"frees":       func(s *scanner, w *wire) { s.flag(&w.Frees) },
	"labels":      func(s *scanner, w *wire) { s.other(&w.Labels) },
	"to":          func(s *scanner, w *wire) { s.text(&w.To) },
	"action":      func(s *scanner, w *wire) { s.text(&w.Action) },
	"from":        func(s *scanner, w *wire) { s.strings(&w.From) },
	"into":        func(s *scanner, w *wire) { s.strings(&w.Into) },
	"left":        func(s *scanner, w *wire) { s.strings(&w.Left) },
	"condition":   func(s *scanner, w *wire) { s.text(&w.Condition) },
	"retry":       func(s *scanner, w *wire) { s.raw(&w.Retry) },
	"input":       func(s *scanner, w *wire) { s.raw(&w.Input) },
	"output":      func(s *scanner, w *wire) { s.raw(&w.Output) },
	"failure":     func(s *scanner, w *wire) { s.other(&w.Failure) },
	"queue":       func(s *scanner, w *wire) { s.text(&w.Queue) },
	"priority":    func(s *scanner, w *wire) { s.number(&w.Priority) },
	"by":          func(s *scanner, w *wire) { s.text(&w.By) },
	"kind":        func(s *scanner, w *wire) { s.text(&w.Kind) },
	"name":        func(s *scanner, w *wire) { s.text(&w.Name) },
	"detached":    func(s *scanner, w *wire) { s.flag(&w.Detached) },
	"lost":        func(s *scanner, w *wire) { s.flag(&w.Lost) },
	"attempt":     func(s *scanner, w *wire) { s.number(&w.Attempt) },
	"crashes":     func(s *scanner, w *wire) { s.number(&w.Crashes) },
	"fence":       func(s *scanner, w *wire) { s.long(&w.Fence) },
	"owner":       func(s *scanner, w *wire) { s.text(&w.Owner) },
	"code":        func(s *scanner, w *wire) { s.text(&w.Code) },
	"text":        func(s *scanner, w *wire) { s.text(&w.Text) },
	"at":          func(s *scanner, w *wire) { s.time(&w.At) },
	"due":         func(s *scanner, w *wire) { s.time(&w.Due) },
	"lease":       func(s *scanner, w *wire) { s.time(&w.Lease) },
	"step":        func(s *scanner, w *wire) { s.id(w.Step.UnmarshalText) },
	"event":       func(s *scanner, w *wire) { s.id(w.Event.UnmarshalText) },
	"child":       func(s *scanner, w *wire) { s.id(w.Child.UnmarshalText) },
	"caller":      func(s *scanner, w *wire) { s.id(w.Caller.UnmarshalText) },
	"target":      func(s *scanner, w *wire) { s.text(&w.Target) },
	"topic":       func(s *scanner, w *wire) { s.flag(&w.Topic) },
	"copied":      func(s *scanner, w *wire) { s.flag(&w.Copied) },
	"run":         func(s *scanner, w *wire) { s.number(&w.Run) },
	"started":     func(s *scanner, w *wire) { s.time(&w.Started) },
	"ended":       func(s *scanner, w *wire) { s.time(&w.Ended) },
	"keep":        func(s *scanner, w *wire) { s.time(&w.Keep) },
}

// skip skips a byte if it is the next one.
func (s *scanner) skip(b byte) bool {
	if s.at < len(s.data) && s.data[s.at] == b {
		s.at++
		return true
	}
	return false
}

// After the first mismatch the scanner reads nothing: all its functions return at once, and one test at the end is
// enough.
func (s *scanner) expect(b byte) {
	if !s.skip(b) {
		s.odd = true
	}
}

// quoted reads a string without escapes and non-ASCII bytes, without its quotes. For any other string it sets odd.
func (s *scanner) quoted() []byte {
	s.expect('"')
	from := s.at
	for ; !s.odd && s.at < len(s.data); s.at++ {
		switch b := s.data[s.at]; {
		case b == '"':
			s.at++
			return s.data[from : s.at-1]
		case b == '\\' || b < ' ' || b >= 0x80:
			s.odd = true
		}
	}
	s.odd = true
	return nil
}

// text reads any string.
func (s *scanner) text(to *string) {
	if s.odd {
		return
	}
	from := s.at
	text := s.quoted()
	switch {
	case s.odd && from < len(s.data) && s.data[from] == '"':
		s.at, s.odd = from, false
		s.other(to)
	case len(text) > longWord:
		*to = string(text)
	default:
		*to = s.known(text)
	}
}

// known returns a short string, and allocates it only once. When there are too many, all are dropped at once: those that
// are still in use are soon there again.
func (s *scanner) known(text []byte) string {
	if k, ok := s.word[string(text)]; ok {
		return k
	}
	if len(s.word) >= maxWords {
		clear(s.word)
	}
	k := string(text)
	s.word[k] = k
	return k
}

// id reads an id. Its length is checked here, since UnmarshalText accepts an empty text, which is never written.
func (s *scanner) id(set func(text []byte) error) {
	if text := s.quoted(); len(text) != len("00000000-0000-0000-0000-000000000000") || set(text) != nil {
		s.odd = true
	}
}

// long reads an integer. JSON allows no leading zero, and a fraction or an exponent is never written: the text that
// follows the digits then does not match, and encoding/json decides.
func (s *scanner) long(to *int64) {
	from := s.at
	for s.at < len(s.data) && (s.data[s.at] == '-' || s.data[s.at] >= '0' && s.data[s.at] <= '9') {
		s.at++
	}
	n := s.data[from:s.at]
	digits := bytes.TrimPrefix(n, []byte("-"))
	v, err := strconv.ParseInt(string(n), 10, 64)
	*to, s.odd = v, s.odd || err != nil || digits[0] == '0' && len(n) > 1
}

// number reads an integer that must fit an int, which has 32 bits on some machines.
func (s *scanner) number(to *int) {
	var n int64
	s.long(&n)
	*to = int(n)
	s.odd = s.odd || int64(*to) != n
}

func (s *scanner) time(to *micros) {
	var n int64
	s.long(&n)
	*to = micros(FromMicros(n))
}

// flag reads true; false is never written.
func (s *scanner) flag(to *bool) {
	if *to = bytes.HasPrefix(s.data[s.at:], []byte("true")); *to {
		s.at += len("true")
		return
	}
	s.odd = true
}

// strings reads a list of strings. The scanner reuses it for the next change.
func (s *scanner) strings(to *[]string) {
	from := len(s.list)
	s.expect('[')
	for first := true; !s.odd && !s.skip(']'); first = false {
		if !first {
			s.expect(',')
		}
		var text string
		s.text(&text)
		s.list = append(s.list, text)
	}
	*to = s.list[from:len(s.list):len(s.list)]
}

// raw reads a payload. It is copied, since an item can live longer than the entry.
func (s *scanner) raw(to *json.RawMessage) {
	value := s.value()
	if s.odd = s.odd || !json.Valid(value); !s.odd {
		*to = bytes.Clone(value)
	}
}

// other decodes rare fields with encoding/json.
func (s *scanner) other(to any) {
	value := s.value()
	s.odd = s.odd || json.Unmarshal(value, to) != nil
}

// value finds the end of a value, without checking it: it counts brackets outside of strings, so that a payload of any
// form is passed over in one pass.
//
//	"input":{"a":[1,"]"]},"at":1
//	        └──────────┘        the comma at depth 0 ends it; the bracket in quotes does not count
func (s *scanner) value() []byte {
	from, depth, quoted := s.at, 0, false
	for ; s.at < len(s.data); s.at++ {
		b := s.data[s.at]
		switch {
		case quoted:
			if b == '\\' {
				s.at++
			} else if b == '"' {
				quoted = false
			}
			continue
		case b == '"':
			quoted = true
			continue
		case b == '{' || b == '[':
			depth++
			continue
		case depth == 0 && (b == ',' || b == '}' || b == ']'):
			return bytes.Trim(s.data[from:s.at], " \t\r\n")
		case b == '}' || b == ']':
			depth--
		}
	}
	s.odd = true
	return nil
}
