package view

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// group is a set of incidents with one cause: the same task of a workflow, kind and failure code. A bulk action on a
// group selects by these.
type group struct {
	Workflow, Task, Kind, Code string
	Where                      string // the workflow and its task
	Since, Last                time.Time

	missing  []*store.Incident // of definitions; the group has either these or heads
	heads    []*openHead
	message  string         // of the first incident
	differ   bool           // there are other messages
	patterns map[string]int // of the messages, with their counts
	shown    []incident     // the first ones; see [Site.readShown]
}

// n is the number of incidents of the group.
func (g *group) n() int { return len(g.missing) + len(g.heads) }

// filter returns the parameters of the list of incidents that select the group within a filter. Without a task or a
// code, they select incidents that have none.
func (g *group) filter(within url.Values) url.Values {
	v := url.Values{}
	maps.Copy(v, within)
	v["workflow"], v["task"], v["kind"], v["code"] = []string{g.Workflow}, []string{g.Task}, []string{g.Kind}, []string{g.Code}
	return v
}

// incidentGroups groups incidents by cause, the largest groups first. whole is false if there are more open incidents than were
// examined.
func (s *Site) incidentGroups(r *Request, f store.IncidentFilter, here why.Here) (groups []*group, whole bool, err error) {
	missing, err := why.MissingDefinitions(r, r.R, f, here, r.Now)
	if err != nil {
		return nil, false, err
	}
	heads, whole, err := s.openHeads(r, f)
	if err != nil {
		return nil, false, err
	}
	type key struct{ workflow, task, kind, code string }
	byCause := make(map[key]*group)
	add := func(h *openHead) *group {
		k := key{h.Workflow, h.Task, h.Kind, h.Code}
		g := byCause[k]
		if g == nil {
			g = &group{Workflow: k.workflow, Task: k.task, Kind: k.kind, Code: k.code, Where: k.workflow, Since: h.Since, message: h.Message,
				patterns: make(map[string]int)}
			if k.task != "" {
				g.Where += "/" + k.task
			}
			byCause[k] = g
			groups = append(groups, g)
		}
		g.Last, g.differ = h.Since, g.differ || h.Message != g.message
		g.patterns[h.pattern]++
		return g
	}
	for _, i := range missing {
		g := add(newHead(store.IncidentHead{Workflow: i.Definition.Workflow, Kind: i.Kind, Code: i.Failure.Code, Message: i.Failure.Message, Since: i.Since}))
		g.missing = append(g.missing, i)
	}
	for _, h := range heads {
		g := add(h)
		g.heads = append(g.heads, h)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return b.n() - a.n() })
	return groups, whole, nil
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

// cause says on one line what the incidents have in common: the code, and the message if all have the same. Otherwise
// it is the pattern that most messages share, such as "no funds for …".
func (g *group) cause() string {
	code := g.Code
	if code == "" {
		code = g.Kind
	}
	most := g.message
	if g.differ {
		most = ""
		for text, n := range g.patterns {
			if best := g.patterns[most]; n > best || n == best && text < most {
				most = text
			}
		}
	}
	if most != "" {
		code += ": " + most
	}
	switch others := len(g.patterns) - 1; others {
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
	ticks   map[workitem.JobID]bool // the shown incidents for which one of them works
	lacking selection.Lacking       // those that cannot be retried
	least   bool                    // more of them may be lacking
}

// offered returns what is offered for a group. Each incident that is shown is examined; of the others, only whether the definition of
// its case is missing.
func (g *group) offered(r *Request, m *selection.Missing) (*offers, error) {
	o := &offers{ticks: make(map[workitem.JobID]bool)}
	rest := g.heads[min(len(g.shown), len(g.heads)):]
	for k, word := range g.words() {
		works := false
		for _, in := range g.shown {
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
		for _, h := range rest {
			switch lack := m.Definition(h.Fingerprint); {
			case lack == nil || !g.shown[0].Child.IsZero(): // that of the child case counts
				works, o.least = true, m != nil
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
		if o.least {
			those = "At least " + those
		}
	}
	return fmt.Sprintf("%s cannot be retried: no open engine has workflow %s. Open a program with it.", those, o.lacking.Names())
}

// kindWords names a kind of incidents for those who do not know the kinds.
func kindWords(kind string) string {
	switch kind {
	case state.IncidentAttempts:
		return "no attempt is left"
	case state.IncidentRunaway:
		return "loop without a way out"
	case state.IncidentOrJoin:
		return "undecided or-join"
	}
	return kind
}
