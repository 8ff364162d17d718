package view

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// group is a set of incidents with one cause: the same task of a workflow, kind and failure code. A bulk action on a
// group selects by these.
type group struct {
	Workflow, Task, Kind, Code string
	Where                      string // the workflow and its task
	Since, Last                Cell
	All                        []incident
	texts                      map[string]int // the messages of the failures, with their counts
}

// filter returns the parameters of the list of incidents that select the group within a filter. Without a task or a
// code, they select incidents that have none.
func (g *group) filter(within url.Values) url.Values {
	v := url.Values{}
	maps.Copy(v, within)
	v["workflow"], v["task"], v["kind"], v["code"] = []string{g.Workflow}, []string{g.Task}, []string{g.Kind}, []string{g.Code}
	return v
}

// incident is an incident of a group, with its case.
type incident struct {
	*store.Incident
	of *state.Case
}

// maxGrouped bounds the number of incidents that are read.
const maxGrouped = 10_000

// incidentGroups groups incidents by cause, the largest groups first.
func incidentGroups(r *Request, f store.IncidentFilter, here why.Here) ([]*group, error) {
	f.Limit = maxGrouped
	type key struct{ workflow, task, kind, code string }
	byCause := make(map[key]*group)
	cases := make(map[workitem.CaseID]*state.Case)
	var groups []*group
	for found, err := range why.Incidents(r, store.ViewerOf(r.R), f, here, r.Now) {
		if err != nil {
			return nil, err
		}
		i := incident{r.Mask.Incident(found), nil}
		if i.Definition != nil {
			i.of = &state.Case{Workflow: i.Definition.Workflow}
		} else if i.of, err = caseOf(r, cases, i.Case); err != nil {
			return nil, err
		}
		k := key{i.of.Workflow, i.Task, i.Kind, ""}
		if i.Failure != nil {
			k.code = i.Failure.Code
		}
		g := byCause[k]
		if g == nil {
			g = &group{Workflow: k.workflow, Task: k.task, Kind: k.kind, Code: k.code, Where: k.workflow, Since: at(i.Since), texts: make(map[string]int)}
			if k.task != "" {
				g.Where += "/" + k.task
			}
			byCause[k] = g
			groups = append(groups, g)
		}
		g.Last = at(i.Since)
		g.All = append(g.All, i)
		g.texts[i.message()]++
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return len(b.All) - len(a.All) })
	return groups, nil
}

// caseOf returns a case with the identity that the user may see. It caches cases in known, if that is not nil.
func caseOf(r *Request, known map[workitem.CaseID]*state.Case, id workitem.CaseID) (*state.Case, error) {
	if c := known[id]; c != nil {
		return c, nil
	}
	found, err := r.R.Cases(r, store.CaseFilter{ID: id})
	if err != nil {
		return nil, err
	}
	c := &state.Case{ID: id} // it has been removed meanwhile
	if len(found) > 0 {
		c = r.Mask.Case(found[0])
	}
	if known != nil {
		known[id] = c
	}
	return c, nil
}

// message returns the message of an incident's failure, on one line.
func (i incident) message() string {
	if i.Failure == nil {
		return ""
	}
	return printable.Line(printable.Brief([]byte(i.Failure.Message), 200))
}

// cause says on one line what the incidents have in common: the code, and the message if all have the same. Otherwise
// it is the pattern that most messages share, such as "no funds for …".
func (g *group) cause() string {
	code := g.Code
	if code == "" {
		code = g.Kind
	}
	patterns := make(map[string]int)
	for text, n := range g.texts {
		if len(g.texts) > 1 {
			text = pattern(text)
		}
		patterns[text] += n
	}
	most := ""
	for text, n := range patterns {
		if best := patterns[most]; n > best || n == best && text < most {
			most = text
		}
	}
	if most != "" {
		code += ": " + most
	}
	switch others := len(patterns) - 1; others {
	case 0:
		return code
	case 1:
		return code + " (and another message)"
	default:
		return code + fmt.Sprintf(" (and %d other messages)", others)
	}
}

// pattern returns a message without its variable parts: words with digits, such as numbers, ids and addresses.
func pattern(message string) string {
	words := strings.Fields(message)
	for i, word := range words {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			words[i] = "…"
		}
	}
	return strings.Join(words, " ")
}

// offers are the bulk actions of a group, by their words, that work for one of its incidents at least.
type offers struct {
	words   []string
	ticks   map[workitem.JobID]bool // the incidents for which one of them works
	lacking selection.Lacking       // those that cannot be retried
}

// offered returns what is offered for a group.
func (g *group) offered(r *Request, m *selection.Missing) (*offers, error) {
	o := &offers{ticks: make(map[workitem.JobID]bool)}
	for k, word := range g.words() {
		works := false
		for _, in := range g.All {
			lack, err := m.Incident(r, r.R, in.Incident, word)
			switch {
			case err != nil:
				return nil, err
			case lack == nil:
				works, o.ticks[in.ID] = true, true
			case k == 0:
				o.lacking.Add(lack)
			}
		}
		if works {
			o.words = append(o.words, word)
		}
	}
	return o, nil
}

// lack says what is missing to retry incidents of the group; "" if nothing is.
func (o *offers) lack(all int) string {
	those := "These"
	switch {
	case o.lacking.N == 0:
		return ""
	case all == 1:
		those = "This"
	case o.lacking.N < all:
		those = thousands(int64(o.lacking.N)) + " of these"
	}
	return fmt.Sprintf("%s cannot be retried: no open engine has workflow %s. Open a program with it.", those, o.lacking.Names())
}
