package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

func TestFile(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "cases.db")) })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Opener { return sqlite.Memory() })
}

func TestWhatEndedEarlierIsCounted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cases.db")
	storetest.EndedEarlier(t, sqlite.File(path), "", "", "", "DELETE FROM migrations WHERE version >= 6; ALTER TABLE work_items DROP COLUMN retry", func(sql string) { edit(t, path, sql) })
}

// lagging is a file whose owner never writes its tables but when it is closed: each reader is another process, as far
// as the file can tell, and lays everything over them.
type lagging struct{ path string }

func (l lagging) Open(ctx context.Context, o store.Options) (store.Store, error) {
	owner, err := sqlite.File(l.path, sqlite.Window(1<<20, time.Hour)).Open(ctx, o)
	if err != nil || o.ReadOnly {
		return owner, err
	}
	reader, err := sqlite.File(l.path).Open(ctx, store.Options{ReadOnly: true})
	return &laggingStore{owner.(*sqlite.Store), reader}, err
}

type laggingStore struct {
	*sqlite.Store
	reader store.Store
}

// Idle writes no window, but reports whether the store is closed.
func (s *laggingStore) Idle(ctx context.Context) error {
	return s.Update(ctx, func(store.Tx) error { return nil })
}

func (s *laggingStore) View(ctx context.Context, f func(store.Reader) error) error {
	return s.reader.View(ctx, f)
}

func (s *laggingStore) Close() error { return errors.Join(s.reader.Close(), s.Store.Close()) }

func (s *laggingStore) Kill() error { return errors.Join(s.reader.Close(), s.Store.Kill()) }

// Everything that holds for a store holds for a reader beside an owner whose tables lag. The usual form has some of the
// rules of what is read: what is written goes to the owner.
func TestAReaderBesideALaggingOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("each read lays the whole log over the tables, which takes minutes with the race detector; run without -short")
	}
	t.Parallel()
	only := []string{"load", "history", "children", "present", "case-filter", "item-filter", "journal-filter", "waits", "due-order", "removable", "counts", "keys", "limits"}
	if testsize.Long() {
		only = nil
	}
	storetest.Run(t, func(t *testing.T) store.Opener { return lagging{filepath.Join(t.TempDir(), "cases.db")} }, only...)
}
