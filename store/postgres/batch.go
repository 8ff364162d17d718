package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
)

// batch is a list of statements that go to the server in one round trip. Outside of a transaction they are one implicit
// transaction.
//
// The server runs them in order, each with its own snapshot, and stops at the first that fails. All are sent before the
// first result is read, so a statement cannot use the result of an earlier one: a check must fail in the server, or be
// part of the same statement.
type batch struct {
	sql   *statements
	b     pgx.Batch
	large bool    // it may be sent in parts, see parts.go
	copy  *copied // the only statement, if not nil
}

func (b *batch) queue(query string, args ...any) { b.b.Queue(b.sql.text(query), args...) }

// answers are the results of the statements that succeeded.
type answers struct {
	n    int    // how many
	last []byte // the first column of the last row of the last statement, in the server's format; nil if there is none
}

// add adds the results of later statements.
func (a *answers) add(next *answers) { a.n, a.last = a.n+next.n, next.last }

// number returns the number that the last statement returned.
func (a *answers) number() int64 {
	if len(a.last) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(a.last))
}

// send runs the statements, and returns the results before the first error.
//
// The number of results identifies the statement that failed, the one after them. A commit derives the reason of its
// failure from it; see outcome.
func (b *batch) send(c *conn) (a *answers, err error) {
	c.catchUp()
	if b.copy != nil {
		return b.copy.send(c)
	}
	if c.hasNames() {
		x := pipeline{c: c}
		return x.finish(b, &batch{})
	}
	err = c.within(func() error {
		a, err = b.exchange(c.pg)
		return err
	})
	return a, err
}

func (b *batch) exchange(c *pgx.Conn) (*answers, error) {
	a := &answers{}
	results := c.SendBatch(context.Background(), &b.b)
	for range b.b.Len() {
		rows, err := results.Query()
		if err == nil {
			a.last = nil
			for rows.Next() {
				if values := rows.RawValues(); len(values) > 0 {
					a.last = append(a.last[:0], values[0]...)
				}
			}
			if err = rows.Err(); err == nil {
				a.n++
				continue
			}
		}
		// Close also reads the remaining results, so that the connection can be used.
		_ = results.Close() // the same error again
		return a, err
	}
	return a, results.Close()
}
