package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// payloadPart is a payload with its title.
type payloadPart struct {
	Title    string
	Raw      json.RawMessage // as the user may see it
	Download string          // where all of it is; "" if all of it is shown
	name     string          // in the address of the download
	stored   json.RawMessage
}

// payloads returns the payloads that are there.
func payloads(parts ...payloadPart) []payloadPart {
	return slices.DeleteFunc(parts, func(p payloadPart) bool { return len(p.Raw) == 0 })
}

// masked reports whether the user sees something else than what is stored.
func (p *payloadPart) masked() bool { return !bytes.Equal(p.Raw, p.stored) }

// caseParts are the payloads of a case, as stored and as shown.
func caseParts(c, shown *state.Case) []payloadPart {
	return payloads(payloadPart{Title: "Input", name: "input", Raw: shown.Input, stored: c.Input}, payloadPart{Title: "Output", name: "output", Raw: shown.Output, stored: c.Output},
		payloadPart{Title: "Options of this run", name: "options", Raw: shown.Options, stored: c.Options}, detailsPart(c.Failure, shown.Failure))
}

// itemParts are the payloads of a work item, as stored and as shown.
func itemParts(it, shown *workitem.Item) []payloadPart {
	return payloads(payloadPart{Title: "Input", name: "input", Raw: shown.Input, stored: it.Input},
		payloadPart{Title: "Output", name: "output", Raw: shown.Output, stored: it.Output}, detailsPart(it.Failure, shown.Failure))
}

// jobParts are the payloads of a job, as stored and as shown.
func jobParts(j, shown *state.Job) []payloadPart {
	return payloads(payloadPart{Title: "Input", name: "input", Raw: shown.Input, stored: j.Input}, detailsPart(j.Failure, shown.Failure))
}

func detailsPart(f, shown *workitem.Failure) payloadPart {
	p := payloadPart{Title: "Details of the failure", name: "details"}
	if f != nil {
		p.Raw, p.stored = shown.Details, f.Details
	}
	return p
}

// downloads adds where the payloads are of which a page shows the beginning only. What is masked is not downloaded.
func (s *Site) downloads(parts []payloadPart, kind, id string) []payloadPart {
	for i := range parts {
		if p := &parts[i]; len(p.Raw) > maxPayload && !p.masked() {
			p.Download = s.Link("/payload", kind, id, "part", p.name)
		}
	}
	return parts
}

// payload downloads a whole payload of a case, an item or a job.
func (s *Site) payload(w http.ResponseWriter, r *http.Request) {
	user := access.UserOf(r.Context())
	req := &Request{Context: r.Context(), Request: r, Now: s.Backend.Now(), User: user, Form: r.URL.Query(), Mask: s.maskOf(r.Context())}
	var part payloadPart
	var file string
	err := s.bounded(r, func(ctx context.Context) error {
		return s.Backend.View(ctx, func(v store.Reader) (err error) {
			req.Context, req.R = ctx, v
			part, file, err = readPayload(req)
			return err
		})
	})
	switch {
	case err != nil:
		s.answer(w, r, s.failed(req, err))
		return
	case part.masked():
		s.say(w, r, http.StatusForbidden, "You may not see this", "The payload is masked for you, so it cannot be downloaded.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
	_, _ = w.Write(part.Raw) // the client has disconnected
}

// readPayload finds the payload that the address names, and the name of its file.
func readPayload(r *Request) (payloadPart, string, error) {
	q := query.Of(r.Form, r.Now)
	var kind string
	for _, name := range []string{"case", "item", "job"} {
		if r.Form.Get(name) != "" {
			kind = name
		}
	}
	q.Only("case", "item", "job", "part")
	if err := q.Err(); err != nil {
		return payloadPart{}, "", err
	}
	id, name := r.Form.Get(kind), r.Form.Get("part")
	parts, err := partsOf(r, kind, id)
	if err != nil {
		return payloadPart{}, "", err
	}
	for _, p := range parts {
		if p.name == name {
			return p, fmt.Sprintf("%s-%s-%s.json", kind, id, name), nil
		}
	}
	return payloadPart{}, "", fmt.Errorf("%s %s has no %q, which is input, output, options or details: %w", kind, id, name, store.ErrNotFound)
}

// partsOf reads the payloads of a case, an item or a job.
func partsOf(r *Request, kind, id string) ([]payloadPart, error) {
	none := fmt.Errorf("%s %q: %w", orElse(kind, "the case, item or job"), id, store.ErrNotFound)
	switch kind {
	case "case":
		var of workitem.CaseID
		if err := of.UnmarshalText([]byte(id)); err != nil || of.IsZero() {
			return nil, none
		}
		found, err := r.R.Cases(r, store.CaseFilter{ID: of})
		if err != nil || len(found) == 0 {
			return nil, errorOr(err, none)
		}
		return caseParts(found[0], r.Mask.Case(found[0])), nil
	case "item":
		var of workitem.ID
		if err := of.UnmarshalText([]byte(id)); err != nil {
			return nil, none
		}
		it, err := findItem(r, of)
		if err != nil {
			return nil, err
		}
		return itemParts(it.Item, r.Mask.Item(it.Item)), nil
	case "job":
		var of workitem.JobID
		if err := of.UnmarshalText([]byte(id)); err != nil || of.IsZero() {
			return nil, none
		}
		found, err := r.R.Jobs(r, store.JobFilter{ID: of})
		if err != nil || len(found) == 0 {
			return nil, errorOr(err, none)
		}
		return jobParts(found[0], r.Mask.Job(found[0])), nil
	}
	return nil, none
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
