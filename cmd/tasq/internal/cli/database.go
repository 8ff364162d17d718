package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// database is what --db names: a file, or a database of a PostgreSQL server.
type database struct {
	name   string // for people: without a password
	file   string // "" for one of a server
	opener store.Opener
}

// inbox is an Opener that commands can be left with.
type inbox interface {
	Post(ctx context.Context, command json.RawMessage) (store.Answer, error)
	Leave(ctx context.Context, command json.RawMessage) error
}

// databaseOf finds what a word names: "postgres://user@host/name", or a path.
func databaseOf(word string) database {
	if strings.HasPrefix(word, "postgres://") || strings.HasPrefix(word, "postgresql://") {
		name := "the database"
		if u, err := url.Parse(word); err == nil {
			name = u.Redacted()
		}
		return database{name: name, opener: postgres.Open(word)}
	}
	return database{name: word, file: word, opener: sqlite.File(word)}
}

// inbox is where other processes leave commands.
func (d database) inbox() inbox { return d.opener.(inbox) }

// read opens the database for reading.
func (d database) read(ctx context.Context) (store.Store, error) {
	if info, err := os.Stat(d.file); err == nil && info.IsDir() {
		return nil, exit(ExitDatabase, "%s is a folder; name the database file in it", d.file)
	}
	s, err := d.opener.Open(ctx, store.Options{Now: now, ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.file != "":
		return nil, exit(ExitDatabase, "there is no file %s; name another with --db", d.file)
	case errors.Is(err, store.ErrOlder):
		return nil, exit(ExitDatabase, "%w; open it with the program that owns it, in its new version, or with a command of tasq that "+
			"acts (tasq item, case, event); an older program cannot open it any more then, so make a copy before", err)
	case err != nil:
		return nil, &exitError{ExitDatabase, err}
	}
	return s, nil
}

// fresh reports whether the database is still to be made.
func (d database) fresh(ctx context.Context) bool {
	if d.file != "" {
		info, err := os.Stat(d.file)
		return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
	}
	s, err := d.opener.Open(ctx, store.Options{Now: now, ReadOnly: true})
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	_ = s.Close() // it was only looked at
	return false
}
