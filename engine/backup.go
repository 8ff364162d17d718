package engine

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
)

// Backup writes a copy of the database into a new file, while commands continue. The copy includes everything that was
// acknowledged before the call. It has passed the integrity check and is durable when Backup returns; the file appears
// only then. The error wraps io/fs.ErrExist if the file exists. The integrity check reads every case, and takes most of
// the time. Stores that do not support backups return an error.
func (e *Engine) Backup(ctx context.Context, to string) error {
	if e.isClosing() {
		return e.closedError()
	}
	b, ok := e.store.(store.Backuper)
	if !ok {
		return errors.New("the store cannot be copied while it is used (it is no store.Backuper): use the means of its database")
	}
	return b.Backup(ctx, to, store.BackupOptions{Verify: func(ctx context.Context, s store.Store) error {
		return integrity.Check(ctx, s)
	}})
}
