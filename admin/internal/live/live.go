// Package live streams changes to open pages. However many browsers show a page, it is rendered once at each change,
// and each browser gets the parts that have changed.
package live

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// The bounds of streams.
const (
	maxStreams = 2000
	perUser    = 20
	pause      = 250 * time.Millisecond // the minimum time between two renderings of a page
	idle       = 10 * time.Second       // the time after which a page is rendered without a change, since it shows times
)

// Hub holds the pages that are open in a browser.
type Hub struct {
	pages http.Handler // renders the parts of a page
	key   func(u *access.User) string
	b     source.Backend
	clock retry.Clock

	mu      sync.Mutex
	watched map[string]*watched
	streams map[string]int // by user
	all     int
	stop    context.CancelFunc // stops the watch of the journal; nil while no page is open
}

// New returns a hub. pages responds to the request of a page with its parts; key distinguishes users that see different
// data.
func New(pages http.Handler, key func(u *access.User) string, b source.Backend, clock retry.Clock) *Hub {
	return &Hub{pages: pages, key: key, b: b, clock: clock, watched: make(map[string]*watched), streams: make(map[string]int)}
}

var errFull = errors.New("too many live pages are open; this one does not update, reload it to see changes")

// Serve streams the changed parts of the page that the query names, as server-sent events.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request) {
	page, err := url.ParseRequestURI(r.URL.Query().Get("page"))
	if err != nil || page.Host != "" {
		http.Error(w, "the parameter page must be the address of a page", http.StatusBadRequest)
		return
	}
	u := access.UserOf(r.Context())
	p, err := h.join(r, u, page)
	if err != nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(u, p)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Transfer-Encoding", "identity") // the stream ends with its connection, and an event is one write instead of three
	w.WriteHeader(http.StatusOK)
	p.follow(r.Context(), w, r.URL.Query().Get("seen"))
}

// join adds a viewer to a page, and starts to watch the page if it is the first.
func (h *Hub) join(r *http.Request, u *access.User, page *url.URL) (*watched, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxStreams || h.streams[u.Name] >= perUser && u.Name != "" {
		return nil, errFull
	}
	key := h.key(u) + "\x00" + page.RequestURI()
	p := h.watched[key]
	if p == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // the page is rendered for all viewers, so it does not end with the request of the first
		request := r.Clone(ctx)
		request.URL, request.RequestURI = page, page.RequestURI()
		request.Header = http.Header{"Accept": {"application/json"}}
		p = newWatched(key, request, cancel)
		h.watched[key] = p
		go p.run(ctx, h)
	}
	p.viewers++
	h.all++
	h.streams[u.Name]++
	if h.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		go h.watch(ctx)
	}
	return p, nil
}

// Streams returns the number of open streams.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

func (h *Hub) leave(u *access.User, p *watched) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.streams[u.Name]--; h.streams[u.Name] == 0 {
		delete(h.streams, u.Name)
	}
	if p.viewers--; p.viewers == 0 {
		p.cancel()
		delete(h.watched, p.key)
	}
	if h.all == 0 {
		h.stop()
		h.stop = nil
	}
}

// watch renders the pages again when the journal has new entries. It ends with the last open page.
func (h *Hub) watch(ctx context.Context) {
	for ctx.Err() == nil {
		last, err := store.Newest(ctx, h.b, store.JournalFilter{Settled: true})
		if err == nil {
			h.changed() // includes what was committed before the watch and after the pages were rendered
			for _, err := range source.Follow(ctx, h.b, h.clock, workitem.CaseID{}, last) {
				if err != nil {
					break
				}
				h.changed()
			}
		}
		retry.Sleep(ctx, h.clock, idle) // the database cannot be read, which the pages report
	}
}

func (h *Hub) changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.watched {
		select {
		case p.changes <- struct{}{}:
		default: // the page will be rendered anyway
		}
	}
}
