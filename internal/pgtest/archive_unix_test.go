//go:build unix

package pgtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
)

// programsThatCount makes a folder of the server's programs whose initdb notes each run in a file.
func programsThatCount(t *testing.T) (bin string, runs func() int) {
	t.Helper()
	bin = t.TempDir()
	for dir := bin; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // the server runs as another user
	}
	noted := filepath.Join(bin, "runs")
	require.NoError(t, os.WriteFile(noted, nil, 0o666))
	require.NoError(t, os.Chmod(noted, 0o666))
	real := pgtest.Programs(t)
	for name, first := range map[string]string{"postgres": "", "initdb": "echo run >>" + noted + "\n"} {
		script := "#!/bin/sh\n" + first + "exec " + filepath.Join(real, name) + ` "$@"` + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	return bin, func() int {
		text, err := os.ReadFile(noted)
		require.NoError(t, err)
		return strings.Count(string(text), "run")
	}
}

// Packages whose tests start a server share what initdb makes. What cannot be unpacked, or is empty as after a power failure, is created again.
func TestInitdbRunsOnceForAllProcesses(t *testing.T) {
	if os.Getenv(pgtest.EnvServer) != "" {
		t.Skip("the server is not one that tests start")
	}
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("without tar each server has an initdb of its own")
	}
	bin, runs := programsThatCount(t)
	home := t.TempDir()
	env := []string{pgtest.EnvBin + "=" + bin, "HOME=" + home, "XDG_CACHE_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	archives := func() []string {
		var all []string
		require.NoError(t, filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all = append(all, path)
			}
			return err
		}))
		return all
	}
	start := func(made int, why string) {
		t.Helper()
		out, err := alone(t, env...)
		require.NoError(t, err, out)
		require.Equal(t, made, runs(), why)
		require.Len(t, archives(), 1, why)
	}
	start(1, "the first one makes it")
	start(1, "the second one finds it")
	require.NoError(t, os.Truncate(archives()[0], 1000))
	start(2, "it was cut")
	require.NoError(t, os.WriteFile(archives()[0], make([]byte, 1<<20), 0o600))
	start(3, "it holds nothing")
	start(3, "it is whole again")
}
