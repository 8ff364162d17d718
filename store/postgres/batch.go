package postgres

import (
	"context"

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

// answers are the rows of the statements of a batch that succeeded.
type answers struct {
	n    int // how many succeeded
	rows [][][]any
}

// add adds the answers to what was sent next.
func (a *answers) add(next *answers) {
	a.n, a.rows = a.n+next.n, append(a.rows, next.rows...)
}

// number is what the last statement returned.
func (a *answers) number() int64 {
	if a.n == 0 || len(a.rows[a.n-1]) == 0 {
		return 0
	}
	n, _ := a.rows[a.n-1][0][0].(int64)
	return n
}

// send runs the statements. The answers are those before the first error.
//
// How many there are says which statement failed: the one after them. A commit knows by that number why it did; see outcome.
func (b *batch) send(c *conn) (a *answers, err error) {
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
			var all [][]any
			if all, err = collect(rows); err == nil {
				a.rows, a.n = append(a.rows, all), a.n+1
				continue
			}
		}
		// It also reads what the server still sends, so that the connection can be used.
		_ = results.Close() // it repeats the error
		return a, err
	}
	return a, results.Close()
}
