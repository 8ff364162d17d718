package view

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/past"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
)

// Site renders the pages for one backend.
type Site struct {
	Backend source.Backend
	Prefix  string                         // the prefix of every path: "" or "/tasq"
	Mask    func(u *access.User) mask.Mask // masks what a user may not see; nil shows everything
	Bulk    *bulk.Bulk                     // runs bulk actions; nil if the engine has none
	Presets []Preset                       // of all users, beside those of every program
	Log     *slog.Logger
	Timeout time.Duration // of one page
	Past    *past.Memory  // cache of past states
	Streams func() int    // returns the number of open live pages; nil if it is not known
	Strands *source.Examiner
	checked lastCheck
	missing missing
	heads   heads
	views   chan struct{} // limits the number of concurrent views
	assets  assets
}

// maxViews is the number of pages that are made at the same time.
const maxViews = 4

// New completes a site.
func New(s *Site) *Site {
	s.views = make(chan struct{}, maxViews)
	s.assets = loadAssets()
	if s.Strands == nil {
		s.Strands = &source.Examiner{Backend: s.Backend, Log: s.Log}
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	return s
}

// Page is the answer to a request.
type Page struct {
	Title  string
	Nav    string // the present entry of the navigation
	Status int    // 0 is 200
	Parts  []Part
	Live   bool // it is updated while it is open
	Past   bool // it shows a past state
	User   *access.User
	Alert  *Alert // the result of the command before it
	Search string
	Open   int // the number of open incidents
	Now    time.Time
	site   *Site
	self   *url.URL
	html   map[string]template.HTML // the rendered parts, by id
	seen   string                   // a hash of all parts
}

// Part is an element of a page that can be replaced separately.
type Part struct {
	ID       string
	Template string
	Data     any
	Static   bool // it differs between browsers, and is not updated while the page is open
}

// Alert is a message above a page.
type Alert struct {
	Class string // "good" or "bad"
	Text  string
}

// Request is the request for a page.
type Request struct {
	context.Context
	*http.Request
	R    store.Reader
	Now  time.Time
	User *access.User
	Mask mask.Mask
	Form url.Values
}

// build returns the content of a page.
type build func(s *Site, r *Request) (*Page, error)

// Routes returns the handlers of the pages by pattern, without the prefix.
func (s *Site) Routes() map[string]http.HandlerFunc {
	f := &forms{s}
	routes := map[string]http.HandlerFunc{"GET /assets/{name}": s.assets.serve, "GET /payload": s.payload, "GET /": s.notFound,
		"GET /act": f.actForm, "POST /act": f.act, "POST /bulk": f.startBulk, "POST /doctor": s.check, "POST /presets": f.savePreset}
	for pattern, b := range builds {
		routes["GET "+pattern] = s.page(b)
	}
	routes["GET /limits"] = s.withLimits(routes["GET /limits"], false)
	routes["GET /doctor"] = s.withLimits(routes["GET /doctor"], true)
	routes["GET /bulk"] = f.withBulk(routes["GET /bulk"])
	return routes
}

// builds are the pages by path.
var builds = map[string]build{
	"/{$}":                    (*Site).overview,
	"/workflows":              (*Site).workflows,
	"/workflows/{name}":       (*Site).workflow,
	"/cases":                  (*Site).cases,
	"/cases/{id}":             (*Site).oneCase,
	"/cases/{id}/differences": (*Site).differences,
	"/items":                  (*Site).items,
	"/items/{id}":             (*Site).item,
	"/jobs":                   (*Site).jobs,
	"/jobs/{id}":              (*Site).job,
	"/steps":                  (*Site).steps,
	"/events":                 (*Site).events,
	"/incidents":              (*Site).incidents,
	"/doctor":                 (*Site).doctor,
	"/audit":                  (*Site).audit,
	"/search":                 (*Site).search,
	"/stats":                  (*Site).stats,
	"/help":                   (*Site).help,
	"/limits":                 (*Site).limits,
	"/schedules":              (*Site).schedules,
	"/schedules/{name}":       (*Site).schedule,
	"/bulk":                   (*Site).bulks,
	"/bulk/{id}":              (*Site).bulk,
}

// page answers with a page.
func (s *Site) page(b build) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := s.Make(r, b)
		if p.Status == http.StatusSeeOther {
			http.Redirect(w, r, p.Title, http.StatusSeeOther)
			return
		}
		s.write(w, r, p)
	}
}

// Make makes a page; an error becomes a page too.
func (s *Site) Make(r *http.Request, b build) *Page {
	user := access.UserOf(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	req := &Request{Context: ctx, Request: r, Now: s.Backend.Now(), User: user, Form: r.URL.Query()}
	if s.Mask != nil {
		req.Mask = s.Mask(user)
	}
	if to := s.filtered(req); to != "" {
		return redirect(to)
	}
	p, err := s.view(req, b)
	if err != nil {
		p = s.failed(req, err)
	}
	p.site, p.User, p.self, p.Now = s, user, r.URL, req.Now
	if p.Alert == nil {
		p.Alert = alertOf(req.Form.Get("done"))
	}
	return p
}

// view makes a page in one view of the store. It waits until fewer than maxViews are open.
func (s *Site) view(r *Request, b build) (p *Page, err error) {
	leave, err := s.enter(r.Context)
	if err != nil {
		return nil, err
	}
	defer leave()
	open := 0
	err = s.Backend.View(r.Context, func(v store.Reader) (err error) {
		r.R = v
		if p, err = b(s, r); err != nil {
			return removed(r, err)
		}
		open, err = s.openIncidents(r)
		return err
	})
	if err == nil {
		p.Open = open
	}
	return p, err
}

// enter waits until another view may be opened; call leave after it.
func (s *Site) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.views <- struct{}{}:
		return func() { <-s.views }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// bounded reads what a form is about, with the same limits as a page.
func (s *Site) bounded(r *http.Request, look func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return look(ctx)
}

// redirect redirects to another page.
func redirect(to string) *Page { return &Page{Status: http.StatusSeeOther, Title: to} }

// Link is a path of the site, whose parts are escaped, with a query.
func (s *Site) Link(path string, query ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			v.Add(query[i], query[i+1])
		}
	}
	if len(v) == 0 {
		return s.Prefix + path
	}
	return s.Prefix + path + "?" + v.Encode()
}
