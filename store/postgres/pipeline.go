package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipeline sends the statements of a commit while they are made, and reads the results at the end. The server runs the
// first statements while this process encodes the others:
//
//	process   fence, check, journal ──▶   rows, COMMIT; BEGIN, number ──▶ ◀── results; observers, callers
//	server                                fence, check, journal, rows, COMMIT   BEGIN, number
//
// A pgx.Batch sends nothing before it is complete, and returns when all results are there. Here, the results up to the
// COMMIT are returned before those of the statements behind it, which the next use of the connection reads: see
// conn.catchUp.
//
// After an error, the server runs no further statement before the next Sync. There is one behind the COMMIT, and one at
// the end.
type pipeline struct {
	c    *conn
	p    *pgconn.Pipeline // nil before the first statement
	n    int              // number of statements without a result, up to the next Sync
	done answers
	err  error // the first
	eqb  pgx.ExtendedQueryBuilder
}

// hasNames reports whether the session keeps named prepared statements, which a pipeline needs.
func (c *conn) hasNames() bool {
	return c.pg.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// send sends the statements of a batch, and empties it. It requires a transaction: preparing a statement sends a Sync,
// which would end an implicit one.
func (x *pipeline) send(b *batch) {
	x.do(func() error {
		if err := x.add(b); err != nil {
			return err
		}
		return x.p.Flush()
	})
}

// do calls f unless there was an error.
// The first error is kept and ends the pipeline: the server would refuse the statements that follow.
func (x *pipeline) do(f func() error) {
	if x.err != nil {
		return
	}
	if x.err = x.c.within(f); x.err != nil && x.p != nil {
		x.err = x.close(x.err)
	}
}

// finish sends the last statements, and returns the results of all. The statements of behind are run after them, also
// if one of them failed; the next use of the connection reads their results.
func (x *pipeline) finish(b, behind *batch) (*answers, error) {
	x.do(func() error {
		if err := x.prepare(b, behind); err != nil {
			return err
		}
		if err := x.add(b); err != nil {
			return err
		}
		x.p.SendPipelineSync()
		n := x.n
		if err := x.add(behind); err != nil {
			return err
		}
		next := x.n - n
		if next > 0 {
			x.p.SendPipelineSync()
		}
		if err := x.p.Flush(); err != nil {
			return err
		}
		x.n = n
		err := x.read()
		if err == nil && next > 0 {
			x.c.behind = &pipeline{c: x.c, p: x.p, n: next}
			return nil
		}
		return x.close(err)
	})
	return &x.done, x.err
}

// add encodes the statements of a batch for the next flush, and empties it.
func (x *pipeline) add(b *batch) error {
	if err := x.prepare(b); err != nil {
		return err
	}
	if x.p == nil {
		x.p = x.c.pg.PgConn().StartPipeline(context.Background())
	}
	for _, q := range b.b.QueuedQueries {
		s := x.c.prepared[q.SQL]
		if err := x.eqb.Build(x.c.pg.TypeMap(), s, q.Arguments); err != nil {
			return fmt.Errorf("%s: %w", q.SQL, err)
		}
		x.p.SendQueryStatement(s, x.eqb.ParamValues, x.eqb.ParamFormats, binaryResults)
		x.n++
	}
	b.b = pgx.Batch{}
	return nil
}

var binaryResults = []int16{pgx.BinaryFormatCode}

// read reads the results up to the next Sync.
// Only the last row of the last statement is kept: the number of the next transaction. No other result is needed.
func (x *pipeline) read() error {
	for ; x.n > 0; x.n-- {
		answer, err := x.p.GetResults()
		if err != nil {
			return err
		}
		rows, ok := answer.(*pgconn.ResultReader)
		if !ok {
			return fmt.Errorf("the result of a statement has the type %T", answer)
		}
		x.done.last = nil
		for rows.NextRow() {
			if values := rows.Values(); len(values) > 0 {
				x.done.last = append(x.done.last[:0], values[0]...)
			}
		}
		if _, err := rows.Close(); err != nil {
			return err
		}
		x.done.n++
	}
	_, err := x.p.GetResults() // the result of the Sync
	return err
}

// close ends the pipeline, and returns err or an error of its own. It reads the remaining results, so that the
// connection can be used.
func (x *pipeline) close(err error) error {
	p := x.p
	x.p, x.n = nil, 0
	if ended := p.Close(); err == nil {
		err = ended
	}
	return err
}

// prepare prepares the statements that are not prepared yet. It reads the results of what was sent before, as that
// takes a round trip of its own.
func (x *pipeline) prepare(batches ...*batch) error {
	for _, b := range batches {
		for _, q := range b.b.QueuedQueries {
			if x.c.prepared[q.SQL] != nil {
				continue
			}
			if err := x.pause(); err != nil {
				return err
			}
			// Statements are never dropped, so their number names the next one. There are a few dozen texts.
			name := "tasq_" + strconv.Itoa(len(x.c.prepared))
			s, err := x.c.pg.PgConn().Prepare(context.Background(), name, q.SQL, nil)
			if err != nil {
				return err
			}
			if x.c.prepared == nil {
				x.c.prepared = make(map[string]*pgconn.StatementDescription)
			}
			// Of a statement without columns, the driver requests a description with each execution. With a column that
			// no row has, it does not.
			if len(s.Fields) == 0 {
				s.Fields = make([]pgconn.FieldDescription, 1)
			}
			x.c.prepared[q.SQL] = s
		}
	}
	return nil
}

// pause reads the results of what was sent. The transaction continues.
// Sync outside of a transaction would commit what was sent; here there is a transaction, which continues: see send.
func (x *pipeline) pause() error {
	if x.p == nil {
		return nil
	}
	if err := x.p.Sync(); err != nil {
		return err
	}
	return x.close(x.read())
}

// catchUp reads the results of what was sent behind a commit, if that was not done yet: the number of the next
// transaction. If a statement failed, there is no transaction.
func (c *conn) catchUp() {
	x := c.behind
	if c.behind = nil; x == nil {
		return
	}
	err := c.within(func() error { return x.close(x.read()) })
	if err == nil {
		c.begun = x.done.number()
		return
	}
	if !c.gone() && c.exec(context.Background(), "ROLLBACK") != nil {
		_ = c.cut() // it may still be in a transaction
	}
}
