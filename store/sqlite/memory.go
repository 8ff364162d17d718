package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// memory is a database that lives as long as its Opener.
//
// The connection is the database, which ends with it. So it belongs to the Opener and outlives the stores. Kill waits
// for the running update, so that no transaction is left open on it.
type memory struct {
	set  settings
	mu   sync.Mutex
	c    *conn
	open bool
}

// Memory returns an Opener for a SQLite database in memory, for tests and experiments. The database lives as long as
// the Opener: closing or killing the store (see [store.Killer]) and opening it again finds what was committed. Each
// Opener has its own database. A view excludes updates and other views. The options are those of [File]; those about
// syncing have no effect.
func Memory(opts ...Option) store.Opener { return &memory{set: newSettings(opts)} }

// Open implements [store.Opener].
func (m *memory) Open(_ context.Context, o store.Options) (store.Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open {
		return nil, fmt.Errorf("in-memory database: %w: another store of this process", store.ErrOwned)
	}
	s := newStore("in-memory database", m.set, o)
	if m.c == nil {
		c, err := emptyMemory(s.now())
		if err != nil {
			return nil, explain(s.path, err)
		}
		m.c = c
	}
	// The one connection is that of the writer; views use it too, and take the lock of the store.
	s.memory, s.w, m.open = m, m.c, true
	if err := s.prepare(); err != nil {
		m.open = false
		return nil, explain(s.path, err)
	}
	s.readOnly = o.ReadOnly
	return s, nil
}

// release allows the database to be opened again.
func (m *memory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.c.forget()
	m.open = false
}

// memoryTemplate is a database in memory with the schema and without cases. Creating the schema takes 5 ms and copying
// it less than 1 ms, and most tests of a workflow open their own database.
var memoryTemplate = sync.OnceValues(func() (*conn, error) {
	c, err := connect(context.Background(), ":memory:", "application_id="+strconv.Itoa(applicationID))
	if err != nil {
		return nil, err
	}
	if _, err := migrate(c, time.Time{}); err != nil { // each copy sets its own time
		return nil, errors.Join(err, c.close())
	}
	return c, nil
})

// emptyMemory creates a database in memory as a copy of the template, and returns its connection.
// The times of its migrations are those of the clock of its store, which a test may have set.
func emptyMemory(now time.Time) (*conn, error) {
	copied, err := copyTemplate()
	if err != nil {
		return nil, err
	}
	c, err := adopt(copied, "cache_size=-32768", "temp_store=MEMORY")
	if err != nil {
		return nil, err
	}
	if err := c.run("UPDATE migrations SET applied = ?", state.Micros(now)); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func copyTemplate() (driver.Conn, error) {
	template, err := memoryTemplate()
	if err != nil {
		return nil, err
	}
	// All databases in memory of this process are copied from it, by any number of goroutines.
	template.mu.Lock()
	defer template.mu.Unlock()
	b, err := template.backup(":memory:")
	if err != nil {
		return nil, err
	}
	if _, err := b.Step(-1); err != nil { // all pages
		return nil, errors.Join(err, b.Finish())
	}
	return b.Commit()
}
