//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// keeper runs the server as its child, and ends it when its own standard input ends: that is a pipe whose other end only
// the test process has, so it ends with that process however that ends. A signal to the server by its number cannot meet
// another process, since the server's end is awaited here. What the keeper says when the test process is gone goes
// nowhere, and must not end it before the folder is removed.
//
// Text is compared by the rules of a language, as in most databases: a statement that depends on the order of bytes and
// does not say so fails here. What a test has written need not survive a power failure.
//
// A data folder that is there is used. Otherwise it is unpacked from the kept archive, which is descriptor 3 if the sixth argument is
// "kept"; or initdb makes it, and it is packed for [keep] if the sixth argument is "pack". The fourth argument "again" has a server that
// ended started again. The fifth says whether commits are written to the disk: "on" is for measurements, so that such a server has segments
// of the log of the usual size. A short one saves a third of the bytes that a server begins with.
const keeper = `
trap "" PIPE
exec 4<&0
if [ "$6" = kept ]; then
	tar -xf - -C "$2" <&3 >"$2/log" 2>&1 && [ -f "$2/data/PG_VERSION" ] || rm -rf "$2/data"
	exec 3<&-
fi
if ! [ -d "$2/data" ]; then
	segment=
	if [ "$5" = off ]; then segment=--wal-segsize=4; fi
	"$1/initdb" -D "$2/data" $segment ` + initOptions + ` --locale-provider=icu --icu-locale=en-US >"$2/log" 2>&1 </dev/null ||
		"$1/initdb" -D "$2/data" $segment ` + initOptions + ` >"$2/log" 2>&1 </dev/null
	if [ -n "$6" ]; then tar -cf "$2/packed" -C "$2" data 2>/dev/null || rm -f "$2/packed"; fi
fi
wal=1GB
if [ "$5" = on ]; then wal=4GB; fi
watch=
while :; do
	"$1/postgres" -D "$2/data" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync="$5" \
		-c full_page_writes="$5" -c max_connections=300 -c shared_buffers=64MB -c max_wal_size=$wal >"$2/log" 2>&1 </dev/null 4<&- &
	server=$!
	echo $server >"$2/pid.new"
	mv "$2/pid.new" "$2/pid"
	if [ -z "$watch" ]; then
		{ cat <&4 >/dev/null; : >"$2/over"; kill -QUIT $(cat "$2/pid"); } 2>/dev/null &
		watch=$!
	fi
	if [ -e "$2/over" ]; then kill -QUIT $server; fi
	wait $server
	if [ "$4" != again ] || [ -e "$2/over" ]; then break; fi
	sleep 0.1
done
kill $watch
tail -n 20 "$2/log" >&2
rm -rf "$2"
`

// attempts is how often a server is started: the port that was free may be taken when the server wants it.
const attempts = 5

// start starts a server of the programs in a folder, whose commits are on the disk or not, and returns its connection string.
func start(bin string, durable bool) (dsn string, err error) {
	fsync := "off"
	if durable {
		fsync = "on"
	}
	c, err := startCluster(bin, "once", fsync, nil)
	if err != nil {
		return "", err
	}
	return c.dsn, nil
}

// cluster is a server that was started.
type cluster struct {
	dsn, dir string
	in       io.Closer    // ends it
	ended    <-chan error // is closed after the error
}

// startCluster starts a server, "once", or "again" whenever it has ended. If prepare is given, it makes the data folder, as a user.
func startCluster(bin, often, fsync string, prepare func(data string, as *syscall.Credential) error) (c *cluster, err error) {
	for range attempts {
		if c, err = tryStart(bin, often, fsync, prepare); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("start PostgreSQL of %s: %w", bin, err)
}

func tryStart(bin, often, fsync string, prepare func(data string, as *syscall.Credential) error) (*cluster, error) {
	folder := testsize.TempFolder()
	if fsync == "on" { // what is measured includes a disk
		folder = os.TempDir()
	}
	dir, err := os.MkdirTemp(folder, "tasq-postgres-*")
	if err != nil {
		return nil, err
	}
	credential, err := another(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if prepare != nil {
		if err := prepare(filepath.Join(dir, "data"), credential); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	archive, how := "", ""
	if prepare == nil && fsync == "off" {
		archive, how = archiveOf(bin), "pack"
	}
	var said bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", keeper, "sh", bin, dir, strconv.Itoa(port), often, fsync)
	if kept, err := os.Open(archive); err == nil {
		defer func() { _ = kept.Close() }()
		cmd.ExtraFiles, how = []*os.File{kept}, "kept"
	}
	cmd.Args = append(cmd.Args, how)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = dir, &said, time.Second
	// An interrupt at the terminal is for the test process; the end of that is what ends the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	in, err := cmd.StdinPipe() // stays open as long as this process runs
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	dsn := fmt.Sprintf("postgres://tasq@127.0.0.1:%d/postgres?sslmode=disable", port)
	if err := await(dsn, ended); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	if archive != "" {
		keep(filepath.Join(dir, "packed"), archive)
	}
	return &cluster{dsn: dsn, dir: dir, in: in, ended: ended}, nil
}

// restart ends the server with a signal, and waits until it is there again.
func (c *cluster) restart(signal syscall.Signal) error {
	before, err := c.pid()
	if err != nil {
		return err
	}
	if err := syscall.Kill(before, signal); err != nil {
		return err
	}
	for pid := before; pid == before; { // an old server may still answer
		if pid, err = c.pid(); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return await(c.dsn, c.ended)
}

func (c *cluster) pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// end ends the server, and removes its folder.
func (c *cluster) end() error {
	err := c.in.Close()
	<-c.ended
	if errors.Is(err, os.ErrClosed) { // it had ended before
		err = nil
	}
	return err
}

// Restartable starts a server of the test's own, which can be restarted and ends with the test. The test is skipped if there are no
// programs to start, or if the environment names a server.
func Restartable(t T) *Cluster {
	t.Helper()
	c := ownCluster(t, ownPrograms(t), "again", nil)
	return &Cluster{
		DSN: c.dsn, fast: func() error { return c.restart(syscall.SIGINT) }, immediate: func() error { return c.restart(syscall.SIGQUIT) },
	}
}

// ownPrograms finds the programs of a server of the test's own.
func ownPrograms(t T) (bin string) {
	t.Helper()
	if os.Getenv(EnvServer) != "" {
		t.Skip(EnvServer + " names a server that is not this test's to end")
	}
	bin, err := programs()
	if errors.Is(err, ErrNone) && !required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// ownCluster starts a server that ends with the test.
func ownCluster(t T, bin, often string, prepare func(data string, as *syscall.Credential) error) *cluster {
	t.Helper()
	c, err := startCluster(bin, often, "off", prepare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Errorf("end the server: %v", err)
		}
	})
	return c
}

// await waits until the server takes connections.
func await(dsn string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-again.C:
		case end := <-ended:
			return fmt.Errorf("the server ended: %w", errors.Join(errors.New("see what it said"), end))
		case <-ctx.Done():
			return err
		}
	}
}

// another is the user that the server runs as if the tests run as root, which a server refuses; nil for any other user. It
// gets the folder.
func another(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody: run the tests as another user, " +
		"or name a server in " + EnvServer)
}

// freePort is a port of the loopback address that nothing uses at the moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
