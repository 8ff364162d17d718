package why

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Grace is how long an engine has been open before a definition that no engine has is an incident: while programs are
// replaced, the one with the definition may be about to open.
const Grace = time.Minute

// CodeNotLoaded is the failure code of an incident of the kind [state.IncidentDefinition].
const CodeNotLoaded = "not-loaded"

// Incidents lists the incidents that match: those of [store.Incidents], and one of the kind [state.IncidentDefinition] for each
// definition with live cases that no open engine has, as far as here tells. These have the lowest ids.
//
// They are computed, and not stored: they begin and end with processes, not with commands. See docs/decisions/036.
func Incidents(ctx context.Context, v store.Viewer, f store.IncidentFilter, here Here, now time.Time) iter.Seq2[*store.Incident, error] {
	return func(yield func(*store.Incident, error) bool) {
		var missing []*store.Incident
		err := v.View(ctx, func(r store.Reader) (err error) {
			missing, err = MissingDefinitions(ctx, r, f, here, now)
			return err
		})
		if err != nil {
			yield(nil, err)
			return
		}
		left := f.Limit // of 0, the first incident makes it -1, and it is never 0 again
		give := func(i *store.Incident) bool {
			left--
			return yield(i, nil) && left != 0
		}
		for _, i := range missing {
			if !f.Desc && !give(i) {
				return
			}
		}
		for i, err := range storedIncidents(ctx, v, f, max(left, 0)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !give(i) {
				return
			}
		}
		for _, i := range missing {
			if f.Desc && !give(i) {
				return
			}
		}
	}
}

// storedIncidents lists the incidents that have a job, at most so many; 0 lists all.
func storedIncidents(ctx context.Context, v store.Viewer, f store.IncidentFilter, limit int) iter.Seq2[*store.Incident, error] {
	computed := strings.HasPrefix(f.After, noTime) // the cursor: its incident comes before all jobs
	if f.Kind == state.IncidentDefinition || computed && f.Desc {
		return func(func(*store.Incident, error) bool) {}
	}
	if computed {
		f.After = ""
	}
	f.Limit = limit
	return store.Incidents(ctx, v, f)
}

// noTime is the begin of the ids of incidents of definitions. Other ids begin with the time of their creation, so these come before
// them, and a page ends and begins at these as at any other.
const noTime = "00000000-0000-"

// Unanswered says why a list of incidents may lack those of definitions: [Here.Unknown].
const Unanswered = "no program that has the database open has answered, so it is not known which definitions are missing"

// SelectsDefinitions reports whether a filter can select incidents of the kind [state.IncidentDefinition], which have no task and no item.
func SelectsDefinitions(f store.IncidentFilter) bool {
	return (f.Kind == "" || f.Kind == state.IncidentDefinition) && f.Item.IsZero() && (f.Task == nil || *f.Task == "") &&
		(f.Code == nil || *f.Code == CodeNotLoaded)
}

// MissingDefinitions returns the incidents of [Incidents] that are about definitions, in the order of the filter.
func MissingDefinitions(ctx context.Context, r store.Reader, f store.IncidentFilter, here Here, now time.Time) ([]*store.Incident, error) {
	if !SelectsDefinitions(f) {
		return nil, nil
	}
	here, err := here.WithFleet(ctx, r)
	if err != nil || here.Opened.IsZero() || now.Sub(here.Opened) < Grace {
		return nil, err
	}
	list, err := ReadUnserved(ctx, r, here)
	if err != nil {
		return nil, err
	}
	var found []*store.Incident
	for _, u := range list {
		if f.Workflow != "" && f.Workflow != u.Workflow {
			continue
		}
		oldest, err := r.Cases(ctx, store.CaseFilter{Root: f.Root, Key: f.Key, Labels: f.Labels, Fingerprint: u.Fingerprint, States: []state.CaseState{state.CaseStarted},
			Page: store.Page{Limit: 1}})
		if err != nil {
			return nil, err
		}
		if len(oldest) == 0 {
			continue
		}
		i := missingDefinition(&u, later(here.Opened, oldest[0].Created))
		if (f.Before.IsZero() || i.Since.Before(f.Before)) && !i.Since.Before(f.Since) && follows(i.ID, f.Page) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b *store.Incident) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	if f.Desc {
		slices.Reverse(found)
	}
	return found, nil
}

// NamesDefinition reports whether a text is the id of an incident of the kind [state.IncidentDefinition], or can be the beginning of one. No job has such an
// id.
func NamesDefinition(id string) bool {
	return id != "" && (strings.HasPrefix(id, noTime) || strings.HasPrefix(noTime, id))
}

// follows reports whether an id is behind the cursor of a page.
func follows(id workitem.JobID, p store.Page) bool {
	return p.After == "" || p.Desc && id.String() < p.After || !p.Desc && id.String() > p.After
}

// missingDefinition returns the incident of a definition. Its id is computed, so that it is the same in every process and
// after every restart: links to it, and the cursor of a page, stay valid.
//
//	00000000-0000-xxxx-xxxx-xxxxxxxxxxxx      x: the first 80 bits of the hash of the fingerprint
func missingDefinition(u *Unserved, since time.Time) *store.Incident {
	i := &store.Incident{Kind: state.IncidentDefinition, Since: since, Definition: &store.MissingDefinition{Workflow: u.Workflow,
		Version: u.Version, Fingerprint: u.Fingerprint, Cases: u.Cases}}
	hash := sha256.Sum256([]byte(u.Fingerprint))
	copy(i.ID[6:], hash[:]) // see noTime
	i.Failure = &workitem.Failure{Code: CodeNotLoaded, Message: fmt.Sprintf("no open engine has workflow %s, which %s; open a program with it",
		versioned(u.Workflow, u.Version), needing(u.Cases))}
	return i
}

func needing(n int64) string {
	if n == 1 {
		return "1 live case needs"
	}
	return fmt.Sprintf("%s need", printable.Plural(int(n), "live case"))
}
