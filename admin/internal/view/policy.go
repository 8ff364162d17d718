package view

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// policyFields are the fields of forms that change the retry policy of what is tried again. An empty one keeps that of the policy.
var policyFields = []field{
	{Advanced: true, Name: "attempts", Label: "Attempts", Hint: "How many there are in all from now on, for this work and its retries. Empty fields of the retry policy stay as they are."},
	{Advanced: true, Name: "backoff", Label: "Backoff", Hint: "How the waits between attempts grow.", Options: []string{"", "exponential", "constant", "linear", "fibonacci", "table"}},
	{Advanced: true, Name: "wait", Label: "First wait", Hint: "10s, 5m or 1h."},
	{Advanced: true, Name: "base", Label: "Base", Hint: "The factor between exponential waits, such as 2."},
	{Advanced: true, Name: "waits", Label: "Waits", Hint: "The waits themselves, as in 1s, 10s, 5m."},
	{Advanced: true, Name: "maxWait", Label: "Longest wait", Hint: "0 is no limit."},
	{Advanced: true, Name: "maxElapsed", Label: "Time for all attempts", Hint: "From the first attempt to the start of the last one; 0 is no limit."},
	{Advanced: true, Name: "jitter", Label: "Jitter", Hint: "How the waits are randomized.", Options: []string{"", "none", "full", "equal", "proportional"}},
	{Advanced: true, Name: "spread", Label: "Spread", Hint: "By which share proportional jitter changes a wait, such as 0.1."},
}

// repairFields returns the fields of a repair that tries work again.
func repairFields(fields ...field) []field { return slices.Concat(fields, policyFields) }

// readPolicy sets the changes of the retry policy of a filled form.
func readPolicy(c *workflow.Command, form url.Values) error {
	var p retry.Changes
	var problem error
	read := func(name string, parse func(text string) error) {
		text := strings.TrimSpace(form.Get(name))
		if text == "" || problem != nil {
			return
		}
		c.Retry = &p
		if err := parse(text); err != nil {
			problem = &fieldError{name, fmt.Errorf("%q is not valid: %w: %w", text, err, workflow.ErrBadCommand)}
		}
	}
	read("attempts", func(text string) error { return parsed(&p.Attempts, text, strconv.Atoi) })
	read("backoff", func(text string) error { p.Backoff = new(retry.Backoff); return p.Backoff.UnmarshalText([]byte(text)) })
	read("wait", func(text string) error { return parsed(&p.Initial, text, time.ParseDuration) })
	read("base", func(text string) error { return parsed(&p.Base, text, parseFloat) })
	read("waits", func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			var wait *time.Duration
			if err := parsed(&wait, strings.TrimSpace(part), time.ParseDuration); err != nil {
				return err
			}
			p.Waits = append(p.Waits, *wait)
		}
		return nil
	})
	read("maxWait", func(text string) error { return parsed(&p.MaxWait, text, time.ParseDuration) })
	read("maxElapsed", func(text string) error { return parsed(&p.MaxElapsed, text, time.ParseDuration) })
	read("jitter", func(text string) error { p.Jitter = new(retry.Jitter); return p.Jitter.UnmarshalText([]byte(text)) })
	read("spread", func(text string) error { return parsed(&p.Spread, text, parseFloat) })
	return problem
}

func parsed[T any](into **T, text string, parse func(string) (T, error)) error {
	value, err := parse(text)
	*into = &value
	if errors.Is(err, strconv.ErrSyntax) {
		err = errors.New("give a number")
	}
	return err
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
