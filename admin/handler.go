package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/admin/internal/live"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/past"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/admin/internal/view"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/slowclient"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// Backend is what the pages show and act on. An [engine.Engine] is one; [Reading] makes one of a database that another process
// owns.
type Backend = source.Backend

// Post leaves a command for the process that owns a database, and waits for its answer.
type Post = source.Post

// User is who makes a request. The zero value is nameless and may only look.
type User = access.User

// Preset is a named filter of a list, a link on its page: its name of at most 40 characters, the path of the list such as "/cases", and its filters
// as in the address of the list, such as "state=started&older=3d". Its method Check says what is wrong with it.
type Preset = view.Preset

// Reading is a Backend on a store that is open for reading, beside the engine that owns the database. Commands are left for that
// engine by post; nil refuses them. It panics if the store is nil.
func Reading(v store.Viewer, post Post, opts ...ReadingOption) Backend {
	if isNil(v) {
		panic("admin.Reading: the store is nil: give one that is open, and look at the error of its opening first")
	}
	return source.Reading(v, post, retry.SystemClock, opts...)
}

// ReadingOption is an option of [Reading].
type ReadingOption = source.ReadingOption

// Ask has [Reading] ask which definitions the open programs have, so that missing ones are incidents. ask is called when a page or an answer needs
// that, at most once in ten seconds, and has two seconds; a zero Here, and an error, say that no program has answered. The process rows of a fleet are read
// without it.
func Ask(ask func(context.Context) (why.Here, error)) ReadingOption { return source.Ask(ask) }

// Owned has [Reading] look whether an engine has the database open before the pages Limits and Doctor ask it what it knows. Without an engine they wait
// a second for its answer otherwise, and remember for five that there is none.
func Owned(owned func(context.Context) (bool, error)) ReadingOption { return source.Owned(owned) }

// Config says where the pages are and who may do what. The zero value refuses every request.
type Config struct {
	// Prefix is the path that the handler is mounted at, without a slash at its end: "" or "/tasq". Requests reach the handler with it.
	Prefix string

	// Access finds the user of a request; an error refuses the request. [ReadOnly] and [AllowAll] are values for programs that
	// decide about access before. nil refuses all.
	Access func(r *http.Request) (User, error)

	// Hosts are the names and addresses that the pages are asked for by, without ports. A request for another one is refused, so that
	// a foreign name that leads to this machine shows nothing. nil is any.
	Hosts []string

	// Show returns what a user sees of a payload: kind is "case", "item", "job", "step" or "event", and name that of the workflow, task,
	// function, step or event, or "" in the history, where it is not known. A business key has the kind "key" and the name of its workflow, a
	// label the kind "label" and its own name, the key of a limit the kind "limit" and the name of the limit, a paused key of a
	// queue the kind "queue" and the name of the queue; all of them are texts in JSON. It must be quick, and return JSON. nil shows all.
	Show func(u User, kind, name string, raw json.RawMessage) json.RawMessage

	// Bulk does what is asked for many things at a time, as durable actions. The engine must have been opened with it, and it must
	// serve the engine. nil offers none.
	Bulk *bulk.Bulk

	// Presets are named filters of lists that all users see, beside those that every program has, and those that a user saves in a browser.
	Presets []Preset

	// Clock is for waits between two looks at a database of another process. Default: the system's.
	Clock retry.Clock
	// Logger takes refusals and failures. Default: slog.Default().
	Logger *slog.Logger
}

// ReadOnly lets every request read, and none act.
func ReadOnly(*http.Request) (User, error) { return User{}, nil }

// AllowAll lets every request that reaches the handler read and act, without a name.
func AllowAll(*http.Request) (User, error) {
	return User{May: func(string, string) bool { return true }}, nil
}

// Handler serves the pages and the JSON API of a backend. It is mounted below its prefix:
//
//	pages := admin.Handler(e, admin.Config{Prefix: "/tasq", Access: signedIn})
//	mux.Handle("/tasq/", pages)
//
// Requests that change something are POST requests of the pages' own origin; all answers forbid inline script and other origins.
// A client that receives nothing of an answer for 30 seconds, or sends nothing of a body, loses its connection; that replaces the WriteTimeout of
// the server, which would end live pages. It panics if the backend is nil, or a preset is invalid.
func Handler(b Backend, c Config) http.Handler {
	if isNil(b) {
		panic("admin.Handler: the backend is nil: give the engine that engine.Open returned, and look at its error first, or admin.Reading of a store")
	}
	for i := range c.Presets {
		if err := c.Presets[i].Check(); err != nil {
			panic("admin.Handler: " + err.Error())
		}
	}
	if c.Clock == nil {
		c.Clock = retry.SystemClock
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Prefix = strings.TrimRight(c.Prefix, "/")
	site := view.New(&view.Site{Backend: b, Past: new(past.Memory), Prefix: c.Prefix, Mask: c.masks(), Bulk: c.Bulk, Presets: c.Presets, Log: c.Logger, Timeout: pageTimeout})
	mux := http.NewServeMux()
	for pattern, h := range routes(b, &c, site) {
		mux.Handle(pattern, h)
	}
	guard := &access.Guard{Access: c.Access, Hosts: c.Hosts, Log: c.Logger, Refuse: func(w http.ResponseWriter, r *http.Request, status int, text string) {
		if strings.HasPrefix(r.URL.Path, c.Prefix+api.Base) {
			api.Refuse(w, status, "not-allowed", text)
			return
		}
		site.Refused(w, status, text)
	}}
	return slowclient.Handler(guard.Wrap(http.StripPrefix(c.Prefix, api.Only(mux))))
}

// isNil also finds a nil pointer in an interface, such as a *engine.Engine that Open did not return.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && p.IsNil()
}

// routes are all patterns below the prefix, with their handlers.
func routes(b Backend, c *Config, site *view.Site) map[string]http.Handler {
	all := make(map[string]http.Handler)
	pages := http.NewServeMux()
	for pattern, h := range site.Routes() {
		all[pattern] = h
		pages.Handle(pattern, h)
	}
	programs := &api.API{Backend: b, Clock: c.Clock, Mask: c.masks(), Past: site.Past, Bulk: c.Bulk, Strands: site.Strands}
	for pattern, h := range programs.Routes() {
		all[pattern] = h
	}
	all[api.FallbackPattern] = http.HandlerFunc(api.NotFound)
	hub := live.New(pages, c.sight, b, c.Clock)
	site.Streams = hub.Streams
	all["GET /live"] = http.HandlerFunc(hub.Serve)
	return all
}

// pageTimeout is how long a page may take.
const pageTimeout = 5 * time.Second

// sight distinguishes the users who see different pages.
func (c *Config) sight(u *User) string {
	sight := "look"
	if u.May != nil {
		sight = "act as " + u.Name // one who acts sees the buttons of the own rights
	}
	if c.Show != nil {
		sight += " as " + u.Name
	}
	return sight
}

// masks is what a user sees of payloads.
func (c *Config) masks() func(*access.User) mask.Mask {
	if c.Show == nil {
		return nil
	}
	return func(u *access.User) mask.Mask {
		return func(kind, name string, raw json.RawMessage) json.RawMessage { return c.Show(*u, kind, name, raw) }
	}
}
