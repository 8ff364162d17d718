package sqlite

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Every table and view of the schema is Tasq's own, but for that of the records.
func TestTheGuardKnowsTheSchema(t *testing.T) {
	s := openFile(t)
	found := map[string]bool{}
	err := s.w.each("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' "+
		"AND name <> 'records'", nil, func(r *tables.Row) error { found[r.Text()] = true; return nil })
	require.NoError(t, err)
	require.Equal(t, found, ours)
}

func openFile(t *testing.T) *Store {
	t.Helper()
	s, err := File(filepath.Join(t.TempDir(), "t.db")).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s.(*Store)
}

func TestDurabilityIsSetByHand(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	check := func() {
		for pragma, want := range map[string]int64{"synchronous": 2, "page_size": 4096, "cache_size": -32768,
			"wal_autocheckpoint": 10000, "application_id": applicationID} {
			got, _, err := s.w.number("PRAGMA " + pragma)
			require.NoError(t, err)
			require.Equal(t, want, got, pragma)
		}
	}
	check()
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE t (x)")
		return err
	}))
	s.window.commands = 1 // as if there were something to write
	require.NoError(t, s.Idle(t.Context()))
	check()

	s2, err := File(filepath.Join(t.TempDir(), "n.db"), LoseLastCommits()).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	got, _, err := s2.(*Store).w.number("PRAGMA synchronous")
	require.NoError(t, err)
	require.Equal(t, int64(1), got)
	require.NoError(t, s2.Close())
}

// A full disk undoes the update that met it, and nothing else: when there is space again, updates work again.
func TestAFullDisk(t *testing.T) {
	s := openFile(t)
	fill := func(tx store.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS t (x)")
		if err != nil {
			return err
		}
		_, err = tx.DB().ExecContext(t.Context(), "INSERT INTO t VALUES (zeroblob(1000000))")
		return err
	}
	require.NoError(t, s.Update(t.Context(), fill))
	pages, _, err := s.w.number("PRAGMA page_count")
	require.NoError(t, err)
	limit := func(n int64) {
		_, _, err := s.w.number("PRAGMA max_page_count = " + textNumber(n))
		require.NoError(t, err)
	}
	limit(pages + 2)
	err = s.Update(t.Context(), func(tx store.Tx) error {
		err := fill(tx)
		require.ErrorContains(t, err, "the disk is full")
		_, again := tx.DB().ExecContext(t.Context(), "CREATE TABLE autocommitted (x)")
		require.Error(t, again, "the transaction is gone, and nothing runs outside of it")
		return nil // even so
	})
	require.ErrorContains(t, err, "the disk is full")
	require.ErrorContains(t, err, s.path)
	limit(1 << 30)
	require.NoError(t, s.Update(t.Context(), fill))
	n, _, err := s.w.number("SELECT count(*) FROM t")
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	n, _, err = s.w.number("SELECT count(*) FROM sqlite_schema WHERE name = 'autocommitted'")
	require.NoError(t, err)
	require.Zero(t, n)
}

func textNumber(n int64) string { return strconv.FormatInt(n, 10) }

// A statement that rolls the transaction back by itself must not leave the ones after it to commit one by one.
func TestAStatementThatUndoesTheTransaction(t *testing.T) {
	s := openFile(t)
	exec := func(tx store.Tx, query string) error {
		_, err := tx.DB().ExecContext(context.Background(), query)
		return err
	}
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error { return exec(tx, "CREATE TABLE t (x UNIQUE)") }))
	err := s.Update(t.Context(), func(tx store.Tx) error {
		require.NoError(t, exec(tx, "INSERT INTO t VALUES (1)"))
		require.Error(t, exec(tx, "INSERT OR ROLLBACK INTO t VALUES (1)"))
		require.Error(t, exec(tx, "INSERT INTO t VALUES (2)"))
		return nil
	})
	require.ErrorContains(t, err, "the whole transaction was rolled back")
	n, _, err := s.w.number("SELECT count(*) FROM t")
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error { return exec(tx, "INSERT INTO t VALUES (3)") }))
}

// queriesOf returns the queries that a reader makes of a filter: those that its connection has prepared since.
func queriesOf(t *testing.T, s *Store, filter any) (queries []string) {
	t.Helper()
	ctx := t.Context()
	c, err := s.readers.Get(ctx)
	require.NoError(t, err)
	defer s.readers.Put(c, c.frozen == nil)
	before, r := maps.Clone(c.stmts), &reader{c: c, nets: s.nets}
	switch f := filter.(type) {
	case store.CaseFilter:
		_, err = r.Cases(ctx, f)
	case store.ItemFilter:
		_, err = r.Items(ctx, f)
	case store.JobFilter:
		_, err = r.Jobs(ctx, f)
	case store.StepFilter:
		_, err = r.Steps(ctx, f)
	case store.JournalFilter:
		_, err = r.Journal(ctx, f)
	}
	require.NoError(t, err)
	for query := range c.stmts {
		if before[query] == nil {
			queries = append(queries, query)
		}
	}
	require.NotEmpty(t, queries, "%+v", filter)
	return queries
}

// Queries for live rows, for the rows of a case and for pages use an index: none reads a whole table.
func TestQueriesUseTheirIndexes(t *testing.T) {
	s := openFile(t)
	plan := func(query string) string {
		var lines []string
		require.NoError(t, s.w.each("EXPLAIN QUERY PLAN "+strings.ReplaceAll(query, "?", "'x'"), nil,
			func(r *tables.Row) error {
				r.Number()
				r.Number()
				r.Number()
				lines = append(lines, r.Text())
				return r.Err
			}))
		return strings.Join(lines, "; ")
	}
	history := plan("SELECT * FROM history WHERE case_id = ? ORDER BY seq, number")
	require.NotRegexp(t, `SCAN (c|r|j|p)( |;|$)`, history, "it reads the entries of one case")
	queue, page := "office", store.Page{Limit: 5}
	live, started := []workitem.State{workitem.Initialized}, []workitem.State{workitem.Started}
	failed, final := []workitem.State{workitem.Failed}, []workitem.State{workitem.Completed, workitem.Canceled}
	id := workitem.CaseID{1}
	for index, filters := range map[string][]any{
		"cases_children": {store.CaseFilter{Root: id}},
		"cases_live": {store.CaseFilter{States: []state.CaseState{state.CaseStarted}, Fingerprint: "x"},
			store.CaseFilter{Page: store.Page{Desc: true}, States: []state.CaseState{state.CaseStarted}}},
		"cases_predecessor":   {store.CaseFilter{Page: page, Predecessors: []workitem.CaseID{id, {2}}}},
		"cases_failed":        {store.CaseFilter{Page: page, States: []state.CaseState{state.CaseFailed}}},
		"cases_canceled":      {store.CaseFilter{Page: page, States: []state.CaseState{state.CaseCanceled}}},
		"work_items_canceled": {store.ItemFilter{Page: page, States: []workitem.State{workitem.Canceled}}},
		"cases_workflow_live": {store.CaseFilter{Page: page, Workflow: "x", States: []state.CaseState{state.CaseStarted}},
			store.CaseFilter{Page: store.Page{Desc: true}, Workflow: "x", States: []state.CaseState{state.CaseStarted}}},
		"cases_workflow_failed": {store.CaseFilter{Page: page, Workflow: "x", States: []state.CaseState{state.CaseFailed}}},
		"work_items_live":       {store.ItemFilter{Page: store.Page{Desc: true}, States: live}},
		"work_items_started": {store.ItemFilter{Page: page, Holder: "ann"}, store.ItemFilter{Page: page, Holder: "ann", Task: "x"}, store.ItemFilter{Page: page, States: started},
			store.ItemFilter{Page: store.Page{Desc: true}, States: started, Task: "x"}},
		"INDEX work_items_started": {store.ItemFilter{Page: page, States: started, Queue: &queue}, store.ItemFilter{Page: page, Holder: "ann", Queue: &queue}},
		"work_items_queue":         {store.ItemFilter{Page: page, Queue: &queue, States: []workitem.State{workitem.Initialized}}},
		"work_items_failed":        {store.ItemFilter{Page: page, States: failed}},
		"work_items_retried":       {store.ItemFilter{Page: page, Attempt: 3}},
		"work_items_case":          {store.ItemFilter{Case: id, States: []workitem.State{workitem.Completed, workitem.Failed}}},
		"PRIMARY KEY":              {store.ItemFilter{Page: store.Page{After: "x", Limit: 5}}},
		"work_items_named":         {store.ItemFilter{Page: page, Queue: &queue}, store.ItemFilter{Page: page, Queue: &queue, States: final}},
		"jobs_named":               {store.JobFilter{Page: page, Queue: &queue, States: []state.JobState{state.JobPending}}},
		"jobs_live":                {store.JobFilter{Case: id, States: []state.JobState{state.JobPending}}},
		"jobs_due":                 {store.JobFilter{Due: time.Now(), States: []state.JobState{state.JobPending}}},
		"jobs_incidents": {store.JobFilter{Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}},
			store.JobFilter{Page: store.Page{Desc: true}, Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}}},
		"USING PRIMARY KEY (id=?)": {store.JobFilter{IDs: []workitem.JobID{{1}}, Page: page}},
		"jobs_failed":              {store.JobFilter{Page: page, States: []state.JobState{state.JobFailed}}},
		"jobs_case":                {store.JobFilter{Case: id}},
		"journal_named":            {store.JournalFilter{Named: true, Desc: true}, store.JournalFilter{Named: true, Limit: 5, After: 3}},
		"journal_actor":            {store.JournalFilter{By: "ann", Desc: true, Limit: 5}},
		"steps_case":               {store.StepFilter{Page: page, Case: id}, store.StepFilter{Page: store.Page{Desc: true, Limit: 5}, Case: id}},
		"steps_case (":             {store.StepFilter{Page: page, Root: id}, store.StepFilter{Roots: []workitem.CaseID{id}}},
		"steps_owner":              {store.StepFilter{Item: workitem.ID{1}}, store.StepFilter{Job: workitem.JobID{1}}},
	} {
		for _, filter := range filters {
			for _, query := range queriesOf(t, s, filter) {
				got := plan(query)
				require.Contains(t, got, index, query)
				require.NotRegexp(t, `SCAN \w+(;|$)`, got, query)
				if !slices.Contains([]string{"INDEX work_items_started", "cases_predecessor", "steps_case (", "steps_owner", "cases_children", "work_items_case", "jobs_live"}, index) { // those sort what a case has
					require.NotContains(t, got, "TEMP B-TREE", query)
				}
			}
		}
	}
}

// Most items of most databases are in the default queue, which has no index: a page of them is read in the order of their ids.
func TestItemsOfTheDefaultQueueAreNotSorted(t *testing.T) {
	s, queue := openFile(t), ""
	for _, states := range [][]workitem.State{nil, {workitem.Completed}, {workitem.Started, workitem.Failed}} {
		for _, query := range queriesOf(t, s, store.ItemFilter{Page: store.Page{Limit: 5}, Queue: &queue, States: states}) {
			require.NoError(t, s.w.each("EXPLAIN QUERY PLAN "+strings.ReplaceAll(query, "?", "'x'"), nil, func(r *tables.Row) error {
				require.NotContains(t, r.Values[3], "TEMP B-TREE", query)
				return nil
			}))
		}
	}
}

func TestExplainKeepsTheCause(t *testing.T) {
	plain := errors.New("plain")
	require.Equal(t, plain, explain("x", plain))
	require.NoError(t, explain("x", nil))
}

// A reader of a file whose owner lags behind finds rows by the same indexes as any other: the rows of both tables are
// merged as they come, and no page of a listing goes through all of them.
func TestTheOverlayUsesTheIndexesBelow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s, err := File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	c, err := s.(*Store).connectReader()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.close()) }()
	require.NoError(t, c.exec("PRAGMA query_only=OFF; BEGIN"))
	require.NoError(t, makeOverlay(c))
	for _, query := range []string{
		"SELECT i.id, i.root, i.workflow FROM " + locatedItems + " i ORDER BY i.id LIMIT 9",
		"SELECT i.id FROM " + locatedItems + " i WHERE i." + liveItem + " AND i.id > 'x' ORDER BY i.id LIMIT 9",
		"SELECT id FROM work_items ORDER BY id LIMIT 9",
		"SELECT id FROM cases ORDER BY id DESC LIMIT 9",
		"SELECT id FROM jobs ORDER BY id LIMIT 9",
		"SELECT id FROM steps ORDER BY id LIMIT 9",
		"SELECT id FROM messages ORDER BY id LIMIT 9",
	} {
		plan := ""
		require.NoError(t, c.each("EXPLAIN QUERY PLAN "+query, nil, func(r *tables.Row) error {
			plan += r.Values[3].(string) + "\n"
			return nil
		}))
		require.Contains(t, plan, "MERGE (UNION ALL)", query)
		require.NotContains(t, plan, "TEMP B-TREE", query)
		require.NotContains(t, plan, "MATERIALIZE", query)
	}
	// The few rows that are newer than the tables are sorted, and those below come from the index in their order.
	plan := ""
	require.NoError(t, c.each("EXPLAIN QUERY PLAN SELECT i.id, -i.priority FROM "+locatedItems+" i WHERE i."+liveItem+
		" AND i.queue = 'x' ORDER BY -i.priority, i.id LIMIT 9", nil, func(r *tables.Row) error {
		plan += r.Values[3].(string) + "\n"
		return nil
	}))
	require.Contains(t, plan, "MERGE (UNION ALL)")
	_, below, _ := strings.Cut(plan, "RIGHT")
	require.Contains(t, below, "work_items_queue")
	require.NotContains(t, below, "TEMP B-TREE")
}

// The error of a copy for which there is no room names the copy and not the database, and its cause once.
func TestTheErrorOfACopyOnAFullDisk(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a.db"), filepath.Join(t.TempDir(), "copy.db")
	opened, err := File(from).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	s := opened.(*Store)
	full := copyPages(t.Context(), s.w, copySource(to)+"&_pragma=max_page_count(3)", nil)
	err = explainCopy(from, to, full)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Equal(t, 1, strings.Count(err.Error(), "(13)"), "%v", err)
	require.Contains(t, err.Error(), to+": the store is unavailable: the disk is full, so there is no copy; free some space")
	require.NoError(t, copyPages(t.Context(), s.w, copySource(to), nil))
	require.NoError(t, s.Close())
}
