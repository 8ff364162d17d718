package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The session of a direct connection is configured once. A pooler runs each transaction in a session that other
// programs use too, so each transaction configures what it needs until its end. Sessions then keep no other state: no
// prepared statement, no lock, no LISTEN.

// setting is a parameter of a session or a transaction that replaces that of the role and the database.
type setting struct{ name, value string }

// A statement of the writer must not wait without limit, and a process that hangs in a transaction must not keep its
// locks. lock_timeout is longer than the server's deadlock_timeout (1 s): the server ends one of two transactions that
// wait for each other, while a shorter lock_timeout would end both.
var (
	readerNeeds = append([]setting{{"default_transaction_read_only", "on"}, {"lock_timeout", "2s"}}, small...)
	// force_generic_plan: each statement of the store is planned once per session. Otherwise the server plans it five
	// times with its values before it decides, and again whenever it estimates that to be cheaper; the plans use keys
	// in any case, see keyed.
	writerNeeds = append([]setting{
		{"plan_cache_mode", "force_generic_plan"}, {"lock_timeout", "2s"}, {"statement_timeout", "30s"},
		{"idle_in_transaction_session_timeout", "5min"}, {"default_transaction_isolation", "read committed"},
	}, keyed...)

	// keyed makes the planner find rows by their keys, see byKey. A session caches the plan of a statement for the size
	// of the table at that time; for a table that is small, or was small when it was last analyzed, the planner prefers
	// a scan. The user's SQL is planned without these settings: see usersPlans and storesPlans.
	keyed = []setting{{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"jit", "off"}}

	// small keeps the planner from what pays for queries of seconds only. Most queries of a reader have a LIMIT and
	// take a few milliseconds, but the planner does not know how soon they find their rows: with a million items it
	// compiled some to machine code (15 ms), and started parallel workers for others (40 ms).
	small = []setting{{"jit", "off"}, {"max_parallel_workers_per_gather", "0"}}
)

// staysOpen keeps the server from ending a session that is not used: that of the presence never is.
var staysOpen = setting{"idle_session_timeout", "0"}

// begin begins a transaction of the writer. It must see what others have committed since it began, to find out that a tree
// is stale: it begins ahead of the commands that it will have. The role or the database may have another level, which in a
// session of a pooler is that of the next transaction.
const begin = "BEGIN ISOLATION LEVEL read committed"

// The user's SQL is planned with the settings of the role and the database. usersPlans restores them in a transaction of
// the writer, and storesPlans sets the store's own again; usersReads restores them in a transaction of a reader. They
// are local to the transaction, so its end undoes them, also after an error.
var (
	usersPlans, storesPlans = byDefault(keyed), own(keyed)
	usersReads              = byDefault(small)
)

func byDefault(settings []setting) (statements string) {
	for _, s := range settings {
		statements += "SET LOCAL " + s.name + " TO DEFAULT; "
	}
	return statements
}

// own is a SELECT, since it is part of a batch of prepared statements, and SET cannot be prepared.
func own(settings []setting) string {
	sets := make([]string, len(settings))
	for i, s := range settings {
		sets[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value)
	}
	return "SELECT " + strings.Join(sets, ", ")
}

// setup returns the statement that applies settings, to the session or to the transaction, and returns the id of the
// server process. The schema is appended to the search path, for the user's SQL: the store's own names are qualified.
//
// It is one SELECT with set_config, not a SET for each: that is one round trip, and the values are not parsed as SQL.
// The third argument limits the setting to the transaction.
func setup(needs []setting, transaction bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT pg_backend_pid(), "+serverStart+", set_config('search_path', concat_ws(', ', NULLIF(current_setting('search_path'), ''), '@'), %t)",
		transaction)
	for _, s := range needs {
		fmt.Fprintf(&b, ", set_config('%s', '%s', %t)", s.name, s.value, transaction)
	}
	return b.String()
}

// setUp configures the session, or sets what its transactions begin with. It refuses a pooler without [Poll]: the
// settings and locks of this engine would affect the other clients of the pooler.
func (c *conn) setUp(ctx context.Context, db database, needs []setting) error {
	if db.set.poll > 0 {
		c.opening = "; " + setup(needs, true)
		return nil
	}
	// A pooler reports its own number when a connection starts. The condition leaves the session as it is then: the
	// pooler gives it to others.
	given := c.pg.PgConn().PID()
	needs = append([]setting{staysOpen}, needs...)
	results, err := c.simple(ctx, fmt.Sprintf("SELECT pg_backend_pid(); %s WHERE pg_backend_pid() = %d", setup(needs, false), given))
	if err != nil {
		return err
	}
	if c.pid = processOf(results[0]); c.pid != given {
		return db.at("the connection goes through a pooler (process %d of the server answers, and not %d): name the pooler with postgres.Poll, or "+
			"with %s=1s in the connection string, or connect to the server", c.pid, given, pollKeyword)
	}
	return nil
}

// processOf returns the id of the server process from the result of setup.
func processOf(r *pgconn.Result) uint32 {
	pid, _ := strconv.ParseUint(string(r.Rows[0][0]), 10, 32) // the value is text
	return uint32(pid)
}

// begin begins a transaction with a statement, which may be followed by others, and returns the result of the last one.
//
// Through a pooler the settings are in the same message as BEGIN, and so in the session of the transaction: results[0]
// is that of BEGIN, results[1] that of setup.
func (c *conn) begin(ctx context.Context, how string, then ...string) (*pgconn.Result, error) {
	results, err := c.simple(ctx, strings.Join(append([]string{how + c.opening}, then...), "; "))
	if err != nil {
		return nil, err
	}
	if c.opening != "" {
		c.pid = processOf(results[1])
		if err := c.sameServer(string(results[1].Rows[0][1])); err != nil {
			return nil, err
		}
	}
	return results[len(results)-1], nil
}

// sameServer closes the connection if the pooler has connected it to another server, or to one that was restarted,
// since a direct connection would have been lost too: see findBase.
func (c *conn) sameServer(start string) error {
	if c.start == "" {
		c.start = start
	}
	if c.start == start {
		return nil
	}
	return errors.Join(fmt.Errorf("the pooler is connected to another server, or to one that was restarted: %w", net.ErrClosed), c.close())
}
