package retry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Changes changes a policy field by field, as data that can be stored and sent. A nil field keeps that of the policy; the zero
// value changes nothing.
//
//	attempts := 6
//	p := retry.Changes{Attempts: &attempts}.Of(retry.Exponential(3, time.Second)) // 6 attempts, exponential 1s x2
type Changes struct {
	Attempts   *int            `json:"attempts,omitempty"`
	Backoff    *Backoff        `json:"backoff,omitempty"` // its name
	Initial    *time.Duration  `json:"initial,omitempty"` // in nanoseconds, as all durations
	Base       *float64        `json:"base,omitempty"`
	Waits      []time.Duration `json:"waits,omitempty"` // also sets Backoff to BackoffTable
	MaxWait    *time.Duration  `json:"maxWait,omitempty"`
	MaxElapsed *time.Duration  `json:"maxElapsed,omitempty"`
	Jitter     *Jitter         `json:"jitter,omitempty"` // its name
	Spread     *float64        `json:"spread,omitempty"`
}

// Of returns the policy with the changes. What only the former backoff or jitter used (Waits, Spread) is dropped with it. The
// result need not be valid, see [Policy.Validate]; in particular, changed waits of a policy without retries are not used.
func (c Changes) Of(p Policy) Policy {
	set(&p.Attempts, c.Attempts)
	if set(&p.Backoff, c.Backoff); p.Backoff != BackoffTable {
		p.Waits = nil
	}
	if c.Waits != nil {
		p.Waits = slices.Clone(c.Waits)
		if c.Backoff == nil {
			p.Backoff = BackoffTable
		}
	}
	set(&p.Initial, c.Initial)
	set(&p.Base, c.Base)
	set(&p.MaxWait, c.MaxWait)
	set(&p.MaxElapsed, c.MaxElapsed)
	if set(&p.Jitter, c.Jitter); p.Jitter != JitterProportional {
		p.Spread = 0
	}
	set(&p.Spread, c.Spread)
	return p
}

func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// Then returns the changes followed by others: of a field that both set, the others' value.
func (c Changes) Then(others Changes) Changes {
	if others.Backoff != nil {
		c.Waits = nil
	}
	if others.Waits != nil {
		c.Backoff, c.Waits = nil, others.Waits
	}
	if others.Jitter != nil {
		c.Spread = nil
	}
	c.Attempts, c.Backoff = later(c.Attempts, others.Attempts), later(c.Backoff, others.Backoff)
	c.Initial, c.Base = later(c.Initial, others.Initial), later(c.Base, others.Base)
	c.MaxWait, c.MaxElapsed = later(c.MaxWait, others.MaxWait), later(c.MaxElapsed, others.MaxElapsed)
	c.Jitter, c.Spread = later(c.Jitter, others.Jitter), later(c.Spread, others.Spread)
	return c
}

func later[T any](first, then *T) *T {
	if then != nil {
		return then
	}
	return first
}

// String lists what is changed, such as "6 attempts, first wait 2s, at most 1m0s"; "nothing" for the zero value.
func (c Changes) String() string {
	var words []string
	add := func(given bool, format string, value func() any) {
		if given {
			words = append(words, fmt.Sprintf(format, value()))
		}
	}
	if c.Attempts != nil {
		words = append(words, attempts(*c.Attempts))
	}
	add(c.Backoff != nil, "%v", func() any { return *c.Backoff })
	add(c.Initial != nil, "first wait %v", func() any { return *c.Initial })
	add(c.Base != nil, "base %v", func() any { return *c.Base })
	add(c.Waits != nil, "waits %v", func() any { return c.Waits })
	add(c.MaxWait != nil, "at most %v", func() any { return *c.MaxWait })
	add(c.MaxElapsed != nil, "within %v", func() any { return *c.MaxElapsed })
	add(c.Jitter != nil, "%v jitter", func() any { return *c.Jitter })
	add(c.Spread != nil, "spread %v", func() any { return *c.Spread })
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// MarshalText returns the name. The error wraps [ErrInvalid] for a value that is none of the constants.
func (b Backoff) MarshalText() ([]byte, error) {
	if int(b) >= len(backoffs) {
		return nil, fmt.Errorf("%w: %v is no backoff", ErrInvalid, b)
	}
	return []byte(b.String()), nil
}

// UnmarshalText parses a name. The error wraps [ErrInvalid].
func (b *Backoff) UnmarshalText(text []byte) error {
	i := slices.Index(backoffs, string(text))
	if i < 0 {
		return fmt.Errorf("%w: %q is no backoff: use %s", ErrInvalid, text, strings.Join(backoffs, ", "))
	}
	*b = Backoff(i)
	return nil
}

// MarshalText returns the name. The error wraps [ErrInvalid] for a value that is none of the constants.
func (j Jitter) MarshalText() ([]byte, error) {
	if int(j) >= len(jitters) {
		return nil, fmt.Errorf("%w: %v is no jitter", ErrInvalid, j)
	}
	return []byte(j.String()), nil
}

// UnmarshalText parses a name. The error wraps [ErrInvalid].
func (j *Jitter) UnmarshalText(text []byte) error {
	i := slices.Index(jitters, string(text))
	if i < 0 {
		return fmt.Errorf("%w: %q is no jitter: use %s", ErrInvalid, text, strings.Join(jitters, ", "))
	}
	*j = Jitter(i)
	return nil
}
