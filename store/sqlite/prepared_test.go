package sqlite

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// SQLite compiles a statement again at each call if a parameter stands where its planner looks at the value, as in LIMIT ?. That takes longer
// than most queries.
func TestStatementsArePreparedOnce(t *testing.T) {
	s, err := Memory().Open(t.Context(), store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	c := s.(*Store).w
	c.forget() // what made the tables
	reads := slices.Concat(
		queries(store.Reader.Cases), queries(store.Reader.Items), queries(store.Reader.Jobs), queries(store.Reader.Steps),
		queries(store.Reader.Messages), queries(store.Reader.Journal), queries(store.Reader.Ended),
	)
	for range 2 {
		for _, read := range reads {
			require.NoError(t, s.View(t.Context(), func(r store.Reader) error { return read(t.Context(), r) }))
		}
		require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Requests(t.Context(), 0, 10)
			_, err2 := tx.KeyHolders(t.Context(), "w", "k")
			return errors.Join(err, err2)
		}))
	}
	require.Empty(t, preparedAgain(c))
}

// queries are a query without a filter, and with each field of its filter set.
func queries[F, R any](query func(store.Reader, context.Context, F) (R, error)) (all []func(context.Context, store.Reader) error) {
	add := func(f F) {
		all = append(all, func(ctx context.Context, r store.Reader) error { _, err := query(r, ctx, f); return err })
	}
	var none F
	add(none)
	for i := range reflect.TypeFor[F]().NumField() {
		f := none
		field := reflect.ValueOf(&f).Elem().Field(i)
		if page, ok := field.Addr().Interface().(*store.Page); ok {
			*page = store.Page{After: workitem.CaseID{1}.String(), Limit: 5}
			add(f)
			page.Desc = true
		} else {
			fill(field)
		}
		add(f)
	}
	return all
}

// fill gives a field of a filter a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array, reflect.Uint8, reflect.Struct:
		switch at := v.Addr().Interface().(type) {
		case *time.Time:
			*at = time.Unix(1, 0)
		default:
			if v.Kind() == reflect.Array {
				v.Index(0).SetUint(1)
			} else {
				v.SetUint(1)
			}
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"customer": "ada"}))
	default:
		panic(v.Type().String() + " is a new kind of field")
	}
}

// preparedAgain lists the statements of a connection that were compiled more than once. The driver has no call for it.
func preparedAgain(c *conn) (all []string) {
	driver := reflect.ValueOf(c.raw).Elem()
	db, tls := uintptr(driver.FieldByName("db").Uint()), (*libc.TLS)(driver.FieldByName("tls").UnsafePointer())
	for p := sqlite3.Xsqlite3_next_stmt(tls, db, 0); p != 0; p = sqlite3.Xsqlite3_next_stmt(tls, db, p) {
		if sqlite3.Xsqlite3_stmt_status(tls, p, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0) > 0 {
			all = append(all, libc.GoString(sqlite3.Xsqlite3_sql(tls, p)))
		}
	}
	return all
}
