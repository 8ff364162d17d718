package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasq-dev/tasq/store/internal/tables"
)

// The statements that write rows, many at a time.
var (
	upsertCases    = counted(tables.Cases, "case", "''", caseColumns(nil), "workflow")
	upsertItems    = counted(tables.Items, "item", "u.task", itemColumns(nil), "root", "workflow")
	upsertJobs     = counted(tables.Jobs, "job", "u.task", jobColumns(nil), "workflow", "holder")
	upsertSteps    = plain(tables.Steps, stepColumns(nil), "root")
	upsertMessages = plain(tables.Messages, messageColumns(nil), "root")
)

// source is the rows that are given, as a table u: the columns of the table, and then further ones.
func source(t tables.Table, given []any, further []string) string {
	params := make([]string, len(given))
	for i, column := range given {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, typeOf(column))
	}
	columns := t.Columns()
	for _, name := range further {
		if len(columns) < len(given) {
			columns = append(columns, name)
		}
	}
	return "SELECT * FROM unnest(" + strings.Join(params, ", ") + ") AS u(" + strings.Join(columns, ", ") + ")"
}

func typeOf(column any) string {
	switch column.(type) {
	case []pgtype.UUID:
		return "uuid"
	case []string, []pgtype.Text:
		return "text"
	case []int64, []pgtype.Int8:
		return "bigint"
	case []bool:
		return "boolean"
	}
	panic(fmt.Sprintf("%T is no type of a column", column))
}

// plain is the statement for a table of which nothing is counted.
func plain(t tables.Table, given []any, further ...string) string {
	return upsert(t, further, "("+source(t, given, further)+")")
}

// upsert writes what a table u has. A row of cases says which revision of the tree wrote it. A job that another engine is at work on
// stays with it.
func upsert(t tables.Table, further []string, from string) string {
	columns := t.Columns()
	for _, name := range further {
		if name == "root" {
			columns = append(columns, name)
		}
	}
	values, changes := "u."+strings.Join(columns, ", u."), t.Changes
	if t.Name == tables.Cases.Name {
		columns, changes = append(columns, "rev"), append(changes[:len(changes):len(changes)], "rev")
		values += ", (SELECT j.rev FROM @.journal j WHERE j.root = u.root ORDER BY j.rev DESC LIMIT 1)"
	}
	set := make([]string, len(changes))
	for i, c := range changes {
		set[i] = c + " = excluded." + c
	}
	if t.Name == tables.Jobs.Name {
		columns, values = append(columns, "holder"), values+", u.holder"
		set = append(set, "holder = CASE WHEN jobs.state = 'running' AND excluded.state = 'running' AND jobs.fence = excluded.fence "+
			"THEN jobs.holder ELSE excluded.holder END")
	}
	return "INSERT INTO @." + t.Name + " (" + strings.Join(columns, ", ") + ") SELECT " + values + " FROM " + from + " u " +
		"ORDER BY u.root, u.id ON CONFLICT (root, id) DO UPDATE SET " + strings.Join(set, ", ")
}

// counted is the statement for a table whose rows are counted by state. It compares with the rows as they were: all parts of
// a statement see the same state.
func counted(t tables.Table, what, task string, given []any, further ...string) string {
	before := "u CROSS JOIN LATERAL (SELECT * FROM @." + t.Name + " t WHERE t.root = u.root AND t.id = u.id OFFSET 0) t" // each by its key, as in stored
	ended := ""
	if t.Name == tables.Items.Name {
		ended = ", e AS (INSERT INTO @.ended_deltas (hour, workflow, task, state, took, n) SELECT hour, workflow, task, state, took, sum(n) FROM (" +
			"SELECT " + endedColumns("u") + ", 1 AS n FROM u WHERE " + hasEnded("u") + " UNION ALL " +
			"SELECT " + endedColumns("t") + ", -1 FROM " + before + " WHERE " + hasEnded("t") + ") d " +
			"GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0)"
	}
	return "WITH u AS MATERIALIZED (" + source(t, given, further) + "), " +
		"w AS (" + upsert(t, further, "u") + ")" + ended + " " +
		"INSERT INTO @.count_deltas (what, workflow, task, state, n) " +
		"SELECT '" + what + "', d.workflow, d.task, d.state, sum(d.n) FROM (" +
		"SELECT u.workflow, " + task + " AS task, u.state, 1 AS n FROM u UNION ALL " +
		"SELECT u.workflow, " + task + ", t.state, -1 FROM " + before + ") d " +
		"GROUP BY 1, 2, 3, 4 HAVING sum(d.n) <> 0"
}

// hasEnded is the condition that an item counts as one that ended.
func hasEnded(table string) string { return table + ".state IN ('completed', 'failed')" }

// endedColumns are the hour, workflow, task, state and class of duration that an item of a table counts as, see [store.EndedOf]; a table u has the
// workflows.
func endedColumns(table string) string {
	return strings.NewReplacer("t.", table+".").Replace("floor(t.ended / 3600000000.0)::bigint AS hour, ") + "u.workflow, " +
		strings.NewReplacer("t.", table+".").Replace("t.task, t.state, CASE WHEN t.state = 'completed' AND t.started IS NOT NULL THEN "+tookClass+" ELSE 0 END AS took")
}

// tookClass is [store.TookClass]: the position of the highest one among 64 bits is 64 less its power of two.
const tookClass = "(SELECT CASE WHEN us < 8 THEN us ELSE 8 * (62 - p) + ((us >> (61 - p)) & 7) END FROM (SELECT us, position('1' IN us::bit(64)::text) AS p " +
	"FROM (SELECT greatest(t.ended - t.started, 0) AS us) a) b)"
