package pgtest_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestEachTestHasAnEmptyDatabase(t *testing.T) {
	first, second := connect(t, pgtest.Database(t)), connect(t, pgtest.Database(t))
	for _, c := range []*pgx.Conn{first, second} {
		_, err := c.Exec(t.Context(), "CREATE TABLE same (name text)")
		require.NoError(t, err, "the two would meet in one database")
	}
}

// dsnOfChild makes this test binary a child that starts a server, prints its connection string and waits.
const dsnOfChild = "TASQ_PGTEST_CHILD"

func TestChild(t *testing.T) {
	if os.Getenv(dsnOfChild) == "" {
		t.Skip("it is the child of TestTheServerEndsWithAKilledProcess")
	}
	_, _ = os.Stdout.WriteString("dsn " + pgtest.Database(t) + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestTheServerEndsWithAKilledProcess(t *testing.T) {
	if os.Getenv(pgtest.EnvServer) != "" {
		t.Skip("the server is not one that tests start")
	}
	pgtest.Database(t) // skips without a server
	temp := t.TempDir()
	require.NoError(t, os.Chmod(temp, 0o777))
	for dir := filepath.Dir(temp); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // the server runs as another user
	}
	child := exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), dsnOfChild+"=1", "TMPDIR="+temp)
	_, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	dsn := ""
	for lines := bufio.NewScanner(out); dsn == "" && lines.Scan(); {
		dsn, _ = strings.CutPrefix(lines.Text(), "dsn ")
	}
	require.NotEmpty(t, dsn, "the child has no server")
	c := connect(t, dsn)
	require.NoError(t, c.Ping(t.Context()))

	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it says that it was killed
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(temp)
		return err == nil && len(left) == 0 && c.Ping(context.Background()) != nil
	}, time.Minute, 20*time.Millisecond, "the server or its folder is left behind")
}

// alone runs a test of this binary that needs a database, with nothing of this environment.
func alone(t *testing.T, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEachTestHasAnEmptyDatabase$", "-test.v")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWithoutAServerTheTestIsSkippedAndSaysHowToGetOne(t *testing.T) {
	out, err := alone(t, pgtest.EnvServer+"=none")
	require.NoError(t, err)
	require.Contains(t, out, "SKIP")
	require.Contains(t, out, "install PostgreSQL 15")
}

func TestWithoutAServerTheTestFailsWhereOneIsRequired(t *testing.T) {
	for _, env := range []string{"CI=true", pgtest.EnvRequire + "=1"} {
		out, err := alone(t, pgtest.EnvServer+"=none", env)
		require.Error(t, err, env)
		require.Contains(t, out, "install PostgreSQL 15")
	}
}

func TestAFolderWithoutProgramsIsNamed(t *testing.T) {
	dir := t.TempDir()
	out, err := alone(t, pgtest.EnvBin+"="+dir)
	require.Error(t, err)
	require.Contains(t, out, dir)
}
