package demo_test

import (
	"bytes"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
)

// printed is what a demo has printed so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

// String returns all of it.
func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits for a text.
func (p *printed) until(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.String(), text) }, time.Minute, 5*time.Millisecond, "no %q", text)
}

// visitor is a user of the pages.
type visitor struct {
	*testing.T
	http.Client
	base string
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

func (v *visitor) get(address string) string {
	reply, err := v.Get(address)
	require.NoError(v, err)
	text, err := io.ReadAll(reply.Body)
	require.NoError(v, err)
	require.NoError(v, reply.Body.Close())
	require.Equal(v, http.StatusOK, reply.StatusCode, string(text))
	return string(text)
}

// submit fills in the form at a path, with names and values in turn, and sends it.
func (v *visitor) submit(path string, fields ...string) {
	page := v.get(v.base + path)
	to := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(v, to, page)
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	reply, err := v.PostForm(v.base+html.UnescapeString(to[1]), form)
	require.NoError(v, err)
	require.NoError(v, reply.Body.Close())
	require.Equal(v, http.StatusOK, reply.StatusCode, "the page after the form")
}

// With pages, nothing is decided until the user does it there: an incident is skipped and the others are retried. The demo says when all is decided.
func TestIncidentsAreDecidedInPages(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out printed
	ended := make(chan error, 1)
	go func() {
		ended <- demo.RunIncident(ctx, &out, demo.IncidentOptions{Ask: true, Setting: demo.Setting{DB: filepath.Join(t.TempDir(), "incident.db"),
			Fast: true, Serve: true, ServeAt: "127.0.0.1:0"}})
	}()
	out.until(t, "says who decided, and why")
	require.Contains(t, out.String(), "40 incidents alike")
	addresses := regexp.MustCompile(`(http://[^/]+)(/(?:incidents|items/[0-9a-f-]+)\?token=\S+)`).FindAllStringSubmatch(out.String(), -1)
	require.Len(t, addresses, 2, out.String())
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := &visitor{T: t, Client: http.Client{Jar: jar}, base: addresses[0][1]}

	list := v.get(addresses[0][0])
	require.NotContains(t, out.String(), "All is decided")
	skip := regexp.MustCompile(`href="(/act\?[^"]*kind=skip[^"]*)"`).FindStringSubmatch(v.get(addresses[1][0]))
	require.NotNil(t, skip)
	v.submit(html.UnescapeString(skip[1]), "reason", "bought in town", "payload", `{"id":"P-01","from":"a shop"}`)
	retry := regexp.MustCompile(`href="(/bulk\?[^"]*kind=retry[^"]*)"`).FindStringSubmatch(list)
	require.NotNil(t, retry, list)
	v.submit(html.UnescapeString(retry[1]), "reason", "the supplier is back", "confirm", "39")

	out.until(t, "The pages stay until you press Ctrl-C.")
	stop()
	require.NoError(t, <-ended)
	for _, text := range []string{"All is decided.", "\n  40 completed\n", "item skip buy.1.2, by you\n    note: reason: bought in town\n",
		"by you\n    note: reason: the supplier is back\n"} {
		require.Contains(t, out.String(), text)
	}
}

// With -yes, the demo decides although it serves pages.
func TestIncidentsAreDecidedBesidePages(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out printed
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Command(ctx, strings.NewReader(""), &out, io.Discard, []string{"incident", "-fast", "-serve", "-yes", "-serve-at", "127.0.0.1:0",
			"-d", filepath.Join(t.TempDir(), "incident.db")})
	}()
	out.until(t, "The pages stay until you press Ctrl-C.")
	stop()
	require.NoError(t, <-ended)
	require.Contains(t, out.String(), "38 incidents done, 0 refused")
}
