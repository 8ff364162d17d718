package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// backupPages is how many pages are copied between two checks of the context: a few milliseconds.
const backupPages = 2048

// Backup implements [store.Backuper]. It copies all pages within one read transaction; otherwise commits of other
// connections would make SQLite restart the copy. The disadvantage is that the write-ahead log cannot be reset during
// the copy, and grows by everything that is committed meanwhile.
func (s *Store) Backup(ctx context.Context, to string, o store.BackupOptions) (err error) {
	if to == "" {
		return errors.New("the copy has no name: name a file that is not there yet")
	}
	to, err = filepath.Abs(to)
	if err != nil {
		return err
	}
	if err := s.mayWrite(to, o.Overwrite); err != nil {
		return err
	}
	// In the directory of the copy, so that the final rename stays within a file system and is atomic. After a crash,
	// the temporary directory with an incomplete copy remains until the next copy into it, but there is never an incomplete copy
	// under the final name.
	removeAbandoned(filepath.Dir(to))
	temp, end, err := makeFolder(filepath.Dir(to))
	if err != nil {
		return at(to, "the copy cannot be written: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	part := filepath.Join(temp, filepath.Base(to))
	if err := s.copyTo(ctx, part, o.Progress); err != nil {
		return explainCopy(s.path, to, err)
	}
	if err := verifyCopy(ctx, part, o.Verify); err != nil {
		return fmt.Errorf("the copy is incomplete and was deleted: %w", err)
	}
	if s.memory == nil {
		if err := shareLike(s.path, part); err != nil {
			return at(to, "the copy cannot get the permissions of the database: %w", err)
		}
	}
	// The content is synced before the rename: a power failure between the two leaves the old copy, or none.
	if err := syncPath(part); err != nil {
		return at(to, "the copy cannot be written: %w", err)
	}
	// Rename replaces a file without a question, and the copy may have taken minutes.
	if err := s.mayWrite(to, o.Overwrite); err != nil { // it may have been created meanwhile
		return err
	}
	if err := os.Rename(part, to); err != nil {
		return at(to, "the copy cannot get its name: %w", err)
	}
	return syncFolder(filepath.Dir(to))
}

// mayWrite refuses to overwrite a file unless overwrite is set, and to overwrite a database in use in any case.
func (s *Store) mayWrite(to string, overwrite bool) error {
	there, err := os.Stat(to)
	if errors.Is(err, fs.ErrNotExist) {
		there = nil
	} else if err != nil {
		return at(to, "the copy cannot be written: %w", err)
	}
	if there != nil {
		if source, err := os.Stat(s.path); err == nil && os.SameFile(source, there) {
			return at(to, "it is the database itself: name another file for the copy")
		}
		if !overwrite {
			return at(to, "it is there already: name another file, or have it overwritten: %w", fs.ErrExist)
		}
	}
	// A database does not identify its log: SQLite would replay any log that has the right name.
	if !logEmpty(to) {
		return at(to, "a log lies beside it (%s-wal), which SQLite would take for that of the copy: close the program that uses "+
			"the file, or name another one: %w", to, fs.ErrExist)
	}
	return nil
}

// copyTo copies all pages to a new file.
func (s *Store) copyTo(ctx context.Context, to string, progress func(pages, of int64)) error {
	if s.memory != nil {
		s.mu.Lock()
		// Its only connection is the writer's. It is locked for the whole copy, which only copies memory.
		defer s.mu.Unlock()
		if err := s.flush(); err != nil {
			return err
		}
		return copyPages(ctx, s.w, copySource(to), progress)
	}
	c, err := s.readers.Get(ctx)
	if err != nil {
		return err
	}
	defer s.readers.Put(c, c.frozen == nil)
	if err := s.snapshot(c); err != nil {
		return err
	}
	// The connection has a read transaction, begun by snapshot. Without one, SQLite restarts the copy whenever another
	// connection commits between two steps, and with a busy engine the copy never ends.
	err = copyPages(ctx, c, copySource(to), progress)
	return errors.Join(err, c.exec("ROLLBACK"), s.stillFrozen(c))
}

// backuper is a connection of the driver.
type backuper interface {
	NewBackup(to string) (*sqlite3.Backup, error)
}

// backup begins a copy of the database, page by page, to the one with a data source name.
func (c *conn) backup(to string) (*sqlite3.Backup, error) {
	raw, ok := c.raw.(backuper)
	if !ok {
		return nil, errors.New("this version of modernc.org/sqlite cannot copy a database: use the version that Tasq's go.mod names")
	}
	return raw.NewBackup(to)
}

// copySource is the data source name of a new file that is synced once, as a whole.
func copySource(to string) string {
	return dsn(to, "rwc") + "&_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)"
}

// explainCopy is explain for an error while a database was copied into a file.
func explainCopy(from, to string, err error) error {
	if code(err) == sqlitelib.SQLITE_FULL { // the copy reads only, so it is not the disk of the database
		return at(to, "%w: the disk is full, so there is no copy; free some space or choose another folder: %w", store.ErrUnavailable, err)
	}
	return explain(from, err)
}

// copyPages copies the pages that the transaction of a connection sees to a data source.
func copyPages(ctx context.Context, c *conn, to string, progress func(pages, of int64)) error {
	b, err := c.backup(to)
	if err != nil {
		return err
	}
	// The context is compared between two steps, since a step cannot be interrupted.
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = b.Step(backupPages)
		}
		if progress != nil && err == nil {
			of := int64(b.PageCount())
			progress(of-int64(b.Remaining()), of)
		}
	}
	if ended := b.Finish(); err == nil { // after an error of a step, it returns that again
		err = ended
	}
	return err
}

// verifyCopy makes SQLite check the pages of a copy, and calls verify for the rest.
// A faulty copy is found when it is made, and not when it is needed. quick_check does not compare the indexes with
// their tables, which would take much longer.
func verifyCopy(ctx context.Context, path string, verify func(context.Context, store.Store) error) error {
	// Immutable: SQLite creates no log and no locks for a copy that no other process has open.
	c, err := connect(ctx, dsn(path, immutable))
	if err != nil {
		return explain(path, err)
	}
	found := ""
	err = c.each("PRAGMA quick_check(1)", nil, func(r *tables.Row) error { found = r.Text(); return r.Err })
	if err = errors.Join(err, c.close()); err != nil {
		return explain(path, err)
	}
	if found != "ok" {
		return explain(path, fmt.Errorf("%w: %s", store.ErrCorrupt, found))
	}
	if verify == nil {
		return nil
	}
	s, err := File(path).Open(ctx, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(verify(ctx, s), s.Close())
}

// The pages were written without a sync, each of which would be a wait: the file is synced once, as a whole.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder makes a new name durable. Not every system can sync a folder, and those that cannot need not.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
