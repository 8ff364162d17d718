//go:build unix

package pgtest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// initOptions are the options of initdb, but for the rules of text.
const initOptions = "-U tasq -A trust -E UTF8 --no-sync --locale=C"

// maxArchiveAge is how old an archive of other programs may be when one is kept beside it.
const maxArchiveAge = 30 * 24 * time.Hour

// archiveOf is the path of the archive with the data folder that initdb of these programs makes. To unpack it takes a tenth of the time of
// initdb, and each package with a server starts one. It is one file, so that packages whose tests run at the same time meet all of it
// or none, and one that is removed is still there for who has opened it. It is "" where files cannot be kept: then initdb runs each time.
func archiveOf(bin string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	key := sha256.New()
	for _, program := range []string{"initdb", "postgres"} { // an update of the package changes them
		path := filepath.Join(bin, program)
		info, err := os.Stat(path)
		if err != nil {
			return ""
		}
		_, _ = fmt.Fprintln(key, path, info.Size(), info.ModTime().UnixNano()) // a hash takes all that is written
	}
	version, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return ""
	}
	_, _ = fmt.Fprintln(key, string(version), keeper, os.Getenv("TZ")) // initdb writes the time zone into the configuration
	return filepath.Join(cache, "tasq-test", fmt.Sprintf("postgres-%x.tar", key.Sum(nil)[:8]))
}

// keep moves an archive that a server has packed, if there is one, to its place. One that cannot be kept costs time only, so that is no
// error.
func keep(packed, archive string) {
	from, err := os.Open(packed)
	if err != nil {
		return // the server used the archive, or there is no program tar
	}
	defer func() {
		_ = from.Close()
		_ = os.Remove(packed)
	}()
	folder := filepath.Dir(archive)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return
	}
	removeOld(folder)
	to, err := os.CreateTemp(folder, "postgres-*.new")
	if err != nil {
		return
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Sync() // before it has its name: a power failure must not leave half of it there
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(to.Name(), archive)
	}
	if err != nil {
		_ = os.Remove(to.Name())
	}
}

// removeOld removes archives of programs that may be gone, and what a process that was killed has not finished.
func removeOld(folder string) {
	all, _ := filepath.Glob(filepath.Join(folder, "postgres-*")) // the pattern is well-formed
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > maxArchiveAge {
			_ = os.Remove(path)
		}
	}
}
