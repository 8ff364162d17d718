package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // registers the driver
	lib "modernc.org/sqlite/lib"
)

// files counts what SQLite asks of the operating system for the files of this process: of Tasq's database, and of the
// peers', which run on the same driver. So every figure of syncs is a count of calls, and none is worked out.
var files struct{ reads, writes, syncs atomic.Int64 }

type (
	ioMethods  = lib.Tsqlite3_io_methods
	transferFn = func(tls *libc.TLS, file, buf uintptr, n int32, at lib.Tsqlite3_int64) int32
	syncFn     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// hooks keeps the functions that SQLite calls reachable: it holds them as plain numbers, which the collector does not
// see.
var hooks []any

// countFiles puts counters in front of SQLite's table of file functions. There are two tables: one for databases,
// which are locked, and one for write-ahead logs, which are not. An open database in WAL mode shows both.
func countFiles() error {
	dir, err := os.MkdirTemp("", "tasq-bench-files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "probe.db")
	if err := makeProbe(path); err != nil {
		return err
	}
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(path)
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, name)
	out := tls.Alloc(8)
	defer tls.Free(8)
	if rc := lib.Xsqlite3_open_v2(tls, name, out, lib.SQLITE_OPEN_READWRITE, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("open %s: SQLite's code %d", path, rc)
	}
	db := *at[uintptr](out)
	defer lib.Xsqlite3_close_v2(tls, db)
	query, err := libc.CString("SELECT count(*) FROM probe") // the first read opens the log
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, query)
	if rc := lib.Xsqlite3_exec(tls, db, query, 0, 0, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("read %s: SQLite's code %d", path, rc)
	}
	seen := make(map[uintptr]bool)
	for _, op := range []int32{lib.SQLITE_FCNTL_FILE_POINTER, lib.SQLITE_FCNTL_JOURNAL_POINTER} {
		if rc := lib.Xsqlite3_file_control(tls, db, 0, op, out); rc != lib.SQLITE_OK {
			return fmt.Errorf("ask for the file of %s: SQLite's code %d", path, rc)
		}
		methods := *at[uintptr](*at[uintptr](out)) // a file begins with the pointer to its table
		if methods == 0 {
			return errors.New("the write-ahead log is not open, so its writes cannot be counted")
		}
		if !seen[methods] {
			seen[methods] = true
			countCalls(at[ioMethods](methods))
		}
	}
	return nil
}

func makeProbe(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec("PRAGMA journal_mode=WAL; CREATE TABLE probe (n INTEGER)")
	return errors.Join(err, db.Close())
}

func countCalls(m *ioMethods) {
	read, write, sync := function[transferFn](m.FxRead), function[transferFn](m.FxWrite), function[syncFn](m.FxSync)
	m.FxRead = number(transferFn(func(tls *libc.TLS, file, buf uintptr, n int32, at lib.Tsqlite3_int64) int32 {
		files.reads.Add(1)
		return read(tls, file, buf, n, at)
	}))
	m.FxWrite = number(transferFn(func(tls *libc.TLS, file, buf uintptr, n int32, at lib.Tsqlite3_int64) int32 {
		files.writes.Add(1)
		return write(tls, file, buf, n, at)
	}))
	m.FxSync = number(syncFn(func(tls *libc.TLS, file uintptr, flags int32) int32 {
		files.syncs.Add(1)
		return sync(tls, file, flags)
	}))
}

// at reads an address of SQLite's memory, which is no Go memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function turns the number that SQLite's Go translation keeps of a function back into the function.
func function[F any](n uintptr) F { return *(*F)(unsafe.Pointer(&n)) }

// number is the opposite of function: a function value is a pointer.
func number[F any](f F) uintptr {
	hooks = append(hooks, f)
	return *(*uintptr)(unsafe.Pointer(&f))
}
