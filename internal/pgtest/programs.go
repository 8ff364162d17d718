package pgtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// oldest is the oldest major version that the store supports.
const oldest = 15

// usual lists where packages of PostgreSQL put the server's programs.
var usual = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/libexec/postgresql*", "/usr/lib/psql*/bin",
	"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/Library/PostgreSQL/*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// programs finds the folder of the server's programs. The error wraps [ErrNone] if there is none that serves.
func programs() (string, error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		version, err := major(dir)
		if err == nil && version < oldest {
			err = fmt.Errorf("it has version %d, and the oldest that is supported is %d", version, oldest)
		}
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", EnvBin, dir, err)
		}
		return dir, nil
	}
	var dirs []string
	for _, name := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	for _, pattern := range usual {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	return newest(dirs)
}

// newest returns the folder with the newest version that is supported; of the same version the first.
func newest(dirs []string) (string, error) {
	versions := make(map[string]int, len(dirs))
	for _, dir := range dirs {
		versions[dir], _ = major(dir) // a folder without the programs has version 0
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(versions[b], versions[a]) })
	if len(dirs) == 0 || versions[dirs[0]] < oldest {
		return "", ErrNone
	}
	return dirs[0], nil
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// major asks the programs in a folder for their major version. A server needs initdb, too.
func major(dir string) (int, error) {
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb"+suffix)); err != nil {
		return 0, err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"+suffix), "--version").Output()
	if err != nil {
		return 0, err
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("postgres --version says %q", out)
	}
	return strconv.Atoi(string(m[1]))
}
