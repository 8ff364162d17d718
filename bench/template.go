package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
)

// A template is the rows that one finished case of oneTask left in Tasq's own tables. The raw program writes the same
// rows again and again, and large files are filled with copies of them: so both follow the schema, whatever it is.

// projection are the tables beside the journal that a case has a row in.
var projection = []string{"cases", "work_items", "jobs"}

// table is a table with the rows of a template.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

// insert is the statement that writes a row.
func (t table) insert() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", t.name, strings.Join(t.columns, ", "),
		strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", "))
}

// idLength is that of an id as the tables write it.
const idLength = 36

// template is one case: its journal, its rows, and its ids in text form.
type template struct {
	journal table
	rows    []table
	ids     []string
}

// makeTemplate runs one case in a new file and reads what it left.
func makeTemplate(dir string) (*template, error) {
	e, err := open(file(dir), 1, oneTask)
	if err != nil {
		return nil, err
	}
	id, err := oneTask.Start(noTimeout, e, anOrder)
	if err == nil {
		_, err = e.Wait(noTimeout, id)
	}
	ids := []string{id.String()}
	if err == nil {
		err = e.View(noTimeout, func(r store.Reader) error {
			items, err := r.Items(noTimeout, store.ItemFilter{})
			for _, it := range items {
				ids = append(ids, it.ID.String())
			}
			jobs, err2 := r.Jobs(noTimeout, store.JobFilter{})
			for _, j := range jobs {
				ids = append(ids, j.ID.String())
			}
			return errors.Join(err, err2)
		})
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "tasq.db"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	t := &template{ids: ids}
	if t.journal, err = readTable(db, "journal"); err != nil {
		return nil, err
	}
	for _, name := range projection {
		rows, err := readTable(db, name)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, rows)
	}
	return t, nil
}

func readTable(db *sql.DB, name string) (table, error) {
	t := table{name: name}
	rows, err := db.QueryContext(context.Background(), "SELECT * FROM "+name+" ORDER BY 1")
	if err != nil {
		return t, err
	}
	defer rows.Close()
	if t.columns, err = rows.Columns(); err != nil {
		return t, err
	}
	for rows.Next() {
		row, into := make([]any, len(t.columns)), make([]any, len(t.columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return t, err
		}
		t.rows = append(t.rows, row)
	}
	return t, rows.Err()
}

// fill makes a file of n finished cases of oneTask: n rows in each of three tables, and three times n in the journal.
// SQLite itself copies the rows of the template, with ids that rise and are older than any id of a case to come.
func fill(dir string, n int) error {
	t, err := makeTemplate(dir)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "tasq.db")+
		"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-262144)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for _, table := range append([]table{t.journal}, t.rows...) {
		for _, row := range table.rows {
			if err == nil {
				_, err = db.Exec(t.copies(table, row), n)
			}
		}
	}
	if err == nil {
		_, err = db.Exec("UPDATE meta SET value = (SELECT max(seq) FROM journal) WHERE name = 'projected_seq'")
	}
	if err == nil {
		_, err = db.Exec("UPDATE counts SET n = n * ?1; UPDATE ended SET n = n * ?1", n)
	}
	if err == nil {
		_, err = db.Exec("PRAGMA journal_mode=WAL")
	}
	return errors.Join(err, db.Close())
}

// copies is the statement that writes a row n-1 times more. Positions in the journal move on by the length of a case's
// journal, ids by their number.
func (t *template) copies(of table, row []any) string {
	exprs := make([]string, len(of.columns))
	for i, c := range of.columns {
		exprs[i] = c
		if c == "seq" || c == "prev" || c == "last_seq" {
			exprs[i] = fmt.Sprintf("CASE %[1]s WHEN 0 THEN 0 ELSE %[1]s + n.i * %[2]d END", c, len(t.journal.rows))
		} else if text, ok := row[i].(string); ok {
			exprs[i] = t.renamed(c, text)
		}
	}
	return fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1) "+
		"INSERT INTO %s (%s) SELECT %s FROM n CROSS JOIN (SELECT * FROM %s WHERE %s = %s) WHERE ?1 > 1",
		of.name, strings.Join(of.columns, ", "), strings.Join(exprs, ", "), of.name, of.columns[0], literal(row[0]))
}

// renamed is the expression of a column with every id of the template replaced. An id of version 7 begins with 48
// bits of milliseconds: the copies are made in the past, one each.
func (t *template) renamed(column, text string) string {
	const past = 1_600_000_000_000 // September 2020
	for k, id := range t.ids {
		if strings.Contains(text, id) {
			column = fmt.Sprintf("replace(%s, '%s', printf('%%08x-%%04x-7000-8000-%%012x', "+
				"(%d + n.i) >> 16, (%d + n.i) & 65535, %d))", column, id, past, past, k)
		}
	}
	return column
}

func literal(v any) string {
	if s, ok := v.(string); ok {
		return "'" + s + "'"
	}
	return fmt.Sprint(v)
}

// stamp is a row that can be written again with other ids: they all have the same length, so they are written over
// the old ones in place.
type stamp struct {
	values []any
	holes  []hole
}

// hole is a place in a text where an id stands.
type hole struct{ column, at, id int }

func (t *template) stamp(row []any) stamp {
	s := stamp{values: row}
	for c, v := range row {
		text, ok := v.(string)
		for k, id := range t.ids {
			for from := 0; ok; {
				i := strings.Index(text[from:], id)
				if i < 0 {
					break
				}
				s.holes = append(s.holes, hole{column: c, at: from + i, id: k})
				from += i + idLength
			}
		}
	}
	return s
}

// with returns the values with these ids. The holes of a column follow one another.
func (s stamp) with(ids []string) []any {
	values := slices.Clone(s.values)
	var text []byte
	for i, h := range s.holes {
		if i == 0 || s.holes[i-1].column != h.column {
			text = []byte(s.values[h.column].(string))
		}
		copy(text[h.at:], ids[h.id])
		if i+1 == len(s.holes) || s.holes[i+1].column != h.column {
			values[h.column] = string(text)
		}
	}
	return values
}
