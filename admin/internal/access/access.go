// Package access decides who may ask for what, before anything else looks at a request.
package access

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
)

// ErrRefused is for a request that is not allowed, or not without signing in.
var ErrRefused = errors.New("access denied")

// User is who makes a request. The zero value is nameless and may look.
type User struct {
	Name   string   // is recorded as who asked for a command
	Queues []string // of the work that the user does
	// May reports whether the user may have a command done, by the word for its kind ("retry", "cancel", "item"), on a target: the
	// id of a case, a work item or a job, or the name of a workflow, a topic, a limit or a queue. For a command on a schedule the kind
	// is "tasq-schedule", and the target its name. The target is "" where the pages ask whether to show a form whose targets are not
	// known yet: that of a broadcast, or of an action on many things, for each of which it is asked again. nil allows none.
	May func(kind, target string) bool
}

// Allowed reports whether the user may have a command done.
func (u *User) Allowed(kind, target string) bool { return u.May != nil && u.May(kind, target) }

// Func finds the user of a request. An error refuses it.
type Func func(r *http.Request) (User, error)

// Guard is what every request passes.
type Guard struct {
	Access Func
	Hosts  []string // the names and addresses that are served, without ports; nil is any
	Log    *slog.Logger
	// Refuse answers a request that is not let through.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, text string)
	origin http.CrossOriginProtection
}

// policy is the one Content-Security-Policy: everything comes from where the page is, and nothing is inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

type userKey struct{}

// UserOf is who makes a request that passed a guard.
func UserOf(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	if u == nil {
		return &User{}
	}
	return u
}

// Wrap puts the guard before a handler.
func (g *Guard) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		if !g.serves(r.Host) {
			g.deny(w, r, http.StatusMisdirectedRequest, "this program does not serve the host "+r.Host+
				"; ask for it by a name that it is configured with")
			return
		}
		if err := g.origin.Check(r); err != nil {
			g.deny(w, r, http.StatusForbidden, "a change must come from a page of this server, and this one comes from another")
			return
		}
		if g.Access == nil {
			g.deny(w, r, http.StatusForbidden, "no access is configured: set Config.Access, for example to admin.ReadOnly, "+
				"or to a function that finds the signed-in user")
			return
		}
		user, err := g.Access(r)
		if err != nil {
			g.deny(w, r, http.StatusForbidden, "you have no access: "+err.Error())
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, &user)))
	})
}

func headers(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
}

func (g *Guard) deny(w http.ResponseWriter, r *http.Request, status int, text string) {
	g.Log.Warn("tasq pages: a request is refused", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "reason", text)
	g.Refuse(w, r, status, text)
}

func (g *Guard) serves(host string) bool {
	if len(g.Hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}
