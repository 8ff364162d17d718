// Package serve runs the pages of package admin as a server of its own, for "tasq serve". It listens, encrypts connections with
// TLS if a certificate is given, and authenticates users in one of three ways:
//
//	for one person     a random token in the address, which becomes a cookie; the default, on a loopback address only
//	for several users  a file of names, bcrypt hashes and rights (Options.Users)
//	behind a proxy     the name in a header that the proxy sets (Options.TrustHeader)
//
// An address that other machines can reach needs the second or the third one; without it [Open] fails. The file of users and the
// certificate are read again when they change. What the pages show and do is the responsibility of package admin.
package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/internal/slowclient"
)

// Options say how the pages are served. The zero value serves them on loopback, for looking only.
type Options struct {
	Act         bool         // let those who have access act
	Listen      string       // address; DefaultListen if it is ""
	TrustHeader string       // name of the header in which a proxy that signs people in says who it is; "" is for a token
	Name        string       // who acts, if no header and no file says so
	Users       string       // path of a file of names, hashes of passwords and rights; "" is for a token, or for TrustHeader
	Log         *slog.Logger // takes sign-ins that are refused, changes of files and what the server meets; nil is slog.Default()

	// Certificate and Key are paths of PEM files, of the server's certificate with its chain and of its key: the pages are served by TLS.
	// Both are "" for a connection that is not encrypted.
	Certificate, Key string
}

// DefaultListen is an address of this machine alone.
const DefaultListen = "127.0.0.1:7070"

// ErrAddress is for an address that cannot be served, or not without a sign-in.
var ErrAddress = errors.New("the pages cannot be served there")

// cookie is the name of the cookie that programs send with the token. A browser has one for each port, with the port appended, as it sends the
// cookies of a host to all ports of it.
const cookie = "tasq-token"

// Server is the pages at an address.
type Server struct {
	listener net.Listener
	http     *http.Server
	token    string
	users    *users       // of the file; nil without one
	tls      *certificate // nil if connections are not encrypted
}

// Open reserves the address and makes the server. The error wraps [ErrAddress], [ErrUsers] or [ErrCertificate].
func Open(b admin.Backend, c admin.Config, o Options) (*Server, error) {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no address such as %s: %w", ErrAddress, o.Listen, DefaultListen, err)
	}
	if !loopback(host) && o.TrustHeader == "" && o.Users == "" {
		return nil, fmt.Errorf("%w: %s can be reached from other machines, so people must sign in; name a file of users with --users, or, behind "+
			"a proxy that signs people in, the header that it sets with --trust-header, or listen on %s", ErrAddress, o.Listen, DefaultListen)
	}
	s := &Server{}
	if s.tls, err = openCertificate(o.Certificate, o.Key, o.Log); err != nil {
		return nil, err
	}
	if c.Access, err = s.access(o); err != nil {
		return nil, err
	}
	if o.TrustHeader == "" && loopback(host) {
		c.Hosts = []string{"127.0.0.1", "localhost", "::1", host}
	}
	if s.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("%w: %w; name another address with --listen, such as 127.0.0.1:0", ErrAddress, err)
	}
	s.http = &http.Server{Handler: slowclient.Handler(s.entrance(admin.Handler(b, c))), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: errorLog(cmp.Or(o.Log, slog.Default()))}
	if s.tls != nil {
		s.http.TLSConfig = &tls.Config{GetCertificate: s.tls.get, MinVersion: tls.VersionTLS12}
	} else if o.Users != "" && !loopback(host) {
		cmp.Or(o.Log, slog.Default()).Warn("tasq pages: passwords come over connections that this server does not encrypt; put TLS before it, "+
			"or name a certificate with --tls-cert and --tls-key", "address", s.listener.Addr())
	}
	return s, nil
}

// access is how the user of a request is found.
func (s *Server) access(o Options) (func(*http.Request) (admin.User, error), error) {
	switch {
	case o.Users != "" && o.TrustHeader != "":
		return nil, fmt.Errorf("%w: people sign in by the file %s or by the header %s; name one of them", ErrUsers, o.Users, o.TrustHeader)
	case o.TrustHeader != "":
		return o.byHeader, nil
	case o.Users != "":
		var err error
		if s.users, err = openUsers(o.Users, o.Act, o.Log); err != nil {
			return nil, err
		}
		return s.users.access, nil
	}
	var secret [24]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, err
	}
	s.token = hex.EncodeToString(secret[:])
	return s.byToken(o), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL is the address to open, with the token.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	url := scheme + "://" + s.listener.Addr().String() + "/"
	if s.token != "" {
		url += "?token=" + s.token
	}
	return url
}

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "tasq pages: %s\n", s.URL())
	defer context.AfterFunc(ctx, func() { _ = s.http.Close() })()
	serve := s.http.Serve
	if s.tls != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// entrance makes a cookie of the token of the address, so that the token is in no further address, and in no log.
func (s *Server) entrance(pages http.Handler) http.Handler {
	if s.users != nil {
		return s.users.entrance(pages)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if given := q.Get("token"); s.token != "" && r.Method == http.MethodGet && s.is(given) {
			http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.token, Path: "/", HttpOnly: true, Secure: s.tls != nil, SameSite: http.SameSiteStrictMode})
			q.Del("token")
			r.URL.RawQuery = q.Encode()
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusSeeOther)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

func (s *Server) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// cookie is the name of the cookie of a browser.
func (s *Server) cookie() string {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return cookie + "-" + port
}

// byToken gives access to the browser that has opened the address, and to programs.
func (s *Server) byToken(o Options) func(*http.Request) (admin.User, error) {
	return func(r *http.Request) (admin.User, error) {
		for _, c := range r.Cookies() {
			if (c.Name == cookie || c.Name == s.cookie()) && s.is(c.Value) {
				return o.user(o.Name), nil
			}
		}
		return admin.User{}, errors.New("open the address that tasq serve has printed: it has the token")
	}
}

// byHeader trusts the proxy.
func (o Options) byHeader(r *http.Request) (admin.User, error) {
	name := r.Header.Get(o.TrustHeader)
	if name == "" {
		return admin.User{}, fmt.Errorf("the header %s, in which the proxy says who signed in, is missing", o.TrustHeader)
	}
	return o.user(name), nil
}

func (o Options) user(name string) admin.User {
	u := admin.User{Name: name}
	if o.Act {
		u.May = func(string, string) bool { return true }
	}
	return u
}
