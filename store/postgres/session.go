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

// The session of a direct connection is set up once. A pooler gives each transaction a session that other programs have, too: what a
// transaction needs is set as it begins, and is over with it. Nothing else is kept in sessions then: no prepared statement, no lock,
// no LISTEN.

// setting is what a session, or a transaction, needs beyond the role's and the database's own settings.
type setting struct{ name, value string }

// A statement of the writer must not wait without end, and a process that hangs within a transaction must not keep its locks. The wait for a
// lock is longer than the server's deadlock_timeout (1 s): the server ends one of two transactions that wait for each other, and a shorter
// wait would end both.
var (
	readerNeeds = []setting{{"default_transaction_read_only", "on"}}
	// force_generic_plan: each statement of the store is planned once for a session. The server would otherwise plan it five
	// times with its values before it decides, and again whenever it takes that to be cheaper; the plans are by key in any
	// case, see keyed.
	writerNeeds = append([]setting{
		{"plan_cache_mode", "force_generic_plan"}, {"lock_timeout", "2s"}, {"statement_timeout", "30s"},
		{"idle_in_transaction_session_timeout", "5min"},
	}, keyed...)

	// keyed has the server find rows by their keys, see byKey. What a session keeps as the plan of a statement is made for the size that the
	// tables have by then, and of a small one, or one that was small when it was last analyzed, the server would rather read all. The user's SQL
	// is planned without it: see usersPlans and storesPlans.
	keyed = []setting{{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"jit", "off"}}
)

// usersPlans has statements planned as the role and the database say it, until the end of the transaction; storesPlans ends that.
//
// It is SET LOCAL, so the end of the transaction undoes it, also after an error. storesPlans is a SELECT, since it is part of a
// batch whose statements are prepared, and SET is none that can be.
var usersPlans, storesPlans = func() (users, stores string) {
	sets := make([]string, len(keyed))
	for i, s := range keyed {
		users += "SET LOCAL " + s.name + " TO DEFAULT; "
		sets[i] = fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value)
	}
	return users, "SELECT " + strings.Join(sets, ", ")
}()

// setup is the statement that sets what is needed, for the session or for the transaction, and returns the number of the server's process.
// The schema is put behind what the search path has, for the user's SQL: the store's own names are qualified.
//
// One SELECT with set_config, and not a SET for each: it is one round trip, and the values are not parsed as SQL. The third
// argument says whether they end with the transaction.
func setup(needs []setting, transaction bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT pg_backend_pid(), "+serverStart+", set_config('search_path', concat_ws(', ', NULLIF(current_setting('search_path'), ''), '@'), %t)",
		transaction)
	for _, s := range needs {
		fmt.Fprintf(&b, ", set_config('%s', '%s', %t)", s.name, s.value, transaction)
	}
	return b.String()
}

// setUp sets the session up, or what its transactions begin with. A pooler that was not mentioned is refused: its other clients would have
// the settings and the locks of this one.
func (c *conn) setUp(ctx context.Context, db database, needs []setting) error {
	if db.set.poll > 0 {
		c.opening = "; " + setup(needs, true)
		return nil
	}
	results, err := c.simple(ctx, setup(needs, false))
	if err != nil {
		return err
	}
	c.pid = processOf(results[0])
	// A pooler answers the start of a connection itself, with a number of its own.
	if given := c.pg.PgConn().PID(); c.pid != given {
		return db.at("the connection goes through a pooler (process %d of the server answers, and not %d): name the pooler with postgres.Poll, or "+
			"with %s=1s in the connection string, or connect to the server", c.pid, given, pollKeyword)
	}
	return nil
}

// processOf is the process of the server that answered what setup asks.
func processOf(r *pgconn.Result) uint32 {
	pid, _ := strconv.ParseUint(string(r.Rows[0][0]), 10, 32) // it is the text of a number
	return uint32(pid)
}

// begin begins a transaction by a statement, which may have others behind it, and returns what the last one does.
//
// Through a pooler the settings are part of the same message as BEGIN, and so in the session that the transaction has:
// results[0] is that of BEGIN, results[1] that of setup.
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

// sameServer closes the connection if the pooler has connected it to another server, or to one that was restarted, as a direct one would have
// been lost: see findBase.
func (c *conn) sameServer(start string) error {
	if c.start == "" {
		c.start = start
	}
	if c.start == start {
		return nil
	}
	return errors.Join(fmt.Errorf("the pooler is connected to another server, or to one that was restarted: %w", net.ErrClosed), c.close())
}
