//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
)

// An engine that was declared dead, and lives, ends the program of a job that was taken from it, with all that the program has
// started, also if they ignore SIGTERM. All of them hold the named pipe open, so that it ends with the last of them.
func TestALostLeaseEndsTheProgram(t *testing.T) {
	f := newFleet(t)
	command := script(t, "mkdir begun || { echo 7; exit; }; trap '' TERM; exec 3>alive; sleep 1000 & echo ready >&3; wait")
	command.Grace = 10 * time.Millisecond
	alive := filepath.Join(command.Dir, "alive")
	require.NoError(t, syscall.Mkfifo(alive, 0o600))
	slow, err := builder.Exec[int, int]("slow", command)
	require.NoError(t, err)
	other, _ := function(t, "other", func(_ context.Context, n int) (int, error) { return n, nil })
	first := f.open(engine.Config{}, slow, other)
	id := startOn(t, first, "slow", "1")
	pipe, err := os.Open(alive) // waits for the program
	require.NoError(t, err)
	t.Cleanup(func() { _ = pipe.Close() })
	said := bufio.NewReader(pipe)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)

	second := f.open(engine.Config{}, slow)
	// Otherwise the first engine may be the one that takes the job again, and leave it to the worker that it has.
	f.sql("CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
	f.sql(fmt.Sprintf("CREATE TRIGGER leave BEFORE UPDATE ON tasq.jobs FOR EACH ROW WHEN (OLD.state = 'running' AND OLD.holder = 0 AND NEW.holder > %d) "+
		"EXECUTE FUNCTION skip()", f.sql("SELECT max(id)::int FROM tasq.processes")))
	f.sql("UPDATE tasq.processes SET state = 'dead' WHERE id = (SELECT min(id) FROM tasq.processes)")
	f.sql("UPDATE tasq.jobs SET holder = 0")
	require.Equal(t, "completed: 8", ends(t, first, startOn(t, first, "other", "8")), "it commits, and joins the fleet again")
	require.Equal(t, "completed: 7", ends(t, second, id))
	gone := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, said)
		gone <- err
	}()
	select {
	case err := <-gone:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the program, or what it has started, still runs")
	}
}
