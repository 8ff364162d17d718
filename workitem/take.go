package workitem

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
)

// Take is what a step takes of one limit.
type Take struct {
	Limit string   `json:"limit"`         // its name
	Key   string   `json:"key,omitempty"` // whose limit it is; "" is the one that all share
	Any   []string `json:"any,omitempty"` // in place of Key: whose, of which any will do
	N     int64    `json:"n"`             // how much
}

// Equal reports whether two takes ask for the same.
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

// Needs says for people what a step that waits for limits needs of them: "3 of tokens and 1 of customers (of acme)".
func (s *Step) Needs() string {
	takes := s.Takes()
	texts := make([]string, len(takes))
	for i, t := range takes {
		texts[i] = t.String()
	}
	return strings.Join(texts, " and ")
}

// Limited reports whether a step waits until its limits have room for the call of its function. Its Due is since when.
func (s *Step) Limited() bool {
	return s.Kind == StepDo && s.State == StepWaiting && len(s.Result) > 0
}

// Takes lists what a step that waits for limits needs of them; nothing of any other step.
func (s *Step) Takes() []Take {
	var all []Take
	if !s.Limited() || json.Unmarshal(s.Result, &all) != nil {
		return nil
	}
	return all
}
