package store

import "context"

// Backuper is a store that can copy itself while it is used.
type Backuper interface {
	// Backup writes a copy of everything that was acknowledged before the call into a new file. The copy is checked and
	// durable when Backup returns, and the file is there only then. Commands go on meanwhile.
	Backup(ctx context.Context, to string, o BackupOptions) error
}

// BackupOptions say how a copy is made. The zero value is a copy whose pages are checked.
type BackupOptions struct {
	Overwrite bool                               // a file that is there is replaced; without it that is an error
	Verify    func(context.Context, Store) error // checks the copy further, before it gets its name; nil does not
	Progress  func(pages, of int64)              // is called now and then; may be nil
}
