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

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"

	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/internal/testsize"
)

// cut says which commits of a killed process are cut: each by a kill within the transaction, and by one between the commit and
// its acknowledgement. The usual form leaves out two of three.
type cut struct{ first, last, every, nightly int }

// each calls f for each kill, in a subtest with a file for a database; -short leaves all of them out.
func (c cut) each(t *testing.T, f func(t *testing.T, path string, n int, moment string)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a process for each kill; run without -short")
	}
	every := testsize.Pick(3*c.every, c.every, c.nightly)
	for n := c.first; n <= c.last; n += every {
		for _, moment := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s/%d", moment, n), func(t *testing.T) {
				t.Parallel()
				f(t, filepath.Join(t.TempDir(), "killed.db"), n, moment)
			})
		}
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
	fleet  bool // the engine is one of several, if the store can do that
}

// Open implements store.Opener.
func (c *cutter) Open(ctx context.Context, o store.Options) (store.Store, error) {
	done := 0
	return (&storehook.Opener{Opener: c.Opener, Fleet: c.fleet,
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
