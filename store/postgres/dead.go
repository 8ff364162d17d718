package postgres

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// The row of an engine that was declared dead is deleted once its jobs are free, so that the table processes has only engines that count.
// For the people who ask what has happened, a record of it is kept for a day. Its key is the number of the engine: if the engine that
// declares it dead ends in between, the next one adopts it again, and keeps the record of the first.

const (
	maxHeldCounted = 100_000 // of the jobs of an engine, when it is declared dead
	keptDead       = 1000    // records
)

// insertDead records dead engines that a condition selects, before their jobs are free.
var insertDead = "INSERT INTO @.records (collection, key, value) SELECT '" + store.DeadEngines + "', lpad(p.id::text, 20, '0'), jsonb_build_object(" +
	"'id', p.id, 'name', p.name, 'joined', " + micros("p.joined") + ", 'seen', " + micros("coalesce(u.beat, p.joined)") + ", 'died', " + micros("statement_timestamp()") + ", " +
	"'by', $1::text, 'held', h.held, 'running', h.running)::text " +
	"FROM @.processes p LEFT JOIN @.pulses u ON u.process = p.id CROSS JOIN LATERAL (SELECT count(*) AS held, count(*) FILTER (WHERE j.state = 'running') AS running " +
	"FROM (SELECT state FROM @.jobs WHERE holder = p.id AND holder > 0 AND " + liveJob + fmt.Sprintf(" LIMIT %d) j) h ", maxHeldCounted) +
	"WHERE p.state = 'dead' AND %s ON CONFLICT DO NOTHING"

// forgetDead removes the records that are a day old, and all but the newest.
var forgetDead = "DELETE FROM @.records WHERE collection = '" + store.DeadEngines + "' AND ((value::jsonb ->> 'died')::bigint < " + micros("clock_timestamp() - interval '1 day'") +
	" OR key <= (SELECT key FROM @.records WHERE collection = '" + store.DeadEngines + fmt.Sprintf("' ORDER BY key DESC OFFSET %d LIMIT 1))", keptDead)

// deadEngines reads the records of a day, the latest first.
var deadEngines = "SELECT id, name, joined, died, \"by\", " + micros("clock_timestamp()") + " - seen, held, running FROM (SELECT value FROM @.records WHERE collection = '" + store.DeadEngines + "') r " +
	"CROSS JOIN LATERAL jsonb_to_record(r.value::jsonb) AS d(id bigint, name text, joined bigint, seen bigint, died bigint, \"by\" text, held bigint, running bigint) " +
	"WHERE died > " + micros("clock_timestamp() - interval '1 day'") + fmt.Sprintf(" ORDER BY died DESC, id DESC LIMIT %d", store.MaxDead)

// micros is the SQL of a time in microseconds since 1970.
func micros(t string) string { return "(extract(epoch FROM " + t + ") * 1000000)::bigint" }

// processName is the name of this process in the list of engines.
func processName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// mayNote finds a dead engine besides this one, if the role may record it: one without the right to write records can free jobs all the same.
const mayNote = "SELECT 1 FROM @.processes p JOIN pg_class o ON o.oid = p.tableoid JOIN pg_class r ON r.relnamespace = o.relnamespace AND r.relname = 'records' " +
	"WHERE p.state = 'dead' AND p.id <> $1 AND has_table_privilege(r.oid, 'SELECT') AND has_table_privilege(r.oid, 'INSERT') AND has_table_privilege(r.oid, 'DELETE') LIMIT 1"

// noteDead records the dead engines that a condition selects. Its arguments begin with $2.
func (s *Store) noteDead(c *conn, condition string, args ...any) error {
	if _, dead, err := c.number(mayNote, s.number.Load()); err != nil || !dead {
		return err
	}
	n, err := c.run(fmt.Sprintf(insertDead, condition), append([]any{processName()}, args...)...)
	if err == nil && n > 0 {
		_, err = c.run(forgetDead)
	}
	return err
}

// Dead implements [store.Members].
func (r *reader) Dead(context.Context) (all []store.DeadMember, err error) {
	err = r.c.each(deadEngines, nil, func(row *tables.Row) error {
		d := store.DeadMember{ID: row.Number(), Name: row.Text(), Joined: row.Time(), Died: row.Time(), By: row.Text(),
			Silent: time.Duration(row.Number()) * time.Microsecond, Held: row.Number(), Running: row.Number()}
		all = append(all, d)
		return row.Err
	})
	return all, err
}
