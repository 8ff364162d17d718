// Package access authorizes requests, before any other code handles them.
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

// ErrRefused is the error of a request that is not allowed, or requires signing in.
var ErrRefused = errors.New("access denied")

// User is the user of a request. The zero value has no name and may only read.
type User struct {
	Name   string   // the actor of the user's commands
	Queues []string // the queues that the user works on
	// May reports whether the user may execute a command, by its kind ("retry", "cancel", "item"), on a target: the id
	// of a case, a work item or a job, or the name of a workflow, a topic, a limit or a queue. For a command on a
	// schedule the kind is "tasq-schedule", and the target is its name; for the integrity check of the page Doctor it is
	// "doctor", and the target is "". The target is "" when a page decides whether to
	// show a form before its targets are known: that of a broadcast, or of a bulk action, which is checked again for
	// each target. nil allows no command.
	May func(kind, target string) bool
}

// Allowed reports whether the user may execute a command.
func (u *User) Allowed(kind, target string) bool { return u.May != nil && u.May(kind, target) }

// Func returns the user of a request. An error refuses the request.
type Func func(r *http.Request) (User, error)

// Guard checks every request.
type Guard struct {
	Access Func
	Hosts  []string // the allowed host names and addresses, without ports; nil allows all
	Log    *slog.Logger
	// Refuse writes the response to a refused request.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, text string)
	origin http.CrossOriginProtection
}

// policy is the Content-Security-Policy: only resources of the same origin, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

type userKey struct{}

// UserOf returns the user of a request that has passed a guard.
func UserOf(ctx context.Context) *User {
	u, _ := ctx.Value(userKey{}).(*User)
	if u == nil {
		return &User{}
	}
	return u
}

// Wrap returns a handler that checks requests before h.
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
