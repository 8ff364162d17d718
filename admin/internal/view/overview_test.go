package view

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// asked notes of which workflows cases are looked for.
type asked struct {
	store.Reader
	workflows []string
}

func (a *asked) Definitions(context.Context) ([]*store.Definition, error) {
	return []*store.Definition{{Name: "busy"}, {Name: "done"}}, nil
}

func (a *asked) Cases(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	a.workflows = append(a.workflows, f.Workflow)
	return nil, nil
}

func (a *asked) Ended(context.Context, store.RateFilter) ([]store.Ended, error) { return nil, nil }

// A workflow with a million completed cases and no running one costs the overview no search for its oldest running case.
func TestTheOverviewLooksForRunningCasesOnlyWhereThereAreSome(t *testing.T) {
	t.Parallel()
	reader := &asked{}
	r := &Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), Context: t.Context(), R: reader}
	_, err := new(Site).flowTable(r, []store.Count{{What: "case", Workflow: "busy", State: "started", N: 1}, {What: "case", Workflow: "done", State: "completed", N: 1_000_000}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"busy"}, reader.workflows)
}
