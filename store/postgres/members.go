package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// members reads the live engines, with the number of jobs that they hold. The index jobs_held has only live jobs.
const members = "SELECT p.id, p.name, (extract(epoch FROM p.joined) * 1000000)::bigint, " +
	"(extract(epoch FROM clock_timestamp() - u.beat) * 1000000)::bigint, (extract(epoch FROM u.pace) * 1000000)::bigint, u.busy, u.skew, " +
	"(SELECT count(*) FROM @.jobs j WHERE j.holder = p.id AND j." + liveJob + "), " +
	"(SELECT count(*) FROM @.jobs j WHERE j.holder = p.id AND j.state = 'running'), " +
	"(SELECT greatest(0, coalesce((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - min(j.due), 0)) FROM @.jobs j " +
	"WHERE j.holder = p.id AND j." + liveJob + " AND j.state = 'pending' AND j.due > 0), cardinality(p.prints)::bigint, array_to_string(p.prints, ' ') " +
	"FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE p.state = 'live' ORDER BY p.id"

// Members implements [store.Members].
func (r *reader) Members(context.Context) (all []store.Member, err error) {
	duration := func(row *tables.Row) time.Duration { return time.Duration(row.Number()) * time.Microsecond }
	err = r.c.each(members, nil, func(row *tables.Row) error {
		m := store.Member{ID: row.Number(), Name: row.Text(), Joined: row.Time(), Silent: duration(row), Pace: duration(row),
			Busy: row.Flag(), Skew: duration(row), Held: row.Number(), Running: row.Number(), Lag: duration(row),
			Definitions: int(row.Number()), Fingerprints: strings.Fields(row.Text())}
		all = append(all, m)
		return row.Err
	})
	return all, err
}
