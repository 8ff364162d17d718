// Package sqlkit has the common parts of stores on SQL databases: numbered migrations of a schema, and the user's SQL
// in a transaction.
//
// A migration is a file "0001_init.sql": its number, a name, and statements that are run once, in one transaction with
// the record of the migration. The record has a checksum, so that a change of a released migration is detected, instead
// of resulting in two different databases of the same version.
package sqlkit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// The ways in which a database and this program may not match.
var (
	ErrNewer   = errors.New("the schema is newer than this program")
	ErrChanged = errors.New("a migration was changed after it had been applied")
)

// Migration is one step of a schema.
type Migration struct {
	Version  int    // from 1, without a gap
	Name     string // "init" of 0001_init.sql
	SQL      string // any number of statements
	Checksum string // SHA-256 of SQL, in hexadecimal
}

// Applied is a migration that was applied to a database.
type Applied struct {
	Version  int
	Checksum string
}

// Load reads the migrations of a folder, in order. The error has the invalid file name, or the missing number.
func Load(folder fs.FS) ([]Migration, error) {
	files, err := fs.Glob(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, file := range files { // Glob returns them sorted
		number, rest, ok := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("migration %s: call it NUMBER_NAME.sql", file)
		}
		if version != len(all)+1 {
			return nil, fmt.Errorf("migration %s: its number should be %d", file, len(all)+1)
		}
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		all = append(all, Migration{Version: version, Name: rest, SQL: string(text),
			Checksum: hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// Pending returns the migrations that a database lacks, given the applied ones in the order of their versions. The
// error wraps [ErrNewer], with both versions, or [ErrChanged].
func Pending(known []Migration, applied []Applied) ([]Migration, error) {
	if len(applied) > len(known) {
		return nil, fmt.Errorf("%w: it has version %d, and this program knows up to %d; use a newer program",
			ErrNewer, applied[len(applied)-1].Version, len(known))
	}
	for i, a := range applied {
		if k := known[i]; a.Version != k.Version || a.Checksum != k.Checksum {
			return nil, fmt.Errorf("%w: version %d (%s)", ErrChanged, k.Version, k.Name)
		}
	}
	return known[len(applied):], nil
}
