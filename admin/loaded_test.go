package admin_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// formLinks returns the links of a page to forms of commands, each once.
func formLinks(t *testing.T, body string) (all []url.Values) {
	t.Helper()
	seen := make(map[string]bool)
	for _, part := range strings.Split(body, `href="/act?`)[1:] {
		query, _, _ := strings.Cut(part, `"`)
		v, err := url.ParseQuery(strings.ReplaceAll(query, "&amp;", "&"))
		require.NoError(t, err)
		if !seen[query] {
			all = append(all, v)
		}
		seen[query] = true
	}
	return all
}

// filled are the fields of the forms of commands on a case that work without its definition.
func filled(id string) map[string][]string {
	return map[string][]string{"send": {"event", "paid", "payload", "1"}, "remove": {"confirm", id[len(id)-4:]}}
}

// The page of a case whose definition no engine has says so, and offers only commands that work: each form that it links to is accepted.
func TestACaseWithoutItsDefinitionOffersWhatWorks(t *testing.T) {
	t.Parallel()
	all := workflows(t, likely)
	o := newOfficeOf(t, likely)
	suspended, err := o.Do(t.Context(), workflow.Start("bill", nil))
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Suspend(suspended.Case)))
	var items []workitem.ID
	for it, err := range store.AllItems(t.Context(), o, store.ItemFilter{}) {
		require.NoError(t, err)
		items = append(items, it.ID)
	}
	o.Crash(o.bulk)
	o.bulk.Serve(o.Engine)
	h := o.handler(admin.Config{Access: as("eve")})
	for name, id := range map[string]workitem.CaseID{"claim": o.claim, "bill": o.bill, "order": o.order, "suspended": suspended.Case, "failed": o.failed} {
		body := get(h, "/cases/"+id.String()).Body.String()
		require.Contains(t, body, "No open engine has workflow ", name)
		forms := formLinks(t, body)
		require.NotEmpty(t, forms, name)
		for _, form := range forms {
			fields := filled(id.String())[form.Get("kind")]
			answer := submit(t, h, "/act?"+form.Encode(), fields...)
			require.Equal(t, http.StatusSeeOther, answer.Code, "%s: %v: %s", name, form, answer.Body)
		}
	}
	for _, id := range items {
		body := get(h, "/items/"+id.String()).Body.String()
		require.Empty(t, formLinks(t, body), "%s", body)
	}
	o.Crash(append(all, o.bulk)...)
}

// A program that owns the database rejects all that others send for a case whose definition it does not have, so nothing is offered.
func TestAnotherProgramOffersNothingForACaseWithoutItsDefinition(t *testing.T) {
	t.Parallel()
	o := newOfficeOf(t, likely)
	for _, known := range []bool{false, true} {
		ask := func(context.Context) (why.Here, error) {
			return why.Here{Known: func(string) bool { return known }}, nil
		}
		h := admin.Handler(admin.Reading(o, nil, admin.Ask(ask)), admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
		for _, id := range []workitem.CaseID{o.claim, o.bill, o.order} {
			body := get(h, "/cases/"+id.String()).Body.String()
			require.Equal(t, known, len(formLinks(t, body)) > 0)
			require.Equal(t, !known, strings.Contains(body, "commands that need the workflow are rejected"))
		}
	}
}
