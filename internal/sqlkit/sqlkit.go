// Package sqlkit is what adapters of SQL databases share: schemas that grow by numbered migrations.
//
// A migration is a file "0001_init.sql": its number, a name, and statements that are run once, in one transaction with
// the note that they were. What was applied is kept with a checksum, so that a migration that was edited after its
// release is found out instead of leaving two databases of one version that differ.
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

// The ways in which a database and this program can disagree.
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

// Applied is a migration that a database has.
type Applied struct {
	Version  int
	Checksum string
}

// Load reads the migrations of a folder, in order. The error names the file that is misnamed, or the number that is
// missing.
func Load(folder fs.FS) ([]Migration, error) {
	files, err := fs.Glob(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, file := range files { // Glob sorts them
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

// Pending returns the migrations that a database lacks, given those that it has in order of their versions. The error
// wraps [ErrNewer] and says both versions, or wraps [ErrChanged].
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
