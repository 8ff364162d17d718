package workitem

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
)

// Take is what a step acquires of one limit.
type Take struct {
	Limit string   `json:"limit"`         // its name
	Key   string   `json:"key,omitempty"` // the key of the limit; "" for a limit without keys
	Any   []string `json:"any,omitempty"` // the keys of a pool, instead of Key
	N     int64    `json:"n"`             // how much
}

// Equal reports whether two takes are equal.
func (t Take) Equal(other Take) bool {
	return t.Limit == other.Limit && t.Key == other.Key && t.N == other.N && slices.Equal(t.Any, other.Any)
}

// String returns "3 of tokens", "1 of customers (of acme)", or "1 of calls (of key-1 or key-2)".
func (t Take) String() string {
	whose := t.Key
	if len(t.Any) > 0 {
		whose = printable.Choice(t.Any)
	}
	if whose == "" {
		return fmt.Sprintf("%d of %s", t.N, t.Limit)
	}
	return fmt.Sprintf("%d of %s (of %s)", t.N, t.Limit, whose)
}

// Needs describes what a step that waits for limits needs: "3 of tokens and 1 of customers (of acme)".
func (s *Step) Needs() string {
	takes := s.Takes()
	texts := make([]string, len(takes))
	for i, t := range takes {
		texts[i] = t.String()
	}
	return strings.Join(texts, " and ")
}

// Limited reports whether the step waits for limits before its function is called. Due is then the time since when it
// waits.
func (s *Step) Limited() bool {
	return s.Kind == StepDo && s.State == StepWaiting && len(s.Result) > 0
}

// Takes returns what a step that waits for limits needs; nil for any other step.
func (s *Step) Takes() []Take {
	var all []Take
	if !s.Limited() || json.Unmarshal(s.Result, &all) != nil {
		return nil
	}
	return all
}
