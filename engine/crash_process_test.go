package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"

	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// cut says which commits of a killed process are cut: each by a kill within the transaction, and by one between the commit and
// its acknowledgement. The usual form leaves out two of three. On PostgreSQL the usual form has one kill, and the nightly
// one leaves out two of three.
type cut struct{ first, last, every, nightly int }

// each calls f for each kill on each store, in a subtest. The path is that of a file for a database, or of one that does not exist and has
// the database of [storeOfKilled] beside it. -short leaves all of them out.
func (c cut) each(t *testing.T, f func(t *testing.T, path string, n int, moment string)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a process for each kill; run without -short")
	}
	kill := func(t *testing.T, n int, moment string, store func(t *testing.T, path string)) {
		t.Run(fmt.Sprintf("%s/%d", moment, n), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "killed.db")
			store(t, path)
			f(t, path, n, moment)
		})
	}
	moments := []string{"before", "after"}
	t.Run("sqlite", func(t *testing.T) {
		for n := c.first; n <= c.last; n += testsize.Pick(3*c.every, c.every, c.nightly) {
			if !testsize.InPart(n) {
				continue
			}
			for _, moment := range moments {
				kill(t, n, moment, func(*testing.T, string) {})
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		if !testsize.Long() {
			n := (c.first + c.last) / 2
			kill(t, n, moments[n%2], prepareDatabase)
			return
		}
		prepare, other := prepareDatabase, prepareWindow
		for n := c.first; n <= c.last; n += testsize.Pick(0, c.every, 3*c.nightly) {
			for _, moment := range moments {
				kill(t, n, moment, prepare)
			}
			prepare, other = other, prepare
		}
	})
}

// prepareDatabase makes a database for the killed process, and notes it beside the path.
func prepareDatabase(t *testing.T, path string) {
	dsn := prepared.Database(t)
	require.NoError(t, os.WriteFile(path+".dsn", []byte(dsn), 0o600))
}

// prepareWindow is prepareDatabase with rows that are written long after their commits, unless something reads them.
func prepareWindow(t *testing.T, path string) {
	prepareDatabase(t, path)
	require.NoError(t, os.WriteFile(path+".window", nil, 0o600))
}

// storeOfKilled is the store of a killed process: the database that the file path.dsn names, or the file itself.
func storeOfKilled(path string, opts ...sqlite.Option) store.Opener {
	if dsn, err := os.ReadFile(path + ".dsn"); err == nil {
		if _, err := os.Stat(path + ".window"); err == nil {
			return postgres.Open(string(dsn), postgres.Window(time.Second))
		}
		return postgres.Open(string(dsn))
	}
	return sqlite.File(path, opts...)
}

// smallWindow has the tables of a file written after a few commits.
var smallWindow = sqlite.Window(5, time.Millisecond)

// toBeKilled is the store of the child process of a test: the variable names its path, and TASQ_CUT the commit in which it dies, after some more
// that open the store. The path is empty in a process that is not to be killed.
func toBeKilled(t *testing.T, variable string, more int, opts ...sqlite.Option) (path string, o store.Opener) {
	t.Helper()
	path = os.Getenv(variable)
	if path == "" {
		return "", nil
	}
	n, err := strconv.Atoi(os.Getenv("TASQ_CUT"))
	require.NoError(t, err)
	return path, &cutter{Opener: storeOfKilled(path, opts...), n: n + more, before: os.Getenv("TASQ_MOMENT") == "before"}
}

// awaitDeath waits until an engine that has opened the store of a killed process has declared that one dead, and freed its jobs. A test that moves a
// virtual clock, or waits for nothing else to do, would leave those behind. A file has no such engine.
func awaitDeath(t *testing.T, path string) {
	t.Helper()
	if dsn, err := os.ReadFile(path + ".dsn"); err == nil {
		fleetOf{t, string(dsn)}.until("SELECT count(*) FROM tasq.processes", exactly(1))
	}
}

// killed runs a test of this program in a child process that kills itself at its n-th commit, and returns what it said
// before it died: the rest of each line that begins with the prefix. The variable has the database of the child.
func killed(t *testing.T, test, variable, path string, n int, moment, prefix string) (said []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"="+path, "TASQ_CUT="+strconv.Itoa(n), "TASQ_MOMENT="+moment)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the process must not live:\n%s%s", &out, &errs)
	require.False(t, exit.Exited(), "the process must be killed, not fail:\n%s%s", &out, &errs)
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			said = append(said, rest)
		}
	}
	return said
}

// cutter opens a store that kills the process at its n-th commit.
type cutter struct {
	store.Opener
	n      int
	before bool
}

// Open implements store.Opener.
func (c *cutter) Open(ctx context.Context, o store.Options) (store.Store, error) {
	done := 0
	return (&storehook.Opener{Opener: c.Opener, Fleet: true,
		Update: func(run func() error) error {
			done++
			err := run()
			if done >= c.n {
				die()
			}
			return err
		},
		Commit: func() error {
			if done >= c.n && c.before {
				die()
			}
			return nil
		},
	}).Open(ctx, o)
}

// die is kill -9.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}
