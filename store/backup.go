package store

import "context"

// Backuper is a store that supports backups while it is in use.
type Backuper interface {
	// Backup writes a copy of everything that was acknowledged before the call into a new file. The copy is checked and
	// durable when Backup returns, and the file is there only then. Commands continue meanwhile.
	Backup(ctx context.Context, to string, o BackupOptions) error
}

// BackupOptions are the options of a backup. With the zero value, only the pages of the copy are checked.
type BackupOptions struct {
	Overwrite bool                               // replace an existing file; otherwise that is an error
	Verify    func(context.Context, Store) error // an additional check of the copy before it gets its name; nil for none
	Progress  func(pages, of int64)              // is called from time to time; may be nil
}
