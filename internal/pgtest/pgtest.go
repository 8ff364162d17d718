// Package pgtest gives tests a PostgreSQL database of their own.
//
// The server is one that the test process starts: of the programs in the folder TASQ_POSTGRES_BIN, in the path, or in the
// usual folders of PostgreSQL 15 or newer, on a data folder in the temporary folder and a free port of the loopback
// address. It ends with the test process, also when that is killed. On Linux the data folder is in /dev/shm, if 4 GB are free there and
// TMPDIR is not set. The folder tasq-test of the user's cache keeps what initdb has made, 30 MB for each version of the programs. If TASQ_TEST_POSTGRES is set, it names a server
// instead, as a connection string of a role that may create databases; "none" is as if there were none.
//
// Without either, a test that needs a database is skipped; it fails if CI is "true" or TASQ_REQUIRE_POSTGRES is set.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// The environment variables that say where the server comes from.
const (
	EnvServer  = "TASQ_TEST_POSTGRES"    // connection string of a server that runs already
	EnvBin     = "TASQ_POSTGRES_BIN"     // folder with the server's programs
	EnvRequire = "TASQ_REQUIRE_POSTGRES" // not empty: a test without a server fails

	EnvRequirePooler = "TASQ_REQUIRE_PGBOUNCER" // not empty: a test without a pooler fails
)

// ErrNone says that there is no server, and no programs to start one.
var ErrNone = errors.New("there is no PostgreSQL for the test: install PostgreSQL 15 or newer, name the folder of its programs " +
	"in " + EnvBin + ", or name a server in " + EnvServer)

// T is what a database needs of a test; *testing.T and *testing.B are one. The package does not import testing, since a program that
// shows the servers uses it, too.
type T interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// Database returns the connection string of an empty database, which is dropped when the test ends. The test is skipped,
// or fails, if there is no server; see the package.
func Database(t T) string {
	t.Helper()
	admin := serverOf(t)
	name := create(t, admin)
	t.Cleanup(func() {
		if err := run(admin, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the database %s: %v", name, err)
		}
	})
	dsn, err := withDatabase(admin, name)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// serverOf is the server, for a test that is skipped, or fails, if there is none.
func serverOf(t T) string {
	t.Helper()
	admin, err := server()
	if errors.Is(err, ErrNone) && !required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// create makes a database, and returns its name.
func create(t T, admin string) string {
	t.Helper()
	name := "tasq_test_" + strings.ToLower(rand.Text())
	// A copy of files takes half the processor time of one through the log of the server.
	if err := run(admin, "CREATE DATABASE "+name+" STRATEGY file_copy"); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	return name
}

// Server returns the connection string of the server of this process, as a role that may create databases. It is started at the first
// call, and ends with the process. The error wraps [ErrNone] if there is none to start.
func Server() (string, error) { return server() }

// Durable is like [Server] for measurements: the commits of the server that it starts are on the disk.
func Durable() (string, error) { return durable() }

// Cluster is a server of a test's own. Get one from [Restartable].
type Cluster struct {
	DSN             string // names a database of it, as a role that may do everything
	fast, immediate func() error
}

// Restart ends the server as with "pg_ctl restart -m fast", or as a crash does if it is to be immediate, and waits until it takes connections
// again.
func (c *Cluster) Restart(immediate bool) error {
	if immediate {
		return c.immediate()
	}
	return c.fast()
}

// Pair is a server and a standby of it. Get one from [Replicated].
type Pair struct {
	DSN     string // names both: the one that can be written is used
	Primary string
	Standby string
	kill    func() error
}

// Detach has the standby follow no more: what the primary commits from now on is lost with it.
func (p *Pair) Detach() error {
	for _, statement := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		if err := run(p.Standby, statement); err != nil {
			return err
		}
	}
	return until(p.Standby, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
}

// Kill ends the primary as a crash does.
func (p *Pair) Kill() error { return p.kill() }

// Promote makes the standby the primary.
func (p *Pair) Promote() error {
	if err := run(p.Standby, "SELECT pg_promote()"); err != nil {
		return err
	}
	return until(p.Standby, "SELECT NOT pg_is_in_recovery()")
}

// until waits until a query returns true.
func until(dsn, query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		is := false
		if err := c.QueryRow(ctx, query).Scan(&is); err != nil || is {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func required() bool { return os.Getenv("CI") == "true" || os.Getenv(EnvRequire) != "" }

// server returns the connection string of the server of this process, which it starts once.
var server = sync.OnceValues(func() (string, error) { return find(false) })

var durable = sync.OnceValues(func() (string, error) { return find(true) })

// find finds a server that runs, or starts one.
func find(durable bool) (string, error) {
	switch dsn := os.Getenv(EnvServer); dsn {
	case "":
	case "none":
		return "", ErrNone
	default:
		return dsn, nil
	}
	bin, err := programs()
	if err != nil {
		return "", err
	}
	return start(bin, durable)
}

// withDatabase is a connection string with another database.
func withDatabase(dsn, name string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name, nil // the last of a keyword counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("%s: %w", EnvServer, err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// patience bounds what a test waits for the server.
const patience = 2 * time.Minute
