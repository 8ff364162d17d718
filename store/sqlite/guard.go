package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// guard decides what the user's SQL may do. SQLite calls it, as its authorizer, while it compiles a statement, for each
// action: each table that is written, by the statement itself or by a trigger, each transaction, pragma and attached
// file. So neither the form of a statement nor indirection matters.
//
// Reading is allowed. It refuses what would end or leave the transaction of the command, what changes settings of the
// connection, and every change of Tasq's own tables, which derive from the journal. It also refuses triggers on them:
// the tables are written after the commands are acknowledged, several commands at once, and again after a crash. So a
// trigger would miss changes or see them twice, and its failure would stop the store.
type guard struct {
	user    bool  // a user's statement is being compiled or run
	refused error // why the last one was refused
}

// guards finds the guard of a connection by the number that SQLite passes to authorize.
var guards struct {
	sync.Mutex
	next uintptr
	of   map[uintptr]*guard
}

// protect registers the guard with SQLite. Call the returned function after the connection was closed.
//
// The driver has no method for an authorizer, so it is set by SQLite's own function, on the handle in a field of the
// driver. It is called while a statement is compiled, once for each action:
//
//	DELETE FROM orders WHERE id = 7     with a trigger on orders that updates cases
//	authorize(DELETE, "orders", schema "main")                          allowed
//	authorize(UPDATE, "cases", "state", schema "main", by trigger)      refused: the statement is not compiled
//
// SQLite stores the argument in memory that the garbage collector does not scan. So it gets the number of the guard,
// and not a pointer to it.
func (g *guard) protect(c driver.Conn) (end func(), err error) {
	db, err := handle(c)
	if err != nil {
		return nil, err
	}
	guards.Lock()
	defer guards.Unlock()
	if guards.of == nil {
		guards.of = make(map[uintptr]*guard)
	}
	guards.next++
	number := guards.next
	guards.of[number] = g
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_set_authorizer(tls, db, pointerTo(authorize), number)
	return func() {
		guards.Lock()
		defer guards.Unlock()
		delete(guards.of, number)
	}, nil
}

// interrupt has the statement that a connection runs fail with SQLITE_INTERRUPT. It is called while another goroutine holds the lock of the
// connection, which is open until that one has returned. The effect ends when no statement of the connection is in progress.
func interrupt(c driver.Conn) {
	db, err := handle(c)
	if err != nil {
		return // protect has reported that
	}
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_interrupt(tls, db)
}

// handle returns SQLite's handle of a connection. The driver has no method for it.
func handle(c driver.Conn) (uintptr, error) {
	if v := reflect.ValueOf(c); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if db := v.Elem().FieldByName("db"); db.Kind() == reflect.Uintptr {
			return uintptr(db.Uint()), nil
		}
	}
	return 0, errors.New("this version of modernc.org/sqlite keeps its connections in an unknown form: use the version that " +
		"Tasq's go.mod names")
}

// pointerTo returns a function in the form in which the driver passes functions to SQLite. f must not be a closure.
func pointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

// authorize is called by SQLite; see https://www.sqlite.org/c3ref/set_authorizer.html.
func authorize(_ *libc.TLS, number uintptr, action int32, first, second, schema, source uintptr) int32 {
	guards.Lock()
	g := guards.of[number]
	guards.Unlock()
	// The store's own statements are allowed: they are prepared with user unset. Both hold the lock of the connection,
	// so a user's statement is never compiled while user is unset.
	if g == nil || !g.user {
		return sqlite3.SQLITE_OK
	}
	act := access{action: action, schema: libc.GoString(schema), by: libc.GoString(source)}
	act.first, act.second = strings.ToLower(libc.GoString(first)), strings.ToLower(libc.GoString(second))
	if err := act.refusal(); err != nil {
		g.refused = err
		return sqlite3.SQLITE_DENY
	}
	return sqlite3.SQLITE_OK
}

// run runs a user's statement. It requires the connection's lock.
//
// SQLite reports only "not authorized". The reason was recorded by authorize.
func (g *guard) run(f func() error) error {
	g.user, g.refused = true, nil
	defer func() { g.user = false }()
	err := f()
	if g.refused != nil && code(err) == sqlite3.SQLITE_AUTH {
		return g.refused
	}
	return err
}

// access is an action of a statement. The meaning of first and second depends on the action.
type access struct {
	action        int32
	first, second string // in small letters
	schema        string // "main", "temp"
	by            string // the innermost trigger or view that does it; "" for the statement itself
}

func (a access) refusal() error {
	switch a.action {
	case sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT:
		return sqlkit.Refusal(strings.ToUpper(a.first))
	case sqlite3.SQLITE_ATTACH:
		return sqlkit.Refusal("ATTACH")
	case sqlite3.SQLITE_DETACH:
		return sqlkit.Refusal("DETACH")
	case sqlite3.SQLITE_PRAGMA:
		if a.second != "" && !reading[a.first] || acting[a.first] {
			return sqlkit.Refusal("PRAGMA " + a.first)
		}
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE,
		sqlite3.SQLITE_DROP_VIEW, sqlite3.SQLITE_DROP_VTABLE:
		return a.change(a.first)
	case sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_DROP_INDEX,
		sqlite3.SQLITE_DROP_TRIGGER:
		return a.change(a.second)
	case sqlite3.SQLITE_CREATE_TEMP_TRIGGER:
		a.schema = "main" // the schema of the trigger is temp, but the table may be Tasq's
		return a.change(a.second)
	case sqlite3.SQLITE_ALTER_TABLE:
		return a.alter()
	case sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_VIEW, sqlite3.SQLITE_CREATE_VTABLE:
		if ours[a.first] || a.first == "records" {
			return fmt.Errorf("a temporary table or view %s is not allowed: it would hide Tasq's own from the engine; "+
				"choose another name", a.first)
		}
	}
	return nil
}

// change refuses to change a table of Tasq.
func (a access) change(table string) error {
	switch {
	case a.schema == "temp" || !ours[table] && table != "sqlite_dbpage":
		return nil
	case a.by != "":
		return fmt.Errorf("the trigger or view %s changes %s, and that is not allowed: it is one of Tasq's own tables, which "+
			"follow from the journal; drop the trigger", a.by, table)
	}
	return fmt.Errorf("%s of %s is not allowed: that is one of Tasq's own tables, which follow from the journal; change "+
		"cases and what they have by the methods of the engine", verbs[a.action], table)
}

// alter refuses to alter a table of Tasq, and also any temporary table: SQLite does not pass the new name, and a
// temporary table with the name of one of Tasq's would hide that one.
func (a access) alter() error {
	if a.first == "temp" {
		return errors.New("ALTER TABLE of a temporary table is not allowed: make another one")
	}
	return a.change(a.second)
}

var verbs = map[int32]string{
	sqlite3.SQLITE_INSERT: "INSERT", sqlite3.SQLITE_UPDATE: "UPDATE", sqlite3.SQLITE_DELETE: "DELETE",
	sqlite3.SQLITE_DROP_TABLE: "DROP", sqlite3.SQLITE_DROP_VIEW: "DROP", sqlite3.SQLITE_DROP_VTABLE: "DROP",
	sqlite3.SQLITE_CREATE_INDEX: "CREATE INDEX", sqlite3.SQLITE_DROP_INDEX: "DROP INDEX",
	sqlite3.SQLITE_CREATE_TRIGGER: "CREATE TRIGGER", sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TRIGGER",
	sqlite3.SQLITE_DROP_TRIGGER: "DROP TRIGGER", sqlite3.SQLITE_ALTER_TABLE: "ALTER",
}

// ours lists Tasq's own tables and views. The table of records is not listed, since collections write it through the
// user's SQL.
var ours = map[string]bool{
	"journal": true, "idempotency_keys": true, "meta": true, "migrations": true, "definitions": true, "requests": true, "settings": true, "limits": true,
	"cases": true, "case_labels": true, "work_items": true, "jobs": true, "steps": true, "messages": true, "counts": true, "ended": true,
	"tasks": true, "history": true, "changes": true,
}

// reading lists the pragmas whose argument selects what to read.
var reading = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_info": true, "index_xinfo": true,
	"index_list": true, "foreign_key_list": true, "foreign_key_check": true, "integrity_check": true,
	"quick_check": true,
}

// acting lists the pragmas that change something without an argument.
var acting = map[string]bool{"wal_checkpoint": true, "incremental_vacuum": true, "optimize": true,
	"shrink_memory": true}
