package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
)

// The new rows of a large commit are written by COPY, each table in a part of its own (parts.go). It takes the server
// two thirds of the time of INSERT ... SELECT ... FROM unnest(...), which materializes the rows first and inserts them
// one by one (decision 033).

// copied is a COPY of rows.
type copied struct {
	into string
	rows []byte // in the server's binary format
}

// copying returns the statement for the columns of a table.
func copying(table string, columns []string) string {
	return "COPY @." + table + " (" + strings.Join(columns, ", ") + ") FROM STDIN (FORMAT binary)"
}

// queueNew adds a statement that writes new rows, or sends them if the commit is large.
func (tx *transaction) queueNew(b *batch, how statement, n int, columns []any) {
	if b.large {
		tx.copyRows(b, how.copy, n, columns)
		return
	}
	how.queue(b, n, columns)
}

// copyRows sends what is queued, and then the rows. It counts as one statement.
func (tx *transaction) copyRows(b *batch, into string, n int, columns []any) {
	tx.part(b)
	tx.sendPart(&batch{sql: b.sql, copy: &copied{b.sql.text(into), rowsFrom(n, columns)}}, 1)
}

// send runs the statement, and returns its result.
func (r *copied) send(c *conn) (*answers, error) {
	err := c.within(func() error {
		_, err := c.pg.PgConn().CopyFrom(context.Background(), bytes.NewReader(r.rows), r.into)
		return err
	})
	if err != nil {
		return &answers{}, err
	}
	return &answers{n: 1}, nil
}

// copySignature begins the binary format: a signature, no flags, and no extension of the header.
const copySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// rowsFrom returns n rows of columns that are encoded as arrays. The values are the same in both formats:
//
//	arrays   header 1 2 3    header a NULL c
//	rows     signature       2 1 a    2 2 NULL    2 3 c    -1
//
// Each row begins with the number of its values, and -1 ends the rows.
func rowsFrom(n int, columns []any) []byte {
	left, size := make([][]byte, len(columns)), len(copySignature)+2*(n+1)
	for i, column := range columns {
		left[i] = bytesOf(column)[arrayHeader:]
		size += len(left[i])
	}
	b := append(make([]byte, 0, size), copySignature...)
	for range n {
		b = binary.BigEndian.AppendUint16(b, uint16(len(columns)))
		for i, column := range left {
			end := lengthLength
			if length := binary.BigEndian.Uint32(column); length != nullLength {
				end += int(length)
			}
			b, left[i] = append(b, column[:end]...), column[end:]
		}
	}
	return append(b, 0xff, 0xff)
}
