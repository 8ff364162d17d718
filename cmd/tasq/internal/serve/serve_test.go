package serve_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/serve"
	"github.com/tasq-dev/tasq/engine/enginetest"
)

func run(t *testing.T, o serve.Options) string {
	t.Helper()
	s, err := serve.Open(enginetest.New(t).Engine, admin.Config{}, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, io.Discard) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return s.URL()
}

func ask(t *testing.T, c *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w, err := c.Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w.StatusCode, string(body)
}

// The address with the token makes a cookie, and only the browser that has it has access, under the names of this machine.
func TestTheTokenBecomesACookie(t *testing.T) {
	url := run(t, serve.Options{Listen: "127.0.0.1:0"})
	base, _, _ := strings.Cut(url, "?")
	code, text := ask(t, http.DefaultClient, base)
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, text, "tasq serve has printed")
	code, _ = ask(t, http.DefaultClient, base+"?token=wrong")
	require.Equal(t, http.StatusForbidden, code)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	code, text = ask(t, browser, url)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "read only")
	code, _ = ask(t, browser, base+"cases")
	require.Equal(t, http.StatusOK, code)
	code, _ = ask(t, browser, base, "Host", "evil.example.com")
	require.Equal(t, http.StatusMisdirectedRequest, code)
}

// A browser that shows two databases at once has access to both: it sends the cookies of a host to all ports of it. Programs name no port.
func TestTwoServersInOneBrowser(t *testing.T) {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	urls := []string{run(t, serve.Options{Listen: "127.0.0.1:0"}), run(t, serve.Options{Listen: "127.0.0.1:0"})}
	for _, url := range urls {
		code, _ := ask(t, browser, url)
		require.Equal(t, http.StatusOK, code)
	}
	for i, url := range urls {
		base, token, _ := strings.Cut(url, "?token=")
		code, _ := ask(t, browser, base)
		require.Equal(t, http.StatusOK, code, "server %d", i)
		code, _ = ask(t, http.DefaultClient, base, "Cookie", "tasq-token="+token)
		require.Equal(t, http.StatusOK, code, "server %d", i)
		code, _ = ask(t, http.DefaultClient, base, "Cookie", "tasq-token=wrong")
		require.Equal(t, http.StatusForbidden, code, "server %d", i)
	}
}

// An address that other machines reach needs a proxy that says who signed in.
func TestOtherMachinesNeedASignIn(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "nonsense"} {
		_, err := serve.Open(enginetest.New(t).Engine, admin.Config{}, serve.Options{Listen: listen})
		require.ErrorIs(t, err, serve.ErrAddress, listen)
	}
	url := run(t, serve.Options{Listen: "127.0.0.1:0", TrustHeader: "X-User", Act: true})
	code, _ := ask(t, http.DefaultClient, url)
	require.Equal(t, http.StatusForbidden, code)
	code, text := ask(t, http.DefaultClient, url, "X-User", "ann")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "ann")
	require.NotContains(t, text, "read only")
}
