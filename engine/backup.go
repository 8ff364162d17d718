package engine

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
)

// Backup writes a copy of the database into a new file, while commands go on. The copy holds everything that was
// acknowledged before the call; it is complete, checked by the integrity check and durable when Backup returns, and the
// file is there only then. A file of that name is an error that wraps [io/fs.ErrExist]. The check reads every case, and
// takes most of the time. A store that cannot be copied is an error.
func (e *Engine) Backup(ctx context.Context, to string) error {
	b, ok := e.store.(store.Backuper)
	if !ok {
		return errors.New("the store cannot be copied while it is used (it is no store.Backuper): use the means of its database")
	}
	return b.Backup(ctx, to, store.BackupOptions{Verify: func(ctx context.Context, s store.Store) error {
		return integrity.Check(ctx, s)
	}})
}
