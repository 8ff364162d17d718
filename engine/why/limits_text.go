package why

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workitem"
)

// limits describes the limits that a job waits for: "3 of rate openai, free in 4s for the first of 2 others that go first".
func limits(all []Limit) string {
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.Text + whose(l) + heldBy(l.HeldBy)
		if l.HeldOutside > 0 {
			texts[i] += fmt.Sprintf(", %d held outside of jobs", l.HeldOutside)
		}
		switch {
		case l.Ahead > 0 && l.Free.IsZero():
			texts[i] += ", " + ahead(l.Ahead)
		case l.Ahead > 0: // the time is that of the first one in the line
			texts[i] += firstOf(l.Ahead)
		}
		if l.AheadOutside > 0 {
			texts[i] += fmt.Sprintf(", %d of them outside of jobs", l.AheadOutside)
		}
	}
	return strings.Join(texts, " and ")
}

// firstOf says for which waiting job there will be room, if others are first.
func firstOf(n int) string {
	switch {
	case n == 1:
		return " for the other that goes first"
	case n >= MaxAhead:
		return fmt.Sprintf(" for the first of %d others or more that go first", MaxAhead)
	}
	return fmt.Sprintf(" for the first of %d others that go first", n)
}

// A limit can be held, and waited for, outside of jobs as well; see engine.Limits. There is no case to name then, so only
// the numbers are given.

// heldBy names the first cases that hold a limit: ", held by cases A, B".
func heldBy(cases []workitem.CaseID) string {
	if len(cases) == 0 {
		return ""
	}
	const most = 3
	names := make([]string, min(len(cases), most))
	for i := range names {
		names[i] = cases[i].String()
	}
	text := ", held by case " + names[0]
	if len(cases) > 1 {
		text = ", held by cases " + strings.Join(names, ", ")
	}
	if more := len(cases) - most; more > 0 {
		text += " and " + printable.Plural(more, "other")
	}
	return text
}

// needs describes what a job needs of limits that may have room: " and room for 3 of rate openai".
func needs(w *Wait) string {
	if len(w.Needs) == 0 {
		return ""
	}
	return " and room for " + limits(w.Needs)
}

// whose names the keys of a limit: " (of acme)", or for a pool " (of key-1, key-2 or key-3; key-2 is the first)".
func whose(l Limit) string {
	switch {
	case l.Key == "" && len(l.Any) == 0:
		return ""
	case len(l.Any) == 0:
		return " (of " + l.Key + ")"
	case l.Key == "":
		return " (of " + printable.Choice(l.Any) + ")"
	}
	return " (of " + printable.Choice(l.Any) + "; " + l.Key + " is the first)"
}
