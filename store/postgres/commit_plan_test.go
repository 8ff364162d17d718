package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// planNode is a node of what EXPLAIN prints as JSON.
type planNode struct {
	Type  string     `json:"Node Type"`
	Table string     `json:"Relation Name"`
	Index string     `json:"Index Name"`
	Cond  string     `json:"Index Cond"`
	Plans []planNode `json:"Plans"`
}

// unkeyed lists how a plan reads tables otherwise than by the primary key of what it looks for.
func (n planNode) unkeyed() (all []string) {
	scans := strings.HasSuffix(n.Type, "Scan") && (n.Table != "" || n.Index != "")
	if keyed := (n.Index == n.Table+"_pkey" || n.Index == "requests_open") && n.Cond != ""; scans && !keyed {
		all = append(all, fmt.Sprintf("%s of %s by %q: %s", n.Type, n.Table, n.Index, n.Cond))
	}
	for _, sub := range n.Plans {
		all = append(all, sub.unkeyed()...)
	}
	return all
}

// The plans of a commit find rows by their primary keys, whatever the server knows of the tables when it makes them: a session keeps a plan
// until the next ANALYZE.
func TestACommitFindsRowsByTheirKeysUnderEachStatistics(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	exec := func(query string) {
		t.Helper()
		_, err := c.Exec(t.Context(), query)
		require.NoError(t, err, query)
	}
	for _, query := range postgres.WriterSettings() {
		exec(query)
	}
	require.Empty(t, unkeyed(t, c)) // of tables that nothing is known of, if no other test has had the database
	exec("VACUUM ANALYZE")
	require.Empty(t, unkeyed(t, c), "empty tables")
	var roots []workitem.CaseID
	start := func(n int) {
		w.Update(func(b *storetest.Batch) {
			for range n {
				roots = append(roots, b.Start(`1`))
			}
		})
	}
	start(1)
	exec("ANALYZE")
	require.Empty(t, unkeyed(t, c), "one row")
	start(30)
	require.Empty(t, unkeyed(t, c), "30 rows, which count as one")
	exec("VACUUM ANALYZE")
	require.Empty(t, unkeyed(t, c), "30 rows")
	grow(t, dsn, roots[0], manyCases, "VACUUM ANALYZE")
	require.Empty(t, unkeyed(t, c), "many rows")
	exec("DELETE FROM tasq.jobs WHERE root NOT IN (SELECT root FROM tasq.cases LIMIT 1)")
	exec("VACUUM ANALYZE tasq.jobs")
	require.Empty(t, unkeyed(t, c), "one job of many cases")
}

// unkeyed lists what the plans of a commit's statements read otherwise than by primary keys.
func unkeyed(t *testing.T, c *pgx.Conn) (all []string) {
	t.Helper()
	for _, query := range postgres.CommitStatements() {
		_, err := c.Exec(t.Context(), "PREPARE s AS "+query)
		require.NoError(t, err, query)
		var params int
		require.NoError(t, c.QueryRow(t.Context(), "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 's'").Scan(&params))
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", params), ", ")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		var plan []byte
		require.NoError(t, c.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE s"+nulls).Scan(&plan))
		var trees []struct{ Plan planNode }
		require.NoError(t, json.Unmarshal(plan, &trees))
		for _, tree := range trees {
			for _, scan := range tree.Plan.unkeyed() {
				all = append(all, scan+" in "+query)
			}
		}
		_, err = c.Exec(t.Context(), "DEALLOCATE s")
		require.NoError(t, err)
	}
	return all
}
