package observe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/observe"
	"github.com/tasq-dev/tasq/observe/prometheus"
)

// A Prometheus server that reads an engine has an answer for each query of the dashboard.
func TestPrometheusAnswersTheQueriesOfTheDashboard(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil && os.Getenv("TASQ_REQUIRE_PROMETHEUS") == "" {
		t.Skip("there is no program prometheus in the PATH")
	}
	meters, handler, err := prometheus.New()
	require.NoError(t, err)
	o, err := observe.New(observe.Options{Meters: meters})
	require.NoError(t, err)
	w := orders(t)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{o.Middleware()}}, w)
	unregister, err := o.Watch(e.Engine)
	require.NoError(t, err)
	page := httptest.NewServer(handler)
	t.Cleanup(page.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server := startPrometheus(t, ctx, strings.TrimPrefix(page.URL, "http://"))
	for _, p := range readDashboard(t) {
		for _, target := range p.Targets {
			query := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			for !answered(ctx, server, query) { // a rate needs two readings between which something happened
				require.NoError(t, ctx.Err(), "panel %s: no answer to %s", p.Title, query)
				_, err = w.Start(ctx, e, "book")
				require.NoError(t, err)
				e.Drain()
				e.Advance(2 * time.Hour)
			}
		}
	}
	require.NoError(t, unregister())
}

// startPrometheus starts a server that reads a page several times a second, and returns its address.
func startPrometheus(t *testing.T, ctx context.Context, page string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs: [{job_name: tasq, static_configs: [{targets: [%q]}]}]\n", page)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	ctx, stop := context.WithCancel(ctx)
	server := exec.CommandContext(ctx, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	server.Stderr = os.Stderr
	require.NoError(t, server.Start())
	t.Cleanup(func() { stop(); _ = server.Wait() })
	return "http://" + address
}

// answered reports whether a server knows a value for a query.
func answered(ctx context.Context, server, query string) bool {
	r, err := http.NewRequestWithContext(ctx, "GET", server+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false // it is not up yet
	}
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return false
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			return true
		}
	}
	return false
}
