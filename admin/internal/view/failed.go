package view

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var errBusy = errors.New("too many pages are being generated at the moment")

// message is a page of a few sentences.
type message struct {
	Title string
	Lines []string
	Links []Link
	Code  string // the stable code of an error, as in the API
	HTTP  int    // the HTTP status
}

// failed returns the page of an error: what it is, and what to do.
func (s *Site) failed(r *Request, err error) *Page {
	m := message{Title: "This page cannot be shown", Lines: []string{err.Error()}, Links: []Link{{Text: "Overview", Href: s.Link("/")}}}
	status := http.StatusInternalServerError
	_, m.Code = api.StatusOf(err)
	bad := (*query.Error)(nil)
	switch {
	case errors.As(err, new(*store.RemovedError)):
		status, m.Title = http.StatusGone, "The case was removed"
		m.Lines = append(m.Lines, "Its history was removed with it.")
		m.Links = append(m.Links, Link{Text: "Audit", Href: s.Link("/audit", "case", r.PathValue("id"))})
	case errors.As(err, &bad):
		status, m.Title = http.StatusBadRequest, "The address is invalid"
		m.Links = append(m.Links, Link{Text: "Show all", Href: s.Prefix + r.URL.Path})
	case errors.Is(err, store.ErrNotFound):
		status, m.Title = http.StatusNotFound, "Not found"
		m.Lines = append(m.Lines, "It may never have existed, or it was removed after its retention time.")
	case errors.Is(err, source.ErrNoOwner):
		status, m.Title = http.StatusServiceUnavailable, "The owner of the database does not answer"
		m.Lines = append(m.Lines, "These pages send each change to the program that owns the database. Start it, and submit the form again; "+
			"or make the change with the command tasq, which opens the database if no program owns it.")
	case tookLong(err):
		status, m.Title, m.Code = http.StatusServiceUnavailable, "The page takes too long", "busy"
		m.Lines = append(m.Lines, "Try again, or set a filter that selects less.")
		if r.Method == http.MethodGet {
			m.Links = append(m.Links, Link{Text: "Reload", Href: r.URL.RequestURI()})
		}
	case errors.Is(err, engine.ErrClosed), errors.Is(err, store.ErrLost), errors.Is(err, store.ErrUnavailable):
		status, m.Title = http.StatusServiceUnavailable, "The database cannot be read at the moment"
		m.Lines = append(m.Lines, "The program that serves these pages has closed the database, or has lost it. Its log says why.")
	default:
		m.Lines = append(m.Lines, "The error is in the log of the program that serves these pages. Reload the page; if the error persists, check the database with tasq doctor.")
		s.Log.Error("tasq pages: a page failed", "path", r.URL.Path, "error", err)
	}
	m.HTTP = status
	return &Page{Title: m.Title, Status: status, Parts: []Part{{ID: "message", Template: "message", Data: m}}}
}

// removed returns who has removed the case that a page is about, if err says that it does not exist.
func removed(r *Request, err error) error {
	var id workitem.CaseID
	if !strings.HasPrefix(r.URL.Path, "/cases/") || id.UnmarshalText([]byte(r.PathValue("id"))) != nil {
		return err
	}
	return store.OrRemoved(r, r.R, id, err)
}

// tookLong reports whether an error says that the timeout of a page has expired.
func tookLong(err error) bool {
	return errors.Is(err, errBusy) || errors.Is(err, context.DeadlineExceeded)
}

// Refused answers a request without access. The page has no style sheet and no links, since these would be refused too.
func (s *Site) Refused(w http.ResponseWriter, status int, text string) {
	m := message{Title: "Access denied", Lines: []string{text}, Code: codeNotAllowed, HTTP: status}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "refused", m); err != nil {
		s.broken(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have gone
}

// codeNotAllowed is the code for what a user may not see or do.
const codeNotAllowed = "not-allowed"

// notFound answers requests for unknown addresses.
func (s *Site) notFound(w http.ResponseWriter, r *http.Request) {
	s.say(w, r, http.StatusNotFound, "There is no page at this address", "Use the navigation above. The address may have been truncated when it was copied.")
}
