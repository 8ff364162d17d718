package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// bulkStart is the body of the start of a bulk action. It has Targets or Filter.
type bulkStart struct {
	Kind    workflow.Kind       `json:"kind"`              // resume, suspend, cancel, restart, remove or redrive, for cases; item, for items; retry, retry-incident, skip, give-up or give-up-incident, for incidents
	Action  workitem.Action     `json:"action,omitzero"`   // of the kind item: reset, fail or cancel
	Targets []string            `json:"targets,omitempty"` // ids of cases, of work items, or of incidents for retry-incident and give-up-incident
	Filter  map[string][]string `json:"filter,omitempty"`  // parameters of the list of cases, items or incidents, or ids
	Until   string              `json:"until,omitempty"`   // the newest id of the filter that counts, as a count answers it
	Payload json.RawMessage     `json:"payload,omitempty"`
	Reason  string              `json:"reason,omitempty"`
	Retry   *retry.Changes      `json:"retry,omitempty"`    // of a retry or resume: changes of the retry policy
	From    string              `json:"fromStep,omitempty"` // of a restart: the first step that is executed again
	Force   bool                `json:"force,omitempty"`    // of a restart: also cases that were restarted already
	Count   bool                `json:"count,omitempty"`    // only count
}

// bulkStarted is the answer to it.
type bulkStarted struct {
	ID      string `json:"id,omitempty"`      // of the case of the action; "" if it was only counted
	Targets int    `json:"targets"`           // how many it has
	Denied  int    `json:"denied,omitempty"`  // how many more were left out, since the user does not have the right
	Missing int    `json:"missing,omitempty"` // how many more were left out, since no open engine has their workflow
	Until   string `json:"until,omitempty"`

	Restarted int              `json:"restarted,omitempty"`   // how many more were left out, since they were restarted already
	As        []bulk.Restarted `json:"restartedAs,omitempty"` // these, at most 100
}

// maxRestarted is how many cases that were restarted already an answer has.
const maxRestarted = 100

// bulkCommand is the body of a command on a bulk action.
type bulkCommand struct {
	Do     string `json:"do"` // "pause", "resume" or "cancel"
	Reason string `json:"reason,omitempty"`
}

// readBody parses the body of a request. It refuses unknown fields, since a misspelled one would be ignored.
func readBody(w http.ResponseWriter, r *http.Request, what string, into any) error {
	var body bytes.Buffer
	d := json.NewDecoder(io.TeeReader(http.MaxBytesReader(w, r.Body, MaxBody), &body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return domain.CheckJSON(body.Bytes())
		}
		err = errMore
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" { // else its text has the names of a Go type
		return fmt.Errorf("the body is not %s: the field %q cannot be a %s: %w", what, wrong.Field, wrong.Value, workflow.ErrBadCommand)
	}
	return fmt.Errorf("the body is not %s: %w: %w", what, err, workflow.ErrBadCommand)
}

func (a *API) bulkList(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	p := q.Page(50, true)
	if !check(w, q) {
		return
	}
	list(a, w, r, p, func(v store.Reader, p store.Page) ([]*bulk.Info, error) { return bulk.List(r.Context(), v, p) },
		func(i *bulk.Info) string { return i.ID.String() }, func(i *bulk.Info) bulk.Info { return *i })
}

func (a *API) oneBulk(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	if !idOf(w, r, &id) {
		return
	}
	i, err := bulk.InfoOf(r.Context(), a.Backend, id)
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, i)
}

// targets finds the targets of a new action, without those for which the user does not have the right.
func (a *API) targets(r *http.Request, b *bulkStart) (*selection.Selection, error) {
	u := access.UserOf(r.Context())
	switch {
	case b.Kind == workflow.KindAct && !selection.Bulk(b.Kind, b.Action):
		return nil, fmt.Errorf("there is no bulk action %q on items; \"action\" is reset, fail or cancel: %w", b.Action, workflow.ErrBadCommand)
	case !selection.Bulk(b.Kind, b.Action):
		return nil, fmt.Errorf("there is no bulk action %q: %w", b.Kind, workflow.ErrBadCommand)
	case (b.Targets == nil) == (b.Filter == nil):
		return nil, fmt.Errorf("a bulk action has either targets or a filter, which may be empty: %w", workflow.ErrBadCommand)
	case b.Filter != nil:
		return selection.Find(r.Context(), a.Backend, &selection.Choice{Kind: b.Kind, Do: b.Action, Filter: url.Values(b.Filter), Until: b.Until, Force: b.Force, Now: a.Backend.Now(), User: u, Mask: a.mask(r),
			Here: a.Backend.Here()})
	}
	sel := new(selection.Selection)
	slices.Sort(b.Targets)
	for _, target := range slices.Compact(b.Targets) {
		if u.Allowed(string(b.Kind), target) {
			sel.Targets = append(sel.Targets, target)
		} else {
			sel.Denied++
		}
	}
	if len(sel.Targets) > selection.Most {
		return nil, fmt.Errorf("%d targets, and at most %d are allowed: %w", len(sel.Targets), selection.Most, selection.ErrTooLarge)
	}
	if b.Kind == workflow.KindRestart && !b.Force {
		var err error
		sel.Targets, sel.Restarted, err = bulk.WithoutRestarted(r.Context(), a.Backend, sel.Targets)
		return sel, err
	}
	return sel, nil
}

// begun finds the action that an earlier request with an idempotency key has started; nil if there is none. What the filter
// selects may have changed since then, because of the action.
func (a *API) begun(r *http.Request, key string) (*bulkStarted, error) {
	if key == "" {
		return nil, nil
	}
	id, err := selection.Begun(r.Context(), a.Backend, key)
	if err != nil || id.IsZero() {
		return nil, err
	}
	i, err := bulk.InfoOf(r.Context(), a.Backend, id)
	if err != nil {
		return nil, err
	}
	return &bulkStarted{ID: id.String(), Targets: i.Targets}, nil
}

func (a *API) startBulk(w http.ResponseWriter, r *http.Request) {
	var b bulkStart
	if err := readBody(w, r, "a bulk action", &b); err != nil {
		Problem(w, err)
		return
	}
	u := access.UserOf(r.Context())
	if !u.Allowed(string(b.Kind), "") {
		Refuse(w, http.StatusForbidden, "not-allowed", fmt.Sprintf("%s may not have %q done", access.Named(u), b.Kind))
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if begun, err := a.begun(r, key); !b.Count && (err != nil || begun != nil) {
		if err != nil {
			Problem(w, err)
			return
		}
		answer(w, http.StatusOK, begun)
		return
	}
	sel, err := a.targets(r, &b)
	if errors.Is(err, selection.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", err, workflow.ErrBadCommand)
	}
	if err != nil {
		Problem(w, err)
		return
	}
	out := bulkStarted{Targets: len(sel.Targets), Denied: sel.Denied, Missing: sel.Lacking.N, Until: sel.Until,
		Restarted: len(sel.Restarted), As: sel.Restarted[:min(len(sel.Restarted), maxRestarted)]}
	switch {
	case b.Count:
	case out.Targets == 0 && out.Denied > 0:
		Refuse(w, http.StatusForbidden, "not-allowed", fmt.Sprintf("%s may not have %q done on any of the %d targets", access.Named(u), b.Kind, out.Denied))
		return
	case out.Targets == 0 && out.Missing > 0:
		Problem(w, fmt.Errorf("no open engine has workflow %s, which all that match need: %w", sel.Lacking.Names(), workflow.ErrUnknown))
		return
	case out.Targets == 0 && out.Restarted > 0:
		Problem(w, fmt.Errorf("each of the %d cases that match %w, the first as case %s; \"force\": true restarts them again", out.Restarted, workflow.ErrRestarted, out.As[0].Successor))
		return
	case out.Targets == 0:
		Problem(w, fmt.Errorf("nothing matches: %w", workflow.ErrBadCommand))
		return
	case a.Bulk == nil:
		Refuse(w, http.StatusNotFound, "unknown-workflow", "bulk actions are not available: the engine was opened without the workflow of package bulk")
		return
	default:
		id, err := a.runBulk(r, &b, sel.Targets, key)
		if err != nil {
			Problem(w, err)
			return
		}
		out.ID = id.String()
	}
	answer(w, http.StatusOK, out)
}

func (a *API) runBulk(r *http.Request, b *bulkStart, targets []string, key string) (workitem.CaseID, error) {
	u := access.UserOf(r.Context())
	opts := []workflow.Option{workflow.By(u.Name), workflow.Key(key)}
	if key != "" {
		opts = append(opts, workflow.Label(selection.OnceLabel, key))
	}
	for _, target := range targets {
		if _, err := workitem.ParseID(target); err != nil {
			return workitem.CaseID{}, fmt.Errorf("target %q: %w: %w", target, err, workflow.ErrBadCommand)
		}
	}
	run, err := a.Bulk.Start(r.Context(), a.Backend, bulk.Action{Kind: b.Kind, Do: b.Action, Payload: b.Payload, Reason: b.Reason, Actor: u.Name, Retry: b.Retry, FromStep: b.From,
		Force: b.Force}, targets, opts...)
	return run.ID, err
}

func (a *API) onBulk(w http.ResponseWriter, r *http.Request) {
	var id workitem.CaseID
	if !idOf(w, r, &id) {
		return
	}
	var b bulkCommand
	if err := readBody(w, r, "a command on a bulk action", &b); err != nil {
		Problem(w, err)
		return
	}
	u := access.UserOf(r.Context())
	opts := []workflow.Option{workflow.By(u.Name), workflow.Key(r.Header.Get("Idempotency-Key"))}
	if b.Reason != "" {
		opts = append(opts, workflow.Because(b.Reason))
	}
	c, err := bulk.Command(id, b.Do, opts...)
	if err != nil {
		Problem(w, err)
		return
	}
	if !allow(w, u, string(c.Kind), id.String()) {
		return
	}
	i, err := bulk.InfoOf(r.Context(), a.Backend, id) // not any other case
	if err == nil {
		_, err = a.Backend.Do(r.Context(), c)
	}
	if err == nil {
		i, err = bulk.InfoOf(r.Context(), a.Backend, id)
	}
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, i)
}
