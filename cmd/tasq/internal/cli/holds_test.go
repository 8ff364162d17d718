package cli

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// loading is a workflow whose cases hold a crane from the task load until a person has done leave, and a berth of a key.
func loading(t *testing.T) *builder.Workflow[string] {
	b := builder.New[string]("loading")
	load := builder.Task(b, "load", builder.Work[string, string]{
		Input: builder.CaseInput(b), Run: func(_ context.Context, ship string) (string, error) { return ship, nil },
	})
	leave := builder.Task(b, "leave", builder.Work[string, string]{Input: builder.Output(load), Queue: "people"})
	b.Path(b.Start(), load, leave, b.End())
	b.Hold(builder.Takes(limit.Resource("crane", 1), 1), load, leave)
	b.Hold(builder.TakesBy(limit.Resource("berth", 1), 1, func(ship string) string { return ship }), load, leave)
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

// Which case holds a limit, and which waits for it, is in the database: beside the program that runs the workflow, and without it, the command, the
// pages and the API say so.
func TestHoldersAreKnownWithoutTheProgram(t *testing.T) {
	t.Parallel()
	onEachStore(t, holdersAreKnown)
}

func holdersAreKnown(t *testing.T, db store.Opener, at string) {
	w := loading(t)
	e, err := engine.Open(t.Context(), db, w)
	require.NoError(t, err)
	closed := false
	defer func() {
		if !closed {
			require.NoError(t, e.Close())
		}
	}()
	holder, err := w.Start(t.Context(), e, "ada")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		answer, err := e.Why(t.Context(), holder)
		require.NoError(t, err)
		return len(answer.Waits) == 1 && answer.Waits[0].Kind == why.Person
	}, time.Minute, time.Millisecond)
	waiter, err := w.Start(t.Context(), e, "bob")
	require.NoError(t, err)
	waits := "waits for 1 of slots crane, not enough are free, held by case " + holder.String()
	require.Eventually(t, func() bool { // until its job is in the line, and the store has said who holds the limit
		answer, err := e.Why(t.Context(), waiter)
		require.NoError(t, err)
		return len(answer.Waits) == 1 && len(answer.Waits[0].Limits) == 1 && len(answer.Waits[0].Limits[0].HeldBy) > 0
	}, time.Minute, time.Millisecond)
	says := func() {
		t.Helper()
		s, err := database.Of(at).Read(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		pages := admin.Handler(admin.Reading(s, nil), admin.Config{
			Access: func(*http.Request) (admin.User, error) { return admin.User{Name: "eve"}, nil }, Logger: slog.New(slog.DiscardHandler),
		})
		for _, answer := range []string{ran(t, at, "why", waiter.String()), visited(t, pages, "/cases/"+waiter.String()), visited(t, pages, "/api/v1/cases/"+waiter.String()+"/why")} {
			require.Contains(t, answer, waits)
		}
		for _, answer := range []string{ran(t, at, "why", holder.String()), visited(t, pages, "/cases/"+holder.String()), visited(t, pages, "/api/v1/cases/"+holder.String()+"/why")} {
			require.Contains(t, answer, "holds 1 of slots crane, from load until leave has ended")
			require.Contains(t, answer, "holds 1 of slots berth (of ada), from load until leave has ended")
		}
		require.Contains(t, visited(t, pages, "/cases/"+waiter.String()), `<a href="/cases/`+holder.String()+`">case `)
		require.Regexp(t, `crane +held by case `+holder.String()+` +1 +since load`, ran(t, at, "limits"))
		require.Contains(t, ran(t, at, "limits"), "held by case "+holder.String()+" (of ada)")
		require.Contains(t, visited(t, pages, "/limits"), "held since load, key ada")
	}
	late := func() { // as the doctor says it of a job that is overdue
		t.Helper()
		s, err := database.Of(at).Read(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
			jobs, err := r.Jobs(t.Context(), store.JobFilter{States: []state.JobState{state.JobPending}})
			require.NoError(t, err)
			require.Len(t, jobs, 1)
			said, err := waitsForLimits(t.Context(), r, jobs[0])
			require.Contains(t, said, waits)
			return err
		}))
	}
	says()
	answer, err := e.Why(t.Context(), holder)
	require.NoError(t, err)
	require.Len(t, answer.Holds, 2)
	require.NoError(t, e.Close())
	closed = true
	says()
	late()
}

func ran(t *testing.T, at string, args ...string) string {
	t.Helper()
	code, out, errs := tasq(t, at, args...)
	require.Zero(t, code, errs)
	return out
}

func visited(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}
