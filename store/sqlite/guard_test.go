package sqlite

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// inDB runs the user's SQL in a transaction of its own, which is undone.
func inDB(t *testing.T, s *Store, before []string, query string) (err error) {
	t.Helper()
	undo := s.Update(t.Context(), func(tx store.Tx) error {
		for _, b := range before {
			_, err := tx.DB().ExecContext(t.Context(), b)
			require.NoError(t, err, b)
		}
		_, err = tx.DB().ExecContext(t.Context(), query)
		return errUndo
	})
	require.ErrorIs(t, undo, errUndo, query)
	return err
}

var errUndo = errors.New("undo")

func TestTheUsersSQLMay(t *testing.T) {
	s := openFile(t)
	tables := []string{"CREATE TABLE t (x, jobs)", "CREATE TABLE u (x)", "CREATE TABLE my_jobs (x)"}
	for _, query := range []string{
		"SELECT 1", "", ";;", "-- COMMIT\nSELECT 1", "/* ; COMMIT */ SELECT ';COMMIT' AS \"begin\", 1 AS [end]",
		"INSERT INTO t (x) VALUES ('it''s; ROLLBACK')", "PRAGMA table_info(t)", "PRAGMA main.index_list('t')", "PRAGMA user_version",
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM u; END; INSERT INTO t (x) VALUES (1)",
		"CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", "WITH a AS (SELECT 1) SELECT * FROM a", "EXPLAIN DELETE FROM t",
		"SELECT * FROM jobs", "SELECT * FROM pragma_table_info('jobs')", "DELETE FROM my_jobs", "INSERT INTO t (x) SELECT id FROM cases",
		"INSERT INTO t (jobs) VALUES ('jobs')", "WITH a AS (SELECT id FROM jobs) DELETE FROM t WHERE x IN (SELECT id FROM a)",
		"CREATE TABLE v AS SELECT * FROM journal", "CREATE VIEW v AS SELECT * FROM history", "CREATE INDEX i ON t (x)",
		"DROP TABLE t", "ALTER TABLE t RENAME TO other", "ALTER TABLE t ADD COLUMN y", "CREATE TEMP TABLE mine (x); INSERT INTO mine VALUES (1)",
		"CREATE TABLE seq (x INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO seq VALUES (NULL); DROP TABLE seq", "REINDEX t",
	} {
		require.NoError(t, inDB(t, s, tables, query), query)
	}
}

func TestTheUsersSQLMayNot(t *testing.T) {
	s := openFile(t)
	tables := []string{"CREATE TABLE t (x)", "CREATE TEMP TABLE mine (x)", "CREATE VIEW v AS SELECT 1 AS x",
		"CREATE TRIGGER sly AFTER INSERT ON t BEGIN DELETE FROM journal; END",
		"CREATE TRIGGER slyer INSTEAD OF DELETE ON v BEGIN UPDATE meta SET value = 0; END"}
	for _, query := range []string{
		"COMMIT", "commit", " \t\nCommit", "-- x\nCOMMIT", "/**/END", "SELECT 1; ROLLBACK", "SELECT ';'; BEGIN",
		"SAVEPOINT x", "RELEASE tasq", "ROLLBACK TO tasq", "ATTACH 'x' AS y", "DETACH y", "PRAGMA synchronous=OFF",
		"PRAGMA synchronous = 0", "PRAGMA writable_schema=ON", "PRAGMA main.query_only(0)", "PRAGMA foreign_keys=1",
		"PRAGMA journal_mode(DELETE)", "PRAGMA wal_checkpoint", "PRAGMA user_version=7", "\ufeffCOMMIT",
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END; COMMIT",
		"DELETE FROM jobs", "delete from \"jobs\" where 1", "UPDATE OR IGNORE main.Cases SET state = 1", "DROP TABLE IF EXISTS [steps]",
		"INSERT OR REPLACE INTO work_items (id) VALUES (1)", "REPLACE INTO `meta` VALUES (1, 1)", "ALTER TABLE journal ADD x",
		"ALTER TABLE journal RENAME TO other", "DROP VIEW tasks", "SELECT 1; DELETE FROM jobs", "DELETE /* all */ FROM jobs",
		"DELETE FROM 'jobs'",
		"WITH a AS (SELECT 1) DELETE FROM journal", "WITH a(x) AS (SELECT 1) UPDATE jobs SET state = 'failed' WHERE 1 IN (SELECT x FROM a)",
		"INSERT INTO meta VALUES ('x', 1) ON CONFLICT DO NOTHING", "INSERT INTO t VALUES (1)", "DELETE FROM v", "DELETE FROM journal RETURNING seq",
		"CREATE TRIGGER x AFTER INSERT ON journal BEGIN SELECT 1; END", "CREATE TEMP TRIGGER x AFTER INSERT ON cases BEGIN SELECT 1; END",
		"CREATE UNIQUE INDEX i ON journal (root)", "DROP INDEX jobs_due", "CREATE TEMP TABLE journal (seq, events)", "CREATE TEMP TABLE Records (collection)",
		"CREATE TEMP VIEW cases AS SELECT 1", "ALTER TABLE mine RENAME TO journal", "UPDATE sqlite_schema SET sql = ''",
		"EXPLAIN QUERY PLAN DELETE FROM journal",
	} {
		require.Error(t, inDB(t, s, tables, query), query)
	}
	require.ErrorContains(t, inDB(t, s, tables, "INSERT INTO t VALUES (1)"), "the trigger or view sly changes journal")
	require.ErrorContains(t, inDB(t, s, tables, "WITH a AS (SELECT 1) DELETE FROM journal"), "DELETE of journal is not allowed")
	require.ErrorContains(t, inDB(t, s, tables, "ROLLBACK"), "return an error to undo")
}

// A statement that was prepared while it was harmless is compiled again when the schema has changed, and asked about again.
func TestAPreparedStatementIsAskedAboutAgain(t *testing.T) {
	s := openFile(t)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		db := tx.DB()
		_, err := db.ExecContext(t.Context(), "CREATE TABLE t (x)")
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "CREATE TRIGGER sly AFTER INSERT ON t BEGIN DELETE FROM journal; END")
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
		return err
	})
	require.ErrorContains(t, err, "the trigger or view sly changes journal")
}
