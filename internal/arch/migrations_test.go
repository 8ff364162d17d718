package arch_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/sqlkit"
)

// changesTables matches a statement after which programs that do not know it cannot use the tables as before.
var changesTables = regexp.MustCompile(`(?i)\b(DROP (TABLE|COLUMN|VIEW|FUNCTION|TRIGGER)|RENAME|ALTER COLUMN \w+ (TYPE|SET NOT NULL|DROP DEFAULT))\b`)

// TestMigrationsOnlyAdd requires that a migration either only adds, so that programs that do not know it continue, or names the
// oldest program that can run with it.
func TestMigrationsOnlyAdd(t *testing.T) {
	for _, folder := range []string{"../../store/postgres/schema", "../../store/sqlite/schema"} {
		all, err := sqlkit.Load(os.DirFS(folder))
		require.NoError(t, err)
		require.NotEmpty(t, all)
		for _, m := range all {
			if m.Oldest == 0 {
				require.Empty(t, incompatible(m.SQL), "%s, migration %d: name the oldest program that can run with it in the first line", folder, m.Version)
			}
		}
	}
	for _, sql := range []string{"ALTER TABLE a ADD COLUMN b INTEGER NOT NULL;", "DROP TABLE a;", "ALTER TABLE a ALTER COLUMN b SET NOT NULL", "ALTER TABLE a RENAME b TO c"} {
		require.NotEmpty(t, incompatible(sql), sql)
	}
}

// incompatible returns the statements that do not only add.
func incompatible(sql string) (found []string) {
	for s := range strings.SplitSeq(sql, ";") {
		needed := strings.Contains(s, "ADD COLUMN") && strings.Contains(s, "NOT NULL") && !strings.Contains(s, "DEFAULT")
		if changesTables.MatchString(s) || needed {
			found = append(found, strings.TrimSpace(s))
		}
	}
	return found
}
