package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Match is something that a word names; see [Find].
type Match struct {
	Kind     string          `json:"kind"`               // "case", "item", "job", "workflow" or "command"
	By       string          `json:"by"`                 // what the word is of it: "id", "key" (a business key), "label", "name" or "idempotency-key"
	ID       string          `json:"id,omitempty"`       // of a case, an item or a job
	Case     workitem.CaseID `json:"case,omitzero"`      // itself, or that of the item or job; of a command the root case
	Workflow string          `json:"workflow,omitempty"` // of a case or an item, or the workflow itself
	Label    string          `json:"label,omitempty"`    // of an item, task.generation.number
	State    string          `json:"state,omitempty"`    // of a case, an item or a job
	Command  string          `json:"command,omitempty"`  // in words
	Seq      int64           `json:"seq,omitempty"`      // the position of the entry of a command in the journal
	At       time.Time       `json:"at,omitzero"`        // when it was created; of a command when it was done
}

// What bounds the answers of [Find].
const (
	MaxMatches  = 50           // of the cases of a business key, or of a label, the newest
	MaxSuffixes = DefaultLimit // of the newest cases and items whose ids are compared with the end of one
	leastSuffix = 4            // bytes of an id
)

// Find lists what a word names: the case, work item or job with that id, and nothing else then; or the newest cases with that business key, or with a
// label as in "customer=ada"; the command with that idempotency key; the workflows whose names begin with it; and the newest cases and items
// whose ids end or begin with it. What shown hides of a case is not found; nil shows all. Spaces around the word
// count if something has a name with them, and else do not.
func Find(ctx context.Context, r Reader, word string, shown func(*state.Case) *state.Case) ([]Match, error) {
	if strings.TrimSpace(word) == "" || !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
		return nil, nil
	}
	f := &finding{ctx: ctx, r: r, shown: shown}
	if err := f.all(word); err != nil || len(f.found) > 0 {
		return f.found, err
	}
	err := f.all(strings.TrimSpace(word))
	return f.found, err
}

// all finds what a word names, spaces included.
func (f *finding) all(word string) error {
	// From the surest match to the vaguest. Only an id ends the search: a word may be the business key of a case and
	// the beginning of the name of a workflow.
	for _, find := range []func(string) error{f.id, f.key, f.label, f.command, f.workflow, f.part} {
		if err := find(word); err != nil || f.whole {
			return err
		}
	}
	return nil
}

// finding is one search.
type finding struct {
	ctx   context.Context
	r     Reader
	shown func(*state.Case) *state.Case
	found []Match
	whole bool // the word is an id
}

// id finds what has the id.
func (f *finding) id(word string) error {
	id, err := workitem.ParseID(word)
	if err != nil || id.IsZero() { // a filter takes the zero id for none
		return nil
	}
	// An id does not say what it is of, so each kind is asked for it.
	cases, err := f.r.Cases(f.ctx, CaseFilter{ID: workitem.CaseID(id)})
	if err != nil {
		return err
	}
	for _, c := range cases {
		f.addCase(c, "id")
	}
	items, err := f.r.Items(f.ctx, ItemFilter{ID: id})
	if err != nil {
		return err
	}
	for _, it := range items {
		f.addItem(it)
	}
	jobs, err := f.r.Jobs(f.ctx, JobFilter{ID: workitem.JobID(id)})
	for _, j := range jobs {
		f.found = append(f.found, Match{Kind: "job", By: "id", ID: j.ID.String(), Case: j.Case, State: j.State.String(), At: j.Created})
	}
	f.whole = len(f.found) > 0
	return err
}

// newest is the page of the newest rows.
func newest(n int) Page { return Page{Limit: n, Desc: true} }

// key finds cases by their business key.
func (f *finding) key(word string) error {
	if (workflow.Identity{Key: word}).Check() != nil {
		return nil // no case can have it
	}
	cases, err := f.r.Cases(f.ctx, CaseFilter{Key: word, Page: newest(MaxMatches)})
	f.addShown(cases, "key", func(c *state.Case) bool { return c.Key == word })
	return err
}

// label finds cases by a label.
func (f *finding) label(word string) error {
	name, value, ok := strings.Cut(word, "=")
	if !ok || value == "" || (workflow.Identity{Labels: map[string]string{name: value}}).Check() != nil {
		return nil
	}
	cases, err := f.r.Cases(f.ctx, CaseFilter{Labels: map[string]string{name: value}, Page: newest(MaxMatches)})
	f.addShown(cases, "label", func(c *state.Case) bool { return c.Labels[name] == value })
	return err
}

// command finds the entry of the journal with an idempotency key.
func (f *finding) command(word string) error {
	e, err := f.r.Answered(f.ctx, word)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	f.found = append(f.found, Match{Kind: "command", By: "idempotency-key", Case: e.Root, Command: e.Command, Seq: e.Seq, At: e.At})
	return nil
}

// workflow finds workflows by the beginning of their names.
func (f *finding) workflow(word string) error {
	defs, err := f.r.Definitions(f.ctx)
	var names []string
	for _, d := range defs {
		// Each version of a workflow has a definition; the name is listed once.
		if strings.HasPrefix(strings.ToLower(d.Name), strings.ToLower(word)) && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
			f.found = append(f.found, Match{Kind: "workflow", By: "name", Workflow: d.Name})
		}
	}
	return err
}

// part finds the newest cases and items by the end of their ids, which the pages show, or by the beginning.
func (f *finding) part(word string) error {
	word = strings.TrimPrefix(strings.ToLower(word), "…")
	// The ellipsis is what pages put before the end of an id, and it is copied with the id. A word with any other
	// character is no part of an id, so no rows are read for it.
	if len(word) < leastSuffix || strings.Trim(word, "0123456789abcdef-") != "" {
		return nil
	}
	is := func(id string) bool { return strings.HasSuffix(id, word) || strings.HasPrefix(id, word) }
	cases, err := f.r.Cases(f.ctx, CaseFilter{Page: newest(MaxSuffixes)})
	if err != nil {
		return err
	}
	for _, c := range cases {
		if is(c.ID.String()) {
			f.addCase(c, "id")
		}
	}
	items, err := f.r.Items(f.ctx, ItemFilter{Page: newest(MaxSuffixes)})
	for _, it := range items {
		if is(it.ID.String()) {
			f.addItem(it)
		}
	}
	return err
}

// addShown adds the cases of which the user sees that they match.
// The test is repeated on what the user sees: if a masked key were found, a user could learn by trying which keys
// there are.
func (f *finding) addShown(cases []*state.Case, by string, matches func(*state.Case) bool) {
	for _, c := range cases {
		seen := c
		if f.shown != nil {
			seen = f.shown(c)
		}
		if matches(seen) {
			f.addCase(c, by)
		}
	}
}

func (f *finding) addCase(c *state.Case, by string) {
	f.found = append(f.found, Match{Kind: "case", By: by, ID: c.ID.String(), Case: c.ID, Workflow: c.Workflow, State: c.State.String(), At: c.Created})
}

func (f *finding) addItem(it *ItemRow) {
	f.found = append(f.found, Match{Kind: "item", By: "id", ID: it.ID.String(), Case: it.Case, Workflow: it.Workflow, Label: it.Label(),
		State: it.State.String(), At: it.Created})
}
