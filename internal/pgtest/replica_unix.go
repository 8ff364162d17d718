//go:build unix

package pgtest

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Replicated starts a server and a standby of it, both the test's own. A commit on the primary waits for the standby if they are to be
// synchronous. The test is skipped as with [Restartable].
func Replicated(t T, synchronous bool) *Pair {
	t.Helper()
	bin := ownPrograms(t)
	primary := ownCluster(t, bin, "once", nil)
	p, err := url.Parse(primary.dsn)
	if err != nil {
		t.Fatal(err)
	}
	standby := ownCluster(t, bin, "once", func(data string, as *syscall.Credential) error {
		from := fmt.Sprintf("host=%s port=%s user=%s application_name=standby", p.Hostname(), p.Port(), p.User.Username())
		cmd := exec.Command(filepath.Join(bin, "pg_basebackup"), "-d", from, "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
		cmd.Dir, cmd.SysProcAttr = filepath.Dir(data), &syscall.SysProcAttr{Credential: as}
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	s, err := url.Parse(standby.dsn)
	if err != nil {
		t.Fatal(err)
	}
	state := "async"
	if synchronous {
		state = "sync"
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
			if err := run(primary.dsn, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := until(primary.dsn, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+state+"')"); err != nil {
		t.Fatalf("the standby does not follow: %v", err)
	}
	both := *p
	both.Host = p.Host + "," + s.Host
	both.RawQuery += "&target_session_attrs=read-write"
	return &Pair{
		DSN: both.String(), Primary: primary.dsn, Standby: standby.dsn,
		kill: func() error {
			pid, err := primary.pid()
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGQUIT)
			}
			return err
		},
	}
}
