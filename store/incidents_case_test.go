package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// readingJobs counts the jobs that are read.
type readingJobs struct {
	store.Reader
	n *int
}

func (r readingJobs) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	all, err := r.Reader.Jobs(ctx, f)
	*r.n += len(all)
	return all, err
}

// A filter of incidents by a label selects the same whether few or many cases have the label, and reads no incident of the other cases if
// few have it.
func TestIncidentsByLabelReadThoseOfTheirCases(t *testing.T) {
	w := storetest.NewWorld(t, sqlite.Memory(), 1)
	var labeled *state.Case
	w.Update(func(b *storetest.Batch) {
		for range 30 {
			root := b.Start(`1`)
			b.Incident(root, root, "", &workitem.Failure{Code: "busy"})
		}
	})
	w.View(func(ctx context.Context, r store.Reader) {
		all, err := r.Cases(ctx, store.CaseFilter{})
		require.NoError(t, err)
		for _, c := range all {
			if c.Key != "" {
				labeled = c
			}
		}
		read := 0
		listed := func(few int) (ids []workitem.JobID) {
			read = 0
			v := store.ViewerOf(readingJobs{r, &read})
			for i, err := range store.IncidentsOf(ctx, v, store.IncidentFilter{Key: labeled.Key, Labels: labeled.Labels}, few) {
				require.NoError(t, err)
				ids = append(ids, i.ID)
			}
			return ids
		}
		scanned := listed(0)
		require.NotEmpty(t, scanned)
		require.Less(t, len(scanned), 30)
		require.Equal(t, 30, read)
		require.Equal(t, scanned, listed(len(scanned)))
		require.Equal(t, len(scanned), read, "no others")
	})
}
