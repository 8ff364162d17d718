package sqlite

import (
	"errors"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
)

// DB implements [store.Reader].
func (r *reader) DB() domain.DB {
	if r.ended {
		return sqlkit.DeadDB()
	}
	if r.user == nil {
		r.user = sqlkit.NewUserDB(r.c.raw, r, domain.SQLite, "")
	}
	return r.user
}

// Lock implements [sqlkit.Scope].
func (r *reader) Lock() { r.c.mu.Lock() }

// Unlock implements [sqlkit.Scope].
func (r *reader) Unlock() { r.c.mu.Unlock() }

// Do implements [sqlkit.Scope]. An in-memory database has one connection, which is also the writer's.
func (r *reader) Do(_ string, f func() error) error {
	if !r.shared {
		return r.c.guard.run(f)
	}
	if err := r.c.execLocked("PRAGMA query_only=ON"); err != nil {
		return err
	}
	return errors.Join(r.c.guard.run(f), r.c.execLocked("PRAGMA query_only=OFF"))
}

// Met implements [sqlkit.Scope].
func (r *reader) Met(err error) error { return err }

func (r *reader) end() {
	r.ended = true
	if r.user != nil {
		r.user.End()
	}
}
