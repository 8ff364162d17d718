package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

var greetings = domain.Collection[string, string]{Name: "greetings"}

// execOn runs SQL on a connection of its own.
func execOn(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer c.Close(ctx)
	for _, s := range statements {
		_, err = c.Exec(ctx, s)
		require.NoError(t, err, s)
	}
}

// publicFirst has the schema public first in the search path. By default that is the one named as the role, which is here Tasq's.
const publicFirst = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public', current_database()); END $$"

// decoys returns statements that make a table with each name of Tasq's, "jobs" in place of "%".
func decoys(format string) string {
	var b strings.Builder
	for _, name := range postgres.TableNames() {
		b.WriteString(strings.ReplaceAll(format, "%", name))
	}
	return b.String()
}

// The store uses its own tables, whatever is in front of them: other schemas of the search path, and temporary tables of the
// session. So do collections, whose SQL is the user's.
func TestTablesWithTheSameNamesAreNotUsed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t) // the test makes its tables
	execOn(t, dsn, publicFirst, decoys("CREATE TABLE public.% (decoy int);"))
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	// As programs before this rule made them: they look for temporary tables first.
	execOn(t, dsn, "ALTER FUNCTION tasq.label_case() SET search_path = tasq; ALTER FUNCTION tasq.unlabel_case() SET search_path = tasq")
	w.Reopen()
	w.Update(func(b *storetest.Batch) {
		_, err := b.Tx.DB().ExecContext(t.Context(), decoys("CREATE TEMP TABLE % (decoy int);"))
		require.NoError(t, err)
		require.NoError(t, greetings.Put(t.Context(), b.Tx.DB(), "a", "hello"))
		for range 3 {
			b.Start(`1`)
		}
	})
	w.Update(func(b *storetest.Batch) {
		b.Start(`1`)
		got, err := greetings.Get(t.Context(), b.Tx.DB(), "a")
		require.NoError(t, err)
		require.Equal(t, "hello", got)
	})
	require.NoError(t, w.Store.Idle(t.Context()))
	w.Check()
	w.View(func(ctx context.Context, r store.Reader) {
		all, err := r.Cases(ctx, store.CaseFilter{Labels: map[string]string{"customer": "ada"}})
		require.NoError(t, err)
		require.NotEmpty(t, all)
		n := 0
		require.NoError(t, r.DB().QueryRowContext(ctx, "SELECT count(*) FROM "+domain.Table(r.DB(), "cases")).Scan(&n))
		require.Equal(t, 4, n)
	})
}

// Earlier versions kept collections in a table of the user's that came first and had the same columns.
func TestATableOfRecordsInFrontIsLogged(t *testing.T) {
	t.Parallel()
	for table, warned := range map[string]bool{
		"CREATE TABLE records (id int, value text)": false, domain.Schema: true,
	} {
		dsn := pgtest.Database(t)
		execOn(t, dsn, publicFirst, table)
		var log bytes.Buffer
		s, err := postgres.Open(dsn).Open(t.Context(), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Equal(t, warned, strings.Contains(log.String(), "other=public.records used=tasq.records"), log.String())
	}
}

// Settings of the database that other programs may need change nothing.
func TestSettingsOfTheDatabaseDoNotDisturb(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	for _, s := range []string{
		"search_path = nonsense", "client_encoding = LATIN1", "idle_session_timeout = '1s'", "idle_in_transaction_session_timeout = '1s'", "statement_timeout = '1s'", "lock_timeout = '1ms'",
		"default_transaction_isolation = serializable", "default_transaction_deferrable = on", "DateStyle = German",
		"IntervalStyle = sql_standard", "bytea_output = escape", "standard_conforming_strings = off", "extra_float_digits = -10", "TimeZone = 'Asia/Kathmandu'",
		"work_mem = '64kB'", "row_security = off", "xmlbinary = hex", "enable_indexscan = off", "array_nulls = off", "quote_all_identifiers = on",
	} {
		execOn(t, dsn, "DO $x$ BEGIN EXECUTE format('ALTER DATABASE %I SET ' || $y$"+s+"$y$, current_database()); END $x$")
	}
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	const idle = "SELECT current_setting('idle_session_timeout')"
	var got string
	for range 3 {
		w.Update(func(b *storetest.Batch) {
			for range 20 {
				b.Random(rng)
			}
			require.NoError(t, b.Tx.DB().QueryRowContext(t.Context(), idle).Scan(&got))
		})
		require.Equal(t, "0", got)
		w.Check()
		w.Reopen()
		w.Check()
	}
	w.View(func(ctx context.Context, r store.Reader) {
		require.NoError(t, r.DB().QueryRowContext(ctx, idle).Scan(&got))
	})
	require.Equal(t, "0", got)
}

// A command of a batch does not see the settings of another one, nor does the store.
func TestSettingsOfACommandEndWithIt(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	execOn(t, dsn, "DROP ROLE IF EXISTS tasq_guest", "CREATE ROLE tasq_guest")
	t.Cleanup(func() { execOn(t, dsn, "DROP ROLE tasq_guest") })
	const all = "SELECT concat_ws(' | ', current_setting('app.tenant', true), current_setting('a.b', true), current_setting('search_path'), " +
		"current_setting('statement_timeout'), current_setting('TimeZone'), current_setting('enable_seqscan'), current_user, current_setting('application_name'))"
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	w.Update(func(b *storetest.Batch) {
		ctx := t.Context()
		read := func(sql string) (got string) {
			t.Helper()
			require.NoError(t, b.Tx.Savepoint(ctx, func() error {
				if sql != "" {
					_, err := b.Tx.DB().ExecContext(ctx, sql)
					require.NoError(t, err)
				}
				return b.Tx.DB().QueryRowContext(ctx, all).Scan(&got)
			}))
			return got
		}
		before := read("")
		changed := read(`SET LOCAL app.tenant = '42'; SELECT set_config('a.b', 'it''s @ \', true); set /* */ LOCAL search_path = pg_temp; DO $$ BEGIN
			SET LOCAL statement_timeout = 0; END $$; SET  LOCAL  TIME ZONE 'Asia/Tokyo'; SET LOCAL enable_seqscan = off; SET LOCAL application_name = 'it''s @ \';
			SET LOCAL ROLE tasq_guest`)
		require.Equal(t, `42 | it's @ \ | pg_temp | 0 | Asia/Tokyo | off | tasq_guest | it's @ \`, changed)
		require.Equal(t, " |  |"+strings.TrimPrefix(before, " | "), " |  |"+strings.TrimPrefix(read(""), " |  | "))
		b.Start(`1`)
	})
	w.Check()
}
