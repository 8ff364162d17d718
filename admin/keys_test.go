package admin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A case that waits for a key offers the command for the key: for its own in the program that runs its jobs, and elsewhere for those that may be its
// key. Who sees a key masked is offered none, and never the command for all keys in its place.
func TestACaseOffersTheCommandsForItsKey(t *testing.T) {
	t.Parallel()
	same := func(_ context.Context, s string) (string, error) { return s, nil }
	mail := builder.MustFunc("mail", same, builder.OnQueue("mails"), builder.FairBy(strings.Clone))
	post := builder.MustFunc("post", same, builder.Limits(builder.TakesBy(limit.Resource("customers", 5), 1, strings.Clone)))
	ask := builder.MustFunc("ask", same, builder.Limits(builder.Takes(limit.Resource("lines", 5), 1).AnyOf("key-1", "key-2")))
	file := filepath.Join(t.TempDir(), "owned.db")
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), sqlite.File(file), mail, post, ask)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for _, c := range []workflow.Command{workflow.PauseKey("mails", "lovelace"), workflow.PauseKey("mails", "byron"), workflow.SetLimitOf("customers", "lovelace", 0),
		workflow.SetLimitOf("customers", "byron", 3), workflow.SetLimitOf("lines", "key-1", 0), workflow.SetLimitOf("lines", "key-2", 0)} {
		_, err := e.Do(t.Context(), c)
		require.NoError(t, err)
	}
	reader, err := sqlite.File(file).Open(t.Context(), store.Options{Now: retry.SystemClock.Now, ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	show := func(_ admin.User, kind, name string, raw json.RawMessage) json.RawMessage {
		if kind == "queue" || kind == "limit" {
			return json.RawMessage(`"hidden"`)
		}
		return raw
	}
	pages := func(b admin.Backend, c admin.Config) http.Handler {
		c.Access, c.Logger = as("eve"), slog.New(slog.DiscardHandler)
		return admin.Handler(b, c)
	}
	post1 := sqlite.File(file).(poster).Post
	own, asked := pages(e, admin.Config{}), pages(admin.Reading(reader, post1), admin.Config{})
	masked, maskedToo := pages(e, admin.Config{Show: show}), pages(admin.Reading(reader, post1), admin.Config{Show: show})
	resume := func(key string) string { return "kind=resume-queue&amp;queue=mails&amp;queueKey=" + key }
	set := func(limit, key string) string {
		return "kind=set-limit&amp;limit=" + limit + "&amp;limitKey=" + key
	}
	for _, c := range []struct {
		flow       string
		own, asked []string // the links
		none       []string // in neither
	}{
		{"mail", []string{resume("lovelace")}, []string{resume("lovelace"), resume("byron")}, []string{`queue=mails"`}},
		{"post", []string{set("customers", "lovelace")}, []string{set("customers", "lovelace")}, []string{set("customers", "byron"), `limit=customers"`}},
		{"ask", []string{set("lines", "key-1"), set("lines", "key-2")}, []string{set("lines", "key-1"), set("lines", "key-2")}, []string{`limit=lines"`}},
	} {
		started, err := e.Do(t.Context(), workflow.Start(c.flow, []byte(`"lovelace"`)))
		require.NoError(t, err)
		offers := func(h http.Handler, links []string) {
			page := waits(t, h, started.Case)
			for _, link := range links {
				require.Contains(t, page, link)
			}
			require.Equal(t, len(links), strings.Count(page, `class="button small`), page)
			for _, link := range c.none {
				require.NotContains(t, page, link)
			}
		}
		offers(own, c.own)
		offers(asked, c.asked)
		for _, h := range []http.Handler{masked, maskedToo} {
			page := waits(t, h, started.Case)
			require.NotContains(t, page, "Key=")
			require.NotContains(t, page, "lovelace")
			require.NotContains(t, page, "kind=resume-queue")
		}
	}
}

// waits is what the page of a case says that it waits for.
func waits(t *testing.T, h http.Handler, id workitem.CaseID) string {
	t.Helper()
	page := get(h, "/cases/"+id.String()).Body.String()
	_, part, found := strings.Cut(page, `class="card why"`)
	require.True(t, found, page)
	part, _, _ = strings.Cut(part, "</section>")
	return part
}
