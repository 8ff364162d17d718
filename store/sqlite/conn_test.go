package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// A query within another one may be the one too many: the statements that are dropped then are not those in use.
func TestAQueryWithinAnotherOne(t *testing.T) {
	c, err := connect(t.Context(), ":memory:")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.close()) }()
	for i := range maxStmts - 1 {
		require.NoError(t, c.run(fmt.Sprintf("SELECT %d", i)))
	}
	var got []int64
	require.NoError(t, c.each("SELECT 1 UNION SELECT 2 UNION SELECT 3", nil, func(r *tables.Row) error {
		n := r.Number()
		for i := range 3 {
			m, _, err := c.number(fmt.Sprintf("SELECT %d + %d", n, i))
			if err != nil {
				return err
			}
			got = append(got, m)
		}
		return r.Err
	}))
	require.Equal(t, []int64{1, 2, 3, 2, 3, 4, 3, 4, 5}, got)
	require.NoError(t, c.run("SELECT 0.5"))
	require.LessOrEqual(t, len(c.stmts), maxStmts, "they are dropped when nothing is under way")
}
