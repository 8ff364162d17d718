package workitem

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Take is what a step takes of one limit.
type Take struct {
	Limit string `json:"limit"`         // its name
	Key   string `json:"key,omitempty"` // whose limit it is; "" is the one that all share
	N     int64  `json:"n"`             // how much
}

// String returns "3 of tokens", or "1 of customers (of acme)".
func (t Take) String() string {
	if t.Key == "" {
		return fmt.Sprintf("%d of %s", t.N, t.Limit)
	}
	return fmt.Sprintf("%d of %s (of %s)", t.N, t.Limit, t.Key)
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
