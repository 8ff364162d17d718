package postgres

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// maxProjected is how many entries are written by one statement.
const maxProjected = 1000

// project writes the rows of the entries that an engine has committed and not written, from the journal. holder is the engine that holds their
// jobs. The caller has a transaction in which that engine commits nothing.
//
//	journal     entries 90, 91, 95 of engine 4     tables: up to 90 (projected)
//	project     loads the trees of 91 and 95 as of 90, applies the changes, and writes the rows that differ
func (s *Store) project(c *conn, process, holder int64) error {
	after, behind, err := c.number("SELECT projected FROM @.pulses WHERE process = $1", process)
	if err != nil || !behind {
		return err
	}
	p := projection{s: s, c: c, rows: newRows(), trees: make(map[workitem.CaseID]*state.Tree), holder: holder}
	for {
		entries, err := readEntries(c, s.nets, allEntries+"WHERE j.seq > $1 AND j.process = $2 ORDER BY j.seq LIMIT $3", p.newest, after, process, maxProjected)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		for _, e := range entries {
			if err := p.apply(e); err != nil {
				return fmt.Errorf("journal entry %d: %w", e.Seq, err)
			}
		}
		after = entries[len(entries)-1].Seq
		if err := p.write(process, after); err != nil {
			return err
		}
	}
}

// projectDead writes the windows of dead engines. Their jobs are free.
func (s *Store) projectDead(c *conn) error {
	var all []int64
	err := c.each("SELECT p.id FROM @.processes p JOIN @.pulses u ON u.process = p.id WHERE p.state = 'dead' AND u.projected IS NOT NULL", nil,
		func(r *tables.Row) error {
			all = append(all, r.Number())
			return r.Err
		})
	if err != nil {
		return err
	}
	for _, id := range all {
		if err := s.project(c, id, 0); err != nil {
			return err
		}
	}
	return nil
}

// projectOne writes the window of a dead engine.
func (s *Store) projectOne(c *conn, engine int64) error {
	return c.transaction(context.Background(), func() error {
		if err := lockJoins(c); err != nil {
			return err
		}
		return s.project(c, engine, 0)
	})
}

// projection applies entries to the trees of the tables.
type projection struct {
	s      *Store
	c      *conn
	trees  map[workitem.CaseID]*state.Tree
	cases  tables.Appended // the applied commands that are not written yet
	rows   *rows
	holder int64
}

// newest returns a case as the applied entries left it; nil if they did not change it.
func (p *projection) newest(id workitem.CaseID) *state.Case { return p.cases.Case(id) }

func (p *projection) apply(e *store.Entry) error {
	t, err := p.tree(e)
	if err != nil {
		return err
	}
	if root := t.Case(e.Root); root != nil {
		// The rows of a commit with the user's SQL are in it.
		if root.LastSeq >= e.Seq {
			return nil
		}
		if root.LastSeq != e.Prev {
			return fmt.Errorf("%w: it follows entry %d of its case, and the newest there is %d", store.ErrCorrupt, e.Prev, root.LastSeq)
		}
	}
	t.Begin()
	for _, change := range e.Changes {
		if err := t.Apply(change); err != nil {
			return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
	}
	if t.Case(e.Root) == nil {
		return fmt.Errorf("%w: its case %s is not there", store.ErrCorrupt, e.Root)
	}
	command := tables.Command{Entry: e, Dirty: t.End(e.Seq)}
	p.cases = append(p.cases, command)
	p.rows.add([]tables.Command{command}, func(j *state.Job) int64 { return holder(p.holder, nil, j) })
	return nil
}

// tree returns the tree that an entry changes. The first entry of a root case begins with an empty tree, unless its rows are there.
func (p *projection) tree(e *store.Entry) (*state.Tree, error) {
	if t := p.trees[e.Root]; t != nil {
		return t, nil
	}
	_, there, err := p.c.number("SELECT 1 FROM @.cases WHERE root = $1 AND id = $1", uuid(e.Root))
	if err != nil {
		return nil, err
	}
	t := state.NewTree()
	t.Root = e.Root
	if there {
		t, err = loadTree(p.c, p.s.nets, e.Root, tables.NothingNewer)
	} else if e.Prev != 0 {
		err = fmt.Errorf("%w: it follows entry %d of its case, which has no rows", store.ErrCorrupt, e.Prev)
	}
	if err != nil {
		return nil, err
	}
	p.trees[e.Root] = t
	return t, nil
}

// write writes the rows, and the position up to which the tables are complete.
func (p *projection) write(process, last int64) error {
	tx := &transaction{serverTransaction: serverTransaction{s: p.s, w: p.c}}
	b := &batch{sql: p.c.sql}
	p.rows.queue(tx, b)
	tx.counts.queue(b)
	b.queue(projected, process, last)
	p.rows, p.cases = newRows(), nil
	clear(p.trees) // bounds the memory
	_, err := b.send(p.c)
	return err
}
