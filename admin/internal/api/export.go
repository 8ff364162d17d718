package api

import (
	"net/http"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
)

// logFiles are the content types and file names of event logs.
var logFiles = map[eventlog.Format]struct{ kind, name string }{
	eventlog.OCEL: {"application/json", "events.json"}, eventlog.XES: {"application/xml", "events.xes"},
}

// export writes the event log of the cases of a filter.
func (a *API) export(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, format := q.Cases(), q.Case(), q.LogFormat()
	if !check(w, q) {
		return
	}
	err := a.Backend.View(r.Context(), func(v store.Reader) (err error) {
		if !of.IsZero() {
			f.Root, err = v.Root(r.Context(), of)
		}
		return orUnknown(r, v, 0, err, f.Workflow, "")
	})
	if err != nil {
		Problem(w, err)
		return
	}
	out := &begun{w: w, header: func(h http.Header) {
		file := logFiles[format]
		h.Set("Content-Type", file.kind)
		h.Set("Content-Disposition", `attachment; filename="`+file.name+`"`)
	}}
	err = eventlog.Write(r.Context(), out, a.Backend, format, eventlog.Options{Cases: f, Shown: a.mask(r).Case})
	switch {
	case err != nil && out.begun:
		panic(http.ErrAbortHandler) // the client detects an incomplete response
	case err != nil:
		Problem(w, err)
	}
}

// begun sets the header at the first write, so that an earlier error gets a normal error response.
type begun struct {
	w      http.ResponseWriter
	header func(http.Header)
	begun  bool
}

// Write implements [io.Writer].
func (b *begun) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.header(b.w.Header())
	}
	return b.w.Write(p)
}
