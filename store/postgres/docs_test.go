package postgres_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

// documented finds the statements of a page, each on a line that is indented.
var documented = regexp.MustCompile(`(?m)^ {4,}((?:SELECT|GRANT) .*;)$`)

// The statements of docs/postgres.md are ones that a database of Tasq's executes.
func TestTheStatementsOfTheManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/postgres.md")
	require.NoError(t, err)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(prepared.Database(t))}, 1)
	w.Update(func(b *storetest.Batch) {
		b.Start(`1`)
		found := documented.FindAllSubmatch(text, -1)
		require.GreaterOrEqual(t, len(found), 9)
		for _, m := range found {
			statement := strings.NewReplacer("'...'", "'00000000-0000-0000-0000-000000000000'", "TO app;", "TO CURRENT_USER;").Replace(string(m[1]))
			_, err := b.Tx.DB().ExecContext(t.Context(), statement)
			require.NoError(t, err, statement)
		}
	})
}
