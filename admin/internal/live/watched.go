package live

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/tasq-dev/tasq/retry"
)

// watched is a page that is open in a browser.
type watched struct {
	key     string
	request *http.Request
	changes chan struct{} // has a buffer of one
	cancel  context.CancelFunc
	viewers int // guarded by the hub

	mu      sync.Mutex
	version int
	seen    string            // the names of the parts
	parts   map[string]string // their current content
	event   []byte            // for viewers of the previous version
	next    chan struct{}     // closed when the next version exists
}

func newWatched(key string, r *http.Request, cancel context.CancelFunc) *watched {
	return &watched{key: key, request: r, changes: make(chan struct{}, 1), cancel: cancel, next: make(chan struct{})}
}

// run renders the page after changes, and at intervals.
func (p *watched) run(ctx context.Context, h *Hub) {
	for ctx.Err() == nil {
		p.make(ctx, h.pages)
		retry.Sleep(ctx, h.clock, pause)
		wait(ctx, h.clock, p.changes)
	}
}

func wait(ctx context.Context, clock retry.Clock, changes chan struct{}) {
	woken := make(chan struct{})
	stop := clock.AfterFunc(idle, func() { close(woken) })
	defer stop()
	select {
	case <-changes:
	case <-woken:
	case <-ctx.Done():
	}
}

// recorder records a response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// make renders the page. After an error the previous version stays.
func (p *watched) make(ctx context.Context, pages http.Handler) {
	w := &recorder{header: make(http.Header)}
	pages.ServeHTTP(w, p.request.WithContext(ctx))
	var parts map[string]string
	if w.status != http.StatusOK || json.Unmarshal(w.body.Bytes(), &parts) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	event := difference(p.parts, parts)
	if event == nil {
		return
	}
	p.parts, p.event, p.seen = parts, event, w.header.Get("X-Seen")
	p.version++
	close(p.next)
	p.next = make(chan struct{})
}

// difference returns the event that turns some parts into others; nil if they are equal.
func difference(from, to map[string]string) []byte {
	changed := make(map[string]string)
	for id, html := range to {
		if from[id] != html {
			changed[id] = html
		}
	}
	if len(changed) == 0 {
		return nil
	}
	event := bytes.NewBufferString("event: parts\ndata: ")
	data := json.NewEncoder(event)
	data.SetEscapeHTML(false)                    // no page contains the event, and < takes one byte instead of six
	if err := data.Encode(changed); err != nil { // strings can always be encoded
		panic(err)
	}
	return append(event.Bytes(), '\n') // Encode has ended the line
}

// follow writes each new version until the viewer leaves. A slow viewer gets all changes since its last version at
// once.
func (p *watched) follow(ctx context.Context, w http.ResponseWriter, seen string) {
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	var last map[string]string
	version := 0
	for {
		p.mu.Lock()
		parts, event, at, next, name := p.parts, p.event, p.version, p.next, p.seen
		p.mu.Unlock()
		switch {
		case at == version, version == 0 && name == seen:
			event = nil
		case at != version+1 || version == 0:
			event = difference(last, parts)
		}
		last, version = parts, at
		if len(event) > 0 {
			if _, err := w.Write(event); err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}
