package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Within resolves the parameter case: a root case with all its descendants, or a single child case. The error wraps
// [store.ErrNotFound] if there is no such case.
func Within(ctx context.Context, r store.Finder, id workitem.CaseID) (root, alone workitem.CaseID, err error) {
	if id.IsZero() {
		return root, alone, nil
	}
	found, err := r.Cases(ctx, store.CaseFilter{ID: id})
	switch {
	case err != nil:
		return root, alone, err
	case len(found) == 0:
		return root, alone, fmt.Errorf("case %s: %w", id, store.ErrNotFound)
	case found[0].Parent.IsZero():
		return id, alone, nil
	}
	return root, id, nil
}

// RootOf finds the root case of a case; the zero id of the zero id.
func RootOf(ctx context.Context, r store.Finder, id workitem.CaseID) (workitem.CaseID, error) {
	if id.IsZero() {
		return id, nil
	}
	return store.RootOfCase(ctx, r, id)
}

// Case reads the case to which a list is restricted.
func (q *Query) Case() (id workitem.CaseID) {
	key(q, "case", &id)
	return id
}

// Root reads the root case to which a stream is restricted.
func (q *Query) Root() (id workitem.CaseID) {
	key(q, "root", &id)
	return id
}

// Cases reads a filter of cases, without the page and the case.
func (q *Query) Cases() store.CaseFilter {
	return store.CaseFilter{Workflow: q.Text("workflow"), Fingerprint: q.Text("fingerprint"),
		States: words(q, "state", state.ParseCaseState), RootOnly: q.Flag("root-only"), Suspended: q.Flag("suspended"), Code: q.optional("code"), Key: q.Text("key"), Labels: q.Labels(), Before: q.Bound("older"), Since: q.Bound("newer")}
}

// Search reads the text to search for in payloads.
func (q *Query) Search() store.Search { return store.Search{Payload: q.Text("payload")} }

// Labels reads the parameter label=name=value, which may be repeated.
func (q *Query) Labels() map[string]string {
	var all map[string]string
	for _, text := range q.all("label") {
		name, value, found := strings.Cut(text, "=")
		if !found || workflow.CheckLabelName(name) != nil || workflow.CheckText("label", value) != nil {
			q.fail("label", "is a name and a value, as in customer=ada")
			continue
		}
		if all == nil {
			all = make(map[string]string)
		}
		if before, twice := all[name]; twice && before != value {
			q.fail("label", "gives %s two values, and no case has both", name)
		}
		all[name] = value
	}
	return all
}

// Items reads a filter of work items.
func (q *Query) Items() store.ItemFilter {
	return store.ItemFilter{Workflow: q.Text("workflow"), Task: q.Text("task"), Queue: q.optional("queue"),
		States: words(q, "state", workitem.ParseState), Holder: q.Text("holder"), Attempt: int(min(q.Number("attempt"), 1<<30)), Code: q.optional("code"),
		Before: q.Bound("older"), Since: q.Bound("newer")}
}

// JobKinds are the values of the parameter kind for jobs.
var JobKinds = []string{state.JobRun, state.JobTimer, state.JobWake, state.JobCall, state.JobStart, state.JobHandler, state.JobIncident}

// Jobs reads a filter of jobs.
func (q *Query) Jobs() store.JobFilter {
	f := store.JobFilter{Workflow: q.Text("workflow"), Task: q.Text("task"), Kind: q.word("kind", JobKinds), Queue: q.optional("queue"),
		States: words(q, "state", state.ParseJobState)}
	key(q, "item", &f.Item)
	if text := q.Text("due"); text != "" {
		d, err := Age(text)
		if err != nil {
			q.fail("due", "is a time from now such as 0s, 5m, 2h or 3d")
		}
		f.Due = q.now.Add(d)
	}
	return f
}

// Steps reads a filter of steps.
func (q *Query) Steps() store.StepFilter {
	f := store.StepFilter{Kind: workitem.StepKind(q.Text("kind")), Target: q.Text("target"), States: words(q, "state", workitem.ParseStepState)}
	key(q, "item", &f.Item)
	key(q, "job", &f.Job)
	return f
}

// Messages reads a filter of events.
func (q *Query) Messages() store.MessageFilter {
	return store.MessageFilter{Name: q.Text("name"), Unread: q.Flag("unread")}
}

// Incidents reads a filter of incidents. An empty task or code selects those that have none.
func (q *Query) Incidents() store.IncidentFilter {
	return store.IncidentFilter{Workflow: q.Text("workflow"), Task: q.optional("task"), Kind: q.word("kind", state.IncidentKinds), Code: q.optional("code"),
		Before: q.Bound("older"), Since: q.Bound("newer"), Key: q.Text("key"), Labels: q.Labels()}
}

// Failures reads a filter of failures, and the part by which they are grouped; nil for all parts.
func (q *Query) Failures() (f store.FailureFilter, by func(store.FailureGroup) store.FailureGroup) {
	f = store.FailureFilter{Workflow: q.Text("workflow"), Task: q.Text("task"), Code: q.Text("code"), Before: q.Bound("older"), Since: q.Bound("newer")}
	return f, store.FailuresBy[q.word("by", slices.Sorted(maps.Keys(store.FailuresBy)))]
}

// Rates reads a filter of rates. "by" selects the same as the flag of the command: by=hour is hourly, by=workflow is cases.
func (q *Query) Rates() store.RateFilter {
	f := store.RateFilter{Workflow: q.Text("workflow"), Task: q.Text("task"), Before: q.Bound("older"), Since: q.Bound("newer"), Hourly: q.Flag("hourly"), Cases: q.Flag("cases")}
	switch q.word("by", []string{"workflow", "task", "hour"}) {
	case "workflow":
		f.Cases = true
	case "hour":
		f.Hourly = true
	}
	return f
}

// LogFormat reads the format of an event log. Default: OCEL.
func (q *Query) LogFormat() eventlog.Format {
	text := q.Text("format")
	if text == "" {
		return eventlog.OCEL
	}
	f, err := eventlog.ParseFormat(text)
	if err != nil {
		q.fail("format", "is ocel or xes")
	}
	return f
}

// History reads a filter of the history of a case. after and until are bounds, whatever the order.
func (q *Query) History() (f store.JournalFilter, newest bool) {
	f = q.entries()
	f.After, f.Until = q.Number("after"), q.Number("until")
	return f, q.Flag("newest")
}

// Acts reads a filter of the commands with an actor, newest first.
func (q *Query) Acts() store.JournalFilter {
	f := q.entries()
	f.After, f.Named, f.Desc = q.Number("before"), true, true
	return f
}

func (q *Query) entries() store.JournalFilter {
	return store.JournalFilter{Limit: int(min(q.Number("limit"), MaxLimit)), By: q.Text("by"), Command: q.Text("command"), Before: q.Bound("older"), Since: q.Bound("newer")}
}

// Moment reads a position of the journal; the zero value is the present.
func (q *Query) Moment() store.Moment { return store.Moment{Seq: q.Number("at")} }

func (q *Query) word(name string, known []string) string {
	text := q.Text(name)
	if text != "" && !slices.Contains(known, text) {
		q.fail(name, "has no word %q; %s", text, spelling.Hint(text, known))
	}
	return text
}

// Only rejects parameters with other names, since a list with a misspelled filter would have all rows.
func (q *Query) Only(names ...string) {
	for name := range q.v {
		if !slices.Contains(names, name) {
			if len(names) == 0 {
				q.fail(name, "is not known here: this address takes none")
				continue
			}
			q.fail(name, "is not known here; there is %s", strings.Join(names, ", "))
		}
	}
}
