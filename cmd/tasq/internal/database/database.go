// Package database converts the value of the flag --db to a database: the path of a SQLite file, or the URL of a
// database on a PostgreSQL server.
//
//	d := database.Of("postgres://app@db.example/orders")    // nothing is opened yet
//	e, err := engine.Open(ctx, d.Opener(), workflows...)    // as the only engine
//	s, err := d.Read(ctx)                                   // for reading, beside the engine that owns it
//	answer, err := d.Inbox().Post(ctx, command)             // a command for that engine
//
// So the rest of the command line does not depend on the kind of store. The package keeps no connections.
package database

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Database identifies a database. The zero value is none; see [Of].
type Database struct {
	word string
	name string
	file string // "" for a database on a server
}

// Inbox takes commands of other processes for the owner of a database.
type Inbox interface {
	// Post leaves a command and waits for its reply.
	Post(ctx context.Context, command json.RawMessage) (store.Answer, error)
	// Leave leaves a command without waiting for an owner.
	Leave(ctx context.Context, command json.RawMessage) error
}

// noName is the name of a database whose word has a password that cannot be separated from it.
const noName = "the database"

// Of returns the database for a word: "postgres://user@host/name", or a path. It opens nothing, so the database need
// not exist.
func Of(word string) Database {
	if !strings.HasPrefix(word, "postgres://") && !strings.HasPrefix(word, "postgresql://") {
		if strings.Contains(word, "password=") { // a connection string of keywords, which is refused as the path of a file
			return Database{word: word, name: noName, file: word}
		}
		return Database{word: word, name: word, file: word}
	}
	name := noName
	if u, err := url.Parse(word); err == nil {
		name = redacted(u)
	}
	return Database{word: word, name: name}
}

// redacted returns a URL without its passwords: that of the user, and those among the parameters.
func redacted(u *url.URL) string {
	parameters, bad := url.ParseQuery(u.RawQuery)
	hidden := bad != nil // what cannot be parsed is left out
	for name := range parameters {
		if strings.Contains(name, "password") {
			parameters[name], hidden = []string{"xxxxx"}, true
		}
	}
	if hidden { // else what was written stays as it is
		with := *u
		with.RawQuery = parameters.Encode()
		u = &with
	}
	return u.Redacted()
}

// Name returns the word for messages, without a password.
func (d Database) Name() string { return d.name }

// File returns the path of a SQLite file; "" for a database on a server.
func (d Database) File() string { return d.file }

// Opener returns an Opener for this process alone.
func (d Database) Opener() store.Opener {
	if d.file == "" {
		return postgres.Open(d.word, postgres.Alone())
	}
	return sqlite.File(d.file)
}

// Inbox returns the inbox of the database.
func (d Database) Inbox() Inbox { return d.Opener().(Inbox) }

// Valid returns an error if the word cannot name a database, such as a URL that cannot be parsed. It opens nothing.
func (d Database) Valid() error {
	if d.file != "" || d.word == "" {
		return nil
	}
	return d.Opener().(interface{ Valid() error }).Valid()
}

// Owned reports whether an engine has the database open. The database must exist. It changes nothing.
func (d Database) Owned(ctx context.Context) (bool, error) {
	return d.Opener().(interface {
		Owned(ctx context.Context) (bool, error)
	}).Owned(ctx)
}

// Read opens the database for reading, even while an engine owns it.
func (d Database) Read(ctx context.Context) (store.Store, error) {
	return d.Opener().Open(ctx, store.Options{Now: retry.SystemClock.Now, ReadOnly: true})
}

// Fresh reports whether the database does not exist yet.
func (d Database) Fresh(ctx context.Context) bool {
	if d.file != "" {
		info, err := os.Stat(d.file)
		return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
	}
	s, err := d.Read(ctx)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	_ = s.Close() // it was opened only for this check
	return false
}

// Migrate creates the schema of the database, or applies the migrations that it lacks. Engines may have a database on a server open meanwhile; a file
// must not be owned.
func (d Database) Migrate(ctx context.Context) error {
	if d.file == "" {
		return postgres.Open(d.word).(interface {
			Migrate(ctx context.Context) error
		}).Migrate(ctx)
	}
	s, err := d.Opener().Open(ctx, store.Options{Now: retry.SystemClock.Now})
	if err != nil {
		return err
	}
	return s.Close()
}

// Scratch returns an Opener for an empty database, and a function that removes it: a new schema in a database on a
// server, or a database in memory instead of a file.
func (d Database) Scratch() (o store.Opener, drop func(context.Context) error) {
	if d.file != "" || d.word == "" {
		return sqlite.Memory(), func(context.Context) error { return nil }
	}
	schema := postgres.Schema("tasq_scratch_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16])
	return postgres.Open(d.word, schema), func(ctx context.Context) error { return postgres.Drop(ctx, d.word, schema) }
}

// Beside returns the path of a file for the database: in the same directory, or in the current one for a database on a
// server.
func (d Database) Beside(suffix string) string {
	if d.file != "" {
		return d.file + suffix
	}
	name := "tasq"
	if u, err := url.Parse(d.word); err == nil && path.Base(u.Path) != "/" && path.Base(u.Path) != "." {
		name = path.Base(u.Path)
	}
	return name + suffix
}

// Query returns the command line that runs a query on the database.
func (d Database) Query(sql string) string {
	if d.file != "" {
		return fmt.Sprintf("sqlite3 %s %q", printable.Word(d.file), sql)
	}
	name, schema := d.forServer()
	return fmt.Sprintf("PGOPTIONS='-c search_path=%s' psql %s -c %q", schema, printable.Word(name), sql)
}

// forServer returns the name without the parameters that are Tasq's, which psql refuses, and the schema.
func (d Database) forServer() (name, schema string) {
	u, err := url.Parse(d.word)
	if err != nil {
		return d.name, postgres.DefaultSchema
	}
	parameters := u.Query()
	schema = cmp.Or(parameters.Get("tasq_schema"), postgres.DefaultSchema)
	all := len(parameters)
	maps.DeleteFunc(parameters, func(name string, _ []string) bool { return strings.HasPrefix(name, "tasq_") })
	if len(parameters) == all { // what was written stays as it is
		return d.name, schema
	}
	u.RawQuery = parameters.Encode()
	return redacted(u), schema
}
