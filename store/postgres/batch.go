package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
)

// batch is statements that go to the server in one round trip. Outside of a transaction they are one of their own.
//
// The server runs them one after the other, each with its own snapshot, and none after one that failed. All are sent before
// the first answer is read, so what one of them returns cannot be used in the next: it must fail, or be compared within a
// statement.
type batch struct {
	sql   *statements
	b     pgx.Batch
	large bool // it is worth parts, see parts.go
}

func (b *batch) queue(query string, args ...any) { b.b.Queue(b.sql.text(query), args...) }

// answers are those of the statements that succeeded.
type answers struct {
	n    int    // how many
	last []byte // the first column of the last row of the last one, as the server sends it; nil if there is none
}

// add adds the answers to what was sent next.
func (a *answers) add(next *answers) { a.n, a.last = a.n+next.n, next.last }

// number is what the last statement returned.
func (a *answers) number() int64 {
	if len(a.last) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(a.last))
}

// send runs the statements. The answers are those before the first error.
//
// How many there are says which statement failed: the one after them. A commit knows by that number why it did; see outcome.
func (b *batch) send(c *conn) (a *answers, err error) {
	c.catchUp()
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
		// It also reads what the server still sends, so that the connection can be used.
		_ = results.Close() // it repeats the error
		return a, err
	}
	return a, results.Close()
}
