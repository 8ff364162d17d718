package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatementsThatLeaveTheTransactionAreRefused(t *testing.T) {
	for _, query := range []string{
		"COMMIT", " commit ;", "/* a /* b */ c */ END", "-- x\nROLLBACK", "SELECT 1; COMMIT", "SELECT ';'; ABORT",
		"SELECT $x$;$x$; START TRANSACTION", `SELECT E'\'; '; SAVEPOINT a`, `SELECT ";" FROM t; RELEASE a`, "SELECT 'it''s'; BEGIN",
		"PREPARE TRANSACTION 'a'", "SET search_path = a", "SET SESSION AUTHORIZATION a", "RESET ALL", "DISCARD ALL", "LISTEN a",
		"DEALLOCATE ALL", "SELECT $1; COMMIT", "SET TRANSACTION READ WRITE",
	} {
		require.Error(t, allowed(query), query)
	}
	for _, query := range []string{
		"", ";", "SELECT 1", "SELECT 'COMMIT'", "SELECT $$;COMMIT$$", "SELECT $a$;COMMIT;$$;$a$", "SELECT 1 /* ; COMMIT */", "SELECT 1 -- ; COMMIT",
		`SELECT "a;COMMIT" FROM t`, `SELECT E'\';COMMIT'`, "SET LOCAL work_mem = '1MB'", "SET CONSTRAINTS ALL DEFERRED", "PREPARE a AS SELECT 1",
		"INSERT INTO commit_log VALUES ($1, $2)", "SELECT 1; SELECT 2;", "WITH x AS (SELECT 1) SELECT * FROM x; TABLE t",
		"UPDATE a SET b = 'commit' WHERE c = 'rollback; begin'", "DO $$ BEGIN PERFORM 1; END $$", "SELECT 'unfinished; COMMIT",
	} {
		require.NoError(t, allowed(query), query)
	}
}
