package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// openReader opens a store that never writes. Rows that an owner has committed but not yet written to the tables go
// into temporary tables of the reader, and temporary views with the names of the tables join both. So every query is
// exact, including the user's SQL.
func (s *Store) openReader() (store.Store, error) {
	if err := mustHold(s.path); err != nil {
		return nil, err
	}
	s.readOnly = true
	s.readers = newReaders(func(context.Context) (*conn, error) { return s.connectReader() })
	c, err := s.readers.Get(context.Background())
	if err != nil {
		return nil, explain(s.path, err)
	}
	s.readers.Put(c, c.frozen == nil)
	return s, nil
}

// mustHold refuses a file that does not exist or is empty, which SQLite would take for a database without tables.
func mustHold(path string) error {
	if err := mustHaveFile(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return at(path, "%w: %w", store.ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return at(path, "%w: give this process the right to read its folder: %w", store.ErrUnavailable, err)
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return emptyFile(path)
	}
	return nil // SQLite reports other problems
}

func emptyFile(path string) error {
	return at(path, "%w: the file is empty, so it has no cases yet; the first program that opens an engine on it makes "+
		"a database of it", store.ErrNotFound)
}

// mustHaveFile refuses a log whose database is missing or empty: SQLite would remove the log, and with it acknowledged
// commits. The log is checked first, since an owner writes the first page of a file before it creates the log.
func mustHaveFile(path string) error {
	if logEmpty(path) {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return at(path, "%w: the file is missing or empty, but its log %s-wal holds commits, and was not touched: put the file back "+
			"beside its log or restore a backup; to begin anew, remove the log", store.ErrCorrupt, path)
	}
	return nil
}

// logEmpty reports whether the write-ahead log of a file is empty, as after the owner's Close.
func logEmpty(path string) bool {
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// connectReader opens a connection that changes nothing. SQLite creates a log and its index for a file while it is
// read, and only a connection with write access deletes them when it is closed last. So:
//
//   - with an empty log the reader has write access, restricted by query_only, and leaves the directory as it was;
//   - if the log has entries, there is an owner, or one has crashed: a read-only connection leaves the log to the next
//     owner;
//   - in a directory that cannot be written, such as read-only media, there can be no log: the file is read as it is.
func (s *Store) connectReader() (*conn, error) {
	if !logEmpty(s.path) {
		c, err := s.readerFor("ro")
		if code(err) == sqlite3.SQLITE_CANTOPEN {
			err = at(s.path, "its folder cannot be written, and its log %s-wal holds commits that the file lacks: give this "+
				"process the right to write the folder, or copy both files elsewhere: %w", s.path, err)
		}
		return c, err
	}
	// An error is that of a file that is gone, which the next line reports.
	before, _ := stampOf(s.path)
	if err := s.checkOurs(); err != nil { // before a connection with write access, even if it only deletes a log
		// An owner that started meanwhile writes the first page before the file has the size that the page says, which
		// a reader without a lock takes for damage.
		after, _ := stampOf(s.path)
		if code(err) == sqlite3.SQLITE_CORRUPT && (after != before || !after.noLog) {
			return s.connectReader()
		}
		return nil, err
	}
	c, err := s.readerFor("rw")
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return s.freeze()
	}
	return c, err
}

// currentReader returns a free connection to the file that has the name now. SQLite keeps reading a file that was removed or moved, so one that
// was replaced, as by a restored copy, is opened anew.
func (s *Store) currentReader(ctx context.Context) (*conn, error) {
	for {
		c, err := s.readers.Get(ctx)
		if err != nil || c.file == nil {
			return c, err
		}
		info, err := os.Stat(s.path)
		if err == nil && os.SameFile(info, c.file) {
			return c, nil
		}
		s.readers.Put(c, false)
		if err != nil {
			return nil, at(s.path, "%w: the file was removed or moved while it was read; put it back, or name another: %w", store.ErrUnavailable, err)
		}
	}
}

func (s *Store) readerFor(mode string) (*conn, error) {
	info, err := os.Stat(s.path) // before the file is opened: one that is replaced meanwhile is opened again
	if err != nil {
		return nil, err
	}
	c, err := connect(context.Background(), dsn(s.path, mode), "busy_timeout=10000", "cache_size=-16384",
		"temp_store=MEMORY", "query_only=ON")
	if err != nil {
		return nil, err
	}
	c.file = info
	if err := s.checkSchema(c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

const immutable = "ro&immutable=1"

// checkOurs reads the file's header without a lock or a log. It uses SQLite, since opening and closing the file
// directly would release the locks of other connections in this process.
func (s *Store) checkOurs() error {
	c, err := connect(context.Background(), dsn(s.path, immutable))
	if err != nil {
		return err
	}
	application, _, err := c.number("PRAGMA application_id")
	if err == nil && application != applicationID {
		err = notOurs(s.path)
	}
	return errors.Join(err, c.close())
}

// stamp identifies the state of a file as visible from outside.
type stamp struct {
	size    int64
	changed time.Time
	noLog   bool
}

// A reader without locks cannot notice a writer in another way. A change that keeps the size and the time is not
// found.
func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), info.ModTime(), logEmpty(path)}, nil
}

// freeze opens a connection that takes no locks and assumes that the file does not change. It is used for one view.
// The stamp is compared at the end of the view: see stillFrozen.
func (s *Store) freeze() (*conn, error) {
	before, err := stampOf(s.path)
	if err != nil {
		return nil, err
	}
	c, err := s.readerFor(immutable)
	if err == nil {
		c.frozen = &before
	}
	return c, err
}

// stillFrozen checks after a view that no process has written the file meanwhile.
func (s *Store) stillFrozen(c *conn) error {
	if c.frozen == nil {
		return nil
	}
	if now, err := stampOf(s.path); err == nil && now == *c.frozen {
		return nil
	}
	return at(s.path, "%w: it was written while it was read, and what was read may be wrong: read it again",
		store.ErrConflict)
}

// checkSchema checks that this program can read the schema of the file.
func (s *Store) checkSchema(c *conn) error {
	application, _, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	if application != applicationID {
		return notOurs(s.path)
	}
	count, _, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	// A file with the right application and no table is empty, and not damaged: the next owner migrates it.
	if count == 0 { // its creator crashed before the first migration
		return emptyFile(s.path)
	}
	// This compares the list of versions and their checksums, as opening for writing does, but applies no migration.
	known, err := migrations()
	if err != nil {
		return err
	}
	pending, err := pendingMigrations(c, known)
	if err != nil {
		return explain(s.path, err)
	}
	if len(pending) > 0 {
		return at(s.path, "%w, with version %d of the schema, and this program reads version %d; opening it for writing "+
			"migrates it, and reading does not: %w", tables.Older(pending), len(known)-len(pending), len(known), store.ErrReadOnly)
	}
	return nil
}

const overlayPrefix = "newer_"

// makeOverlay creates the temporary tables and views of a reader. They hide the tables of the same names. Queries are
// somewhat slower with them, so they exist only while they have rows. Their columns have the same types as those of the
// tables: only then does SQLite query both tables by their indexes and merge the rows, instead of scanning and sorting
// them.
//
// For example, the position of the tables is 8, and the journal has an entry 9, which completed item 7 of case 1:
//
//	main.work_items           7 started, 6 completed
//	temp.newer_work_items     7 completed
//	temp.work_items           7 completed, from newer_work_items; 6, from main, as its id is not in newer_work_items
//
// SQLite searches temp before main for a name. So "FROM work_items" means the view, in the statements of this package
// and in the user's SQL; statements that need the table itself use main.
func makeOverlay(c *conn) error {
	if err := c.exec("CREATE TABLE " + overlaidRemoved + " (id TEXT PRIMARY KEY) WITHOUT ROWID"); err != nil {
		return err
	}
	for _, t := range tables.All {
		if err := overlayTable(c, t); err != nil {
			return err
		}
	}
	// Counts are added: those of the tables, and the changes since.
	const counts, ended = "temp." + overlayPrefix + "counts", "temp." + overlayPrefix + "ended"
	for _, statement := range []string{
		locateItems,
		"CREATE TEMP VIEW journal AS SELECT * FROM main.journal WHERE root NOT IN (SELECT id FROM " + overlaidRemoved + ")",
		"CREATE TABLE " + counts + " (what, workflow, task, state, n, PRIMARY KEY (what, workflow, task, state))",
		"CREATE TEMP VIEW counts AS SELECT what, workflow, task, state, sum(n) AS n FROM (SELECT * FROM main.counts " +
			"UNION ALL SELECT * FROM " + counts + ") GROUP BY what, workflow, task, state",
		"CREATE TABLE " + ended + " (hour INTEGER, workflow, task, state, took, n, PRIMARY KEY (hour, workflow, task, state, took))",
		"CREATE TEMP VIEW ended AS SELECT hour, workflow, task, state, took, n FROM main.ended " +
			"UNION ALL SELECT hour, workflow, task, state, took, n FROM " + ended,
	} {
		if err := c.exec(statement); err != nil {
			return err
		}
	}
	return overlayViews(c)
}

// overlaidRemoved has the ids of the cases of removed trees.
const overlaidRemoved = "temp." + overlayPrefix + "removed"

// overlayTable creates the table of the newer rows of a table, and the view of both.
func overlayTable(c *conn, t tables.Table) error {
	columns, of, newer := t.List(""), "case_id", "temp."+overlayPrefix+t.Name
	if t.Name == tables.Cases.Name {
		of = "id"
	}
	declared, err := declarations(c, t)
	if err != nil {
		return err
	}
	return c.exec(fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (id)) WITHOUT ROWID;"+
		"CREATE TEMP VIEW %s AS SELECT %s FROM %s "+
		"UNION ALL SELECT %s FROM main.%s WHERE id NOT IN (SELECT id FROM %s) AND %s NOT IN (SELECT id FROM %s)",
		newer, declared, t.Name, columns, newer, columns, t.Name, newer, of, overlaidRemoved))
}

// overlayViews copies the views of the schema to temp. They name the tables by the names that the temporary views have
// now, so the copies read those.
func overlayViews(c *conn) error {
	var views []string
	err := c.each("SELECT sql FROM main.sqlite_schema WHERE type = 'view'", nil, func(r *tables.Row) error {
		views = append(views, r.Text())
		return r.Err
	})
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := c.exec(strings.Replace(v, "CREATE VIEW", "CREATE TEMP VIEW", 1)); err != nil {
			return err
		}
	}
	return nil
}

// locatedItems is a view of the items with the root and the workflow of their case, which never change. An item is in
// the window together with its case, so newer items join newer cases, and the others join the table: a join of the two
// views would look up each item's case in both.
const locatedItems = overlayPrefix + "located_items"

var locateItems = "CREATE TEMP VIEW " + locatedItems + " AS " +
	"SELECT " + tables.Items.List("w.") + ", c.root, c.workflow " +
	"FROM temp." + overlayPrefix + "work_items w CROSS JOIN temp." + overlayPrefix + "cases c ON c.id = w.case_id " +
	"UNION ALL SELECT " + tables.Items.List("w.") + ", c.root, c.workflow " +
	"FROM main.work_items w CROSS JOIN main.cases c ON c.id = w.case_id " +
	"WHERE w.id NOT IN (SELECT id FROM temp." + overlayPrefix + "work_items) " +
	"AND w.case_id NOT IN (SELECT id FROM temp." + overlayPrefix + "removed)"

// declarations lists the columns of a table of the database with their types.
func declarations(c *conn, t tables.Table) (string, error) {
	var all []string
	err := c.each("SELECT name, type FROM pragma_table_info(?, 'main')", args(t.Name), func(r *tables.Row) error {
		all = append(all, r.Text()+" "+r.Text())
		return r.Err
	})
	return strings.Join(all, ", "), err
}

// overlay fills the temporary tables with what the journal has beyond the tables. The end of the transaction removes
// them.
//
// It replays the entries as an owner does when it opens the file, but writes the resulting window to temporary tables.
// While an owner runs, these are mostly the entries of a tenth of a second; after a crash, up to a whole window.
func (s *Store) overlay(c *conn, projected int64) error {
	w := newWindow()
	last, err := replay(c, s.nets, &w, projected, int(^uint32(0)>>1))
	if err != nil || last == projected {
		return err
	}
	// They are in memory, because of temp_store, and part of the reader's transaction: its ROLLBACK removes them.
	if err := c.exec("PRAGMA query_only=OFF"); err != nil { // needed for the temporary tables
		return err
	}
	err = makeOverlay(c)
	c.overlaid = err == nil
	if err == nil {
		err = w.write(newRowWriter(c, "temp."+overlayPrefix))
	}
	return errors.Join(err, c.exec("PRAGMA query_only=ON"))
}
