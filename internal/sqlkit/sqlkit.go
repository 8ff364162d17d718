// Package sqlkit has the common parts of stores on SQL databases: numbered migrations of a schema, and the user's SQL
// in a transaction.
//
// A migration is a file "0001_init.sql": its number, a name, and statements that are run once, in one transaction with
// the record of the migration. The record has a checksum, so that a change of a released migration is detected, instead
// of resulting in two different databases of the same version.
//
// A migration that only adds leaves the programs running that do not know it yet. One that they cannot run with begins with a
// line that names the oldest program for the new schema, by the last migration that this program knows:
//
//	-- oldest program: 12
package sqlkit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
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
	Oldest   int    // the version that a program must know at least to run after it; 0 if the migration only adds
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
		m := Migration{Version: version, Name: rest, SQL: string(text), Checksum: hex.EncodeToString(sum[:])}
		if named := oldestProgram.FindStringSubmatch(m.SQL); named != nil {
			m.Oldest, err = strconv.Atoi(named[1])
			if err != nil || m.Oldest < 1 || m.Oldest > version {
				return nil, fmt.Errorf("migration %s: the oldest program is %s, and should be from 1 to %d", file, named[1], version)
			}
		}
		all = append(all, m)
	}
	return all, nil
}

var oldestProgram = regexp.MustCompile(`^-- oldest program: (\d+)\n`)

// Oldest returns the version that a program must know at least to run on a schema with these migrations.
func Oldest(applied []Migration) int {
	oldest := 1
	for _, m := range applied {
		oldest = max(oldest, m.Oldest)
	}
	return oldest
}

// Pending returns the migrations that a database lacks, given the applied ones in the order of their versions. The
// database may have later migrations than this program knows, if oldest, which the database has recorded, is a version
// that it knows; 0 if the database has no such record. The error wraps [ErrNewer], with the versions, or [ErrChanged].
func Pending(known []Migration, applied []Applied, oldest int) ([]Migration, error) {
	if len(applied) > len(known) {
		newest := applied[len(applied)-1].Version
		switch {
		case oldest == 0:
			return nil, fmt.Errorf("%w: it has version %d, and this program knows up to %d; use a newer program",
				ErrNewer, newest, len(known))
		case oldest > len(known):
			return nil, fmt.Errorf("%w: it has version %d, on which programs run that know version %d, and this program knows up to %d; "+
				"use a newer program", ErrNewer, newest, oldest, len(known))
		}
		applied = applied[:len(known)]
	}
	for i, a := range applied {
		if k := known[i]; a.Version != k.Version || a.Checksum != k.Checksum {
			return nil, fmt.Errorf("%w: version %d (%s)", ErrChanged, k.Version, k.Name)
		}
	}
	return known[len(applied):], nil
}
