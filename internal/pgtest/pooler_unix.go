//go:build unix

package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// poolerKeeper runs the pooler as its child, as keeper does with the server.
const poolerKeeper = `
trap "" PIPE
exec 3<&0
"$1" -q "$2/pooler.ini" >"$2/log" 2>&1 </dev/null 3<&- &
pooler=$!
{ cat <&3 >/dev/null; kill $pooler; } 2>/dev/null &
watch=$!
wait $pooler
kill $watch
tail -n 20 "$2/log" >&2
rm -rf "$2"
`

// poolerConfig gives each transaction the connection that was used least recently, so that what a client leaves in a session is met by others
// at once.
const poolerConfig = `[databases]
* = host=%s port=%d user=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_round_robin = 1
default_pool_size = %d
max_client_conn = 2000
log_connections = 0
log_disconnections = 0
`

// pooled is how many connections to the server a pooler has for a database.
const pooled = 12

// NeedsPooler skips a test without PgBouncer, or fails it, before it starts a server for nothing; see [Pooler].
func NeedsPooler(t T) {
	t.Helper()
	poolerOf(t)
}

// poolerOf finds the program, for a test that is skipped, or fails, without it.
func poolerOf(t T) (program string) {
	t.Helper()
	program, err := poolerProgram()
	if err != nil && os.Getenv(EnvRequirePooler) == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Pooler starts PgBouncer before a server, with a session of the server for each transaction, and returns what makes a connection string of the
// server one that leads through it. It ends with the test. The test is skipped, or fails if [EnvRequirePooler] says so, without the program.
func Pooler(t T, server string) (through func(dsn string) string) {
	t.Helper()
	program := poolerOf(t)
	at := ""
	var err error
	for range attempts {
		var end func()
		if at, end, err = startPooler(program, server); err == nil {
			t.Cleanup(end)
			break
		}
	}
	if err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return func(dsn string) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = at
		return u.String()
	}
}

func poolerProgram() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no pooler for the test: install PgBouncer")
}

// startPooler starts the program, and returns where it listens, and what ends it.
func startPooler(program, server string) (at string, end func(), err error) {
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "tasq-pooler-*")
	if err != nil {
		return "", nil, err
	}
	password := ""
	if config.Password != "" {
		password = "password=" + config.Password
	}
	text := fmt.Sprintf(poolerConfig, config.Host, config.Port, config.User, password, port, pooled)
	credential, err := another(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pooler.ini"), []byte(text), 0o644)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	var said bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", poolerKeeper, "sh", program, dir)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = dir, &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	at = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := await("postgres://"+config.User+"@"+at+"/"+config.Database+"?sslmode=disable", ended); err != nil {
		return "", nil, fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	return at, func() {
		_ = in.Close()
		<-ended
	}, nil
}
