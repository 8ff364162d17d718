package main

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// growth compares cases in a database that has little in it with those in one that holds many finished cases. Both are on one server, and are
// measured by turns, so what else the machine does falls on both. CPU is what this process and the server used, the server's for its own
// housekeeping, such as vacuum, included.
func growth(r job) (metrics, error) {
	small := r
	m := metrics{"n": float64(r.finished)}
	_, err := inDatabase(r, func(r job) (metrics, error) {
		for _, at := range []struct {
			job
			n int
		}{{small, smallFile}, {r, int(m["n"])}} {
			if err := finishedCases(at.job, at.n); err != nil {
				return nil, err
			}
		}
		return nil, m.compare(small, r)
	})
	return m, err
}

// compare notes what a case costs in a grown database over what it costs in a small one: the medians of some pairs.
func (m metrics) compare(small, grown job) error {
	ratios := make(map[string]sample)
	for range small.pick(5, 7) {
		var pair [2]metrics
		for i, at := range []job{small, grown} {
			var err error
			if pair[i], err = cases(at, 64, oneTask); err != nil {
				return err
			}
			pair[i]["both"] = pair[i]["cpu"] + pair[i]["server"]
		}
		for _, what := range []string{"cpu", "server", "both"} {
			ratios[what] = append(ratios[what], pair[1][what]/pair[0][what])
		}
	}
	for what, ratio := range ratios {
		m[what] = ratio.median()
	}
	return nil
}

// finishedCases puts n finished cases into the database: copies, by statements, of one that was done. Their ids rise, as those of cases that
// were started one after the other.
func finishedCases(r job, n int) error {
	if _, err := cases(r, 64, oneTask); err != nil {
		return err
	}
	c, err := pgx.Connect(noTimeout, r.dsn)
	if err != nil {
		return err
	}
	defer c.Close(noTimeout)
	const template = "CREATE TEMP TABLE template AS SELECT root FROM tasq.cases WHERE state = 'completed' LIMIT 1"
	if _, err := c.Exec(noTimeout, template); err != nil {
		return err
	}
	id := func(kind int) string {
		return fmt.Sprintf("('0190' || lpad(to_hex(n), 8, '0') || '7000800000000000000%d')::uuid", kind)
	}
	const portion = 250_000
	for from := 0; from < n; from += portion {
		for table, own := range map[string]map[string]string{
			"journal":    {"root": id(1), "seq": "n * 4 + x.rev"},
			"cases":      {"root": id(1), "id": id(1)},
			"work_items": {"root": id(1), "id": id(2), "case_id": id(1)},
			"jobs":       {"root": id(1), "id": id(3), "case_id": id(1), "item": id(2)},
		} {
			if err := copyRows(c, table, own, from, min(n, from+portion)-1); err != nil {
				return err
			}
		}
	}
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := c.Exec(noTimeout, statement); err != nil {
			return err
		}
	}
	return nil
}

// copyRows copies the rows of the template, for each number in a range, with values of their own in some columns.
func copyRows(c *pgx.Conn, table string, own map[string]string, first, last int) error {
	rows, err := c.Query(noTimeout, "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'tasq' AND table_name = $1", table)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := make([]string, len(columns))
	for i, name := range columns {
		if values[i] = own[name]; values[i] == "" {
			values[i] = "x." + name
		}
	}
	_, err = c.Exec(noTimeout, fmt.Sprintf("INSERT INTO tasq.%s (%s) SELECT %s FROM generate_series(%d, %d) n, tasq.%s x "+
		"WHERE x.root = (SELECT root FROM template) ORDER BY n", table, strings.Join(columns, ", "), strings.Join(values, ", "), first, last, table))
	return err
}
