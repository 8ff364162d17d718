package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/internal/transfer"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
)

// envCopy has what a process of the test copies, and where, and at which update of the target it dies: "from to 2
// before".
const envCopy = "TASQ_TEST_COPY"

// place is a database by a word: a connection string, or a path.
func place(word string) store.Opener {
	if strings.HasPrefix(word, "postgres://") {
		return postgres.Open(word)
	}
	return sqlite.File(word)
}

// deadly is a store in whose update this process dies, when everything is written, or right after the commit.
type deadly struct {
	store.Store
	left  int
	after bool
}

func (d *deadly) Update(ctx context.Context, f func(store.Tx) error) error {
	d.left--
	err := d.Store.Update(ctx, func(tx store.Tx) error {
		err := f(tx)
		if d.left < 0 && !d.after {
			return errors.Join(err, die())
		}
		return err
	})
	if d.left < 0 && d.after {
		return errors.Join(err, die())
	}
	return err
}

// die ends this process as kill -9 does.
func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err == nil {
		select {}
	}
	return err
}

// TestCopier is a process of [TestACopyThatIsKilledGoesOn].
func TestCopier(t *testing.T) {
	words := strings.Fields(os.Getenv(envCopy))
	if len(words) == 0 {
		t.Skip("it is the child of TestACopyThatIsKilledGoesOn")
	}
	n, err := strconv.Atoi(words[2])
	require.NoError(t, err)
	_, err = transfer.Copy(t.Context(), open(t, place(words[0])), &deadly{open(t, place(words[1])), n, words[3] == "after"}, nil)
	require.NoError(t, err)
}

// A copy that is killed at any commit is incomplete, which is detected, and is completed by the next. The usual form
// kills it at each fifth commit.
func TestACopyThatIsKilledGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes, which takes seconds; run without -short")
	}
	file := func(t *testing.T) string { return filepath.Join(t.TempDir(), "cases.db") }
	server := func(t *testing.T) string { return pgtest.Database(t) }
	for _, way := range []struct {
		name     string
		from, to func(*testing.T) string
	}{{"to a server", file, server}, {"to a file", server, file}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			from := way.from(t)
			w := source(t, place(from))
			require.NoError(t, w.Store.Close())
			for _, when := range []string{"before", "after"} {
				n, every := 0, testsize.Pick(5, 1, 1)
				for ; killed(t, w, from, way.to(t), n, when); n += every {
				}
				require.Greater(t, n, 3, "batches of entries, and the records")
			}
			holds(t, w, place(from))
		})
	}
}

// killed copies by a process that dies in an update of the target, and then by one that does not. It reports whether
// the first one died.
func killed(t *testing.T, w *storetest.World, from, to string, n int, when string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCopier$", "-test.count=1")
	cmd.Env = append(os.Environ(), envCopy+"="+strings.Join([]string{from, to, strconv.Itoa(n), when}, " "))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if err == nil {
		return false
	}
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it was to be killed, and said: %s", said.String())
	target := open(t, place(to))
	half := target.View(t.Context(), func(r store.Reader) error { return transfer.Whole(t.Context(), r) })
	if ended := half == nil && entries(t, target) > 0; !ended {
		if n > 0 || when == "after" {
			require.ErrorIs(t, half, store.ErrHalfCopied)
			require.ErrorContains(t, half, "give the same tasq copy again")
			_, err = transfer.Copy(t.Context(), target, open(t, sqlite.Memory()), nil)
			require.ErrorIs(t, err, store.ErrHalfCopied, "it is no source either")
			require.NoError(t, target.Close())
			_, err = engine.Open(t.Context(), place(to))
			require.ErrorIs(t, err, store.ErrHalfCopied)
			target = open(t, place(to))
		}
		source := open(t, place(from))
		_, err = transfer.Copy(t.Context(), source, target, nil)
		require.NoError(t, err)
		require.NoError(t, source.Close())
	}
	require.NoError(t, target.Close())
	holds(t, w, place(to))
	return true
}

func entries(t *testing.T, s store.Store) (n int64) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		a, err := r.(store.Auditor).Audit(t.Context(), 1)
		n = a.Entries
		return err
	}))
	return n
}
