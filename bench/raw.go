package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/store/sqlite"
)

// The raw ceiling: a plain program that writes what Tasq writes, and does nothing else. It runs on the same driver,
// without package database/sql, with the same pragmas and prepared statements, on one connection that one goroutine
// owns. A case is two commands: one journal row for its start, and one each for the claim and the result of its item;
// they come to one commit each, shared by all commands that are queued. The rows of finished cases are written into
// the tables in windows of as many commands as Tasq's, in a transaction that is open anyway.

// rawConn is a connection of the driver.
type rawConn struct {
	driver.Conn
	exec  func(context.Context, string, []driver.NamedValue) (driver.Result, error)
	stmts map[string]driver.StmtExecContext
}

func connectRaw(path string) (*rawConn, error) {
	connector, err := sqlite3.NewConnector("file:" + path)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(noTimeout)
	if err != nil {
		return nil, err
	}
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver has no ExecContext"), conn.Close())
	}
	c := &rawConn{Conn: conn, exec: execer.ExecContext, stmts: make(map[string]driver.StmtExecContext)}
	for _, p := range []string{"busy_timeout=10000", "cache_size=-65536", "temp_store=MEMORY", "journal_mode=WAL",
		"synchronous=FULL", "wal_autocheckpoint=10000"} {
		if _, err := c.exec(noTimeout, "PRAGMA "+p, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return c, nil
}

// run executes a statement that is prepared once.
func (c *rawConn) run(query string, values []any) error {
	s := c.stmts[query]
	if s == nil {
		given, err := c.Prepare(query)
		if err != nil {
			return err
		}
		s = given.(driver.StmtExecContext)
		c.stmts[query] = s
	}
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	_, err := s.ExecContext(noTimeout, args)
	return err
}

// rawWriter is the one writer.
type rawWriter struct {
	c       *rawConn
	t       *template
	insert  string   // into the journal
	at      int      // of the column seq in it
	journal []stamp  // in the order of the case's life
	inserts []string // into the other tables
	rows    []stamp  // of the finished case
	seq     int64
	queue   chan rawCommand
	ended   [][]string // ids of cases whose rows are still to be written
	pending int        // commands since the rows were written
}

// rawCommand writes some rows of the journal of one case.
type rawCommand struct {
	ids      []string
	from, to int // of the journal
	done     chan error
}

func newRawWriter(dir string) (*rawWriter, error) {
	t, err := makeTemplate(dir)
	if err != nil {
		return nil, err
	}
	c, err := connectRaw(filepath.Join(dir, "tasq.db"))
	if err != nil {
		return nil, err
	}
	w := &rawWriter{c: c, t: t, seq: int64(len(t.journal.rows)), queue: make(chan rawCommand, 4096),
		insert: t.journal.insert(), at: slices.Index(t.journal.columns, "seq")}
	for _, row := range t.journal.rows {
		w.journal = append(w.journal, t.stamp(row))
	}
	for _, table := range t.rows {
		if len(table.rows) != 1 {
			return nil, fmt.Errorf("a case of one task left %d rows in %s, want 1", len(table.rows), table.name)
		}
		w.inserts, w.rows = append(w.inserts, table.insert()), append(w.rows, t.stamp(table.rows[0]))
	}
	return w, nil
}

// write commits what is queued, until the queue is closed.
func (w *rawWriter) write() error {
	for first := range w.queue {
		batch := []rawCommand{first}
		for more := true; more && len(batch) < 256; {
			select {
			case r, open := <-w.queue:
				if more = open; open {
					batch = append(batch, r)
				}
			default:
				more = false
			}
		}
		err := w.commit(batch)
		for _, r := range batch {
			r.done <- err
		}
	}
	return errors.Join(w.commit(nil), w.c.Close())
}

func (w *rawWriter) commit(batch []rawCommand) error {
	if err := w.c.run("BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	for _, r := range batch {
		if err := w.append(r); err != nil {
			return err
		}
	}
	if w.pending >= sqlite.DefaultWindow || batch == nil {
		if err := w.project(); err != nil {
			return err
		}
	}
	return w.c.run("COMMIT", nil)
}

func (w *rawWriter) append(r rawCommand) error {
	for _, s := range w.journal[r.from:r.to] {
		w.seq++
		w.pending++
		values := s.with(r.ids)
		values[w.at] = w.seq
		if err := w.c.run(w.insert, values); err != nil {
			return err
		}
	}
	if r.to == len(w.journal) {
		w.ended = append(w.ended, r.ids)
	}
	return nil
}

// project writes the rows of the cases that have ended. They rise with time, as Tasq's do.
func (w *rawWriter) project() error {
	slices.SortFunc(w.ended, slices.Compare)
	for i, query := range w.inserts {
		for _, ids := range w.ended {
			if err := w.c.run(query, w.rows[i].with(ids)); err != nil {
				return err
			}
		}
	}
	if err := w.c.run("UPDATE counts SET n = n + ?", []any{int64(len(w.ended))}); err != nil {
		return err
	}
	w.ended, w.pending = w.ended[:0], 0
	return w.c.run("UPDATE meta SET value = ? WHERE name = 'projected_seq'", []any{w.seq})
}

// raw is the closed loop on the raw program.
func raw(r job, callers int) (metrics, error) {
	w, err := newRawWriter(r.dir)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- w.write() }()
	before := used()
	var cases atomic.Int64
	m, err := load(callers, r.span, func(int) error {
		ids, done := rawIDs(cases.Add(1), len(w.t.ids)), make(chan error, 1)
		for _, part := range [][2]int{{0, 1}, {1, len(w.journal)}} {
			w.queue <- rawCommand{ids: ids, from: part[0], to: part[1], done: done}
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	})
	close(w.queue)
	if err = errors.Join(err, <-ended); err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), nil
}

// rawIDs makes ids that rise with time, cheaply.
func rawIDs(n int64, count int) []string {
	ids := make([]string, count)
	now := time.Now().UnixMilli()
	for k := range ids {
		b := make([]byte, 0, idLength)
		b = appendHex(b, now>>16, 8)
		b = appendHex(append(b, '-'), now&0xffff, 4)
		b = append(b, "-7000-8000-"...)
		ids[k] = string(appendHex(b, n<<4|int64(k), 12))
	}
	return ids
}

func appendHex(b []byte, v int64, digits int) []byte {
	for range digits - len(strconv.FormatInt(v, 16)) {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, v, 16)
}
