package fakechat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode is a way to answer a request.
type Mode uint8

// The modes. The zero value is the healthy one, which a script may use for a good answer between bad ones.
const (
	Healthy    Mode = iota // "ok": the generated text
	Limited                // "limit": 429 with a Retry-After of Wait, and code "rate_limit_exceeded"
	Failing                // "error": 500
	Refusing               // "refuse": 400, which no retry corrects
	Hanging                // "hang": no answer until the client goes; after Wait, 504
	Slow                   // "slow": the generated text, after Wait
	Cut                    // "cut": half of a good answer, then the connection is closed
	Dropped                // "drop": the connection is closed without an answer
	BadJSON                // "garbage": 200 with half a JSON document that claims to be whole
	WrongShape             // "shape": 200 with the JSON of another protocol
	Empty                  // "empty": 200 with no choices
)

// modes gives each mode its name, its status (0 for none), and its Wait where a fault says none.
var modes = [...]struct {
	name   string
	status int
	wait   time.Duration
}{
	Healthy:    {"ok", 200, 0},
	Limited:    {"limit", 429, time.Second},
	Failing:    {"error", 500, 0},
	Refusing:   {"refuse", 400, 0},
	Hanging:    {"hang", 0, 30 * time.Second},
	Slow:       {"slow", 200, 2 * time.Second},
	Cut:        {"cut", 200, 0},
	Dropped:    {"drop", 0, 0},
	BadJSON:    {"garbage", 200, 0},
	WrongShape: {"shape", 200, 0},
	Empty:      {"empty", 200, 0},
}

// String returns the name that [ParseFaults] reads.
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m].name
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Fault is one prescribed answer. The zero value is a healthy one.
type Fault struct {
	// Mode is what happens.
	Mode Mode
	// Wait is how long: what Limited asks for (in whole seconds, rounded up), what Slow waits, and when Hanging gives
	// up. Default 1s, 2s and 30s. Other modes take no time.
	Wait time.Duration
	// Date makes Limited say when, with an HTTP date, instead of how long. Both are in use.
	Date bool
}

// String returns the notation that [ParseFaults] reads, such as "limit 2s date".
func (f Fault) String() string {
	s := f.Mode.String()
	if f.Wait != 0 {
		s += " " + f.Wait.String()
	}
	if f.Date {
		s += " date"
	}
	return s
}

// wait is how long the fault takes.
func (f Fault) wait() time.Duration {
	if f.Wait == 0 {
		return modes[f.Mode].wait
	}
	return f.Wait
}

// check finds what keeps a fault from being an answer.
func (f Fault) check() error {
	switch {
	case int(f.Mode) >= len(modes):
		return fmt.Errorf("there is no such mode; use one of %s", names())
	case f.Wait < 0:
		return errors.New("a wait cannot be negative")
	case f.Wait > 0 && modes[f.Mode].wait == 0:
		return fmt.Errorf("%v takes no time; only limit, hang and slow do", f.Mode)
	case f.Date && f.Mode != Limited:
		return fmt.Errorf("%v has no date; only limit does", f.Mode)
	}
	return nil
}

// checkAll finds the first fault that is wrong.
func checkAll(faults []Fault) error {
	for _, f := range faults {
		if err := f.check(); err != nil {
			return fmt.Errorf("fault %q: %w", f, err)
		}
	}
	return nil
}

// ParseFaults reads a script: faults with commas between, each the name of a mode, then a wait and "date" where wanted.
//
//	limit 2s, error, cut, ok, hang 5s, limit 30s date
//
// A blank script is empty. The error says which fault cannot be read and which modes there are.
func ParseFaults(script string) ([]Fault, error) {
	if strings.TrimSpace(script) == "" {
		return nil, nil
	}
	var faults []Fault
	for part := range strings.SplitSeq(script, ",") {
		f, err := parseFault(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", strings.TrimSpace(part), err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(words []string) (f Fault, err error) {
	if len(words) == 0 {
		return f, fmt.Errorf("a mode is missing between commas; use one of %s", names())
	}
	if f.Mode, err = parseMode(words[0]); err != nil {
		return f, err
	}
	for _, w := range words[1:] {
		if w == "date" {
			f.Date = true
		} else if f.Wait, err = time.ParseDuration(w); err != nil {
			return f, fmt.Errorf("%q is neither a duration, such as 2s, nor \"date\"", w)
		}
	}
	return f, f.check()
}

func parseMode(name string) (Mode, error) {
	for m := range modes {
		if modes[m].name == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("there is no mode %q; use one of %s", name, names())
}

func names() string {
	var all []string
	for _, m := range modes {
		all = append(all, m.name)
	}
	return strings.Join(slices.Sorted(slices.Values(all)), ", ")
}
