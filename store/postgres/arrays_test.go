package postgres

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/workitem"
)

// The server reads from an array what was put into it, also where that is nothing.
func TestTheServerReadsTheArraysOfRows(t *testing.T) {
	t.Parallel()
	c, err := pgx.Connect(t.Context(), pgtest.Database(t))
	require.NoError(t, err)
	defer c.Close(context.Background())
	takeEncoded(c.TypeMap())
	id, at := workitem.CaseID{1, 15: 255}, time.UnixMicro(-7).UTC()
	self := func(s string) string { return s }
	some := func(texts ...string) (all []pgtype.Text) {
		for _, s := range texts {
			all = append(all, pgtype.Text{String: s, Valid: true})
		}
		return all
	}
	null := []pgtype.Text{{}}
	for _, e := range []struct {
		of   string
		arg  any
		want []pgtype.Text
	}{
		{"uuid", ids([]workitem.CaseID{{}, id}, func(id workitem.CaseID) workitem.CaseID { return id }),
			append(null, some("01000000-0000-0000-0000-0000000000ff")...)},
		{"text", texts([]string{"a", "", "é\"{},NULL"}, self), some("a", "", "é\"{},NULL")},
		{"text", texts(nil, self), some()},
		{"text", optionalTexts([]string{"", "b"}, self), append(null, some("b")...)},
		{"bigint", numbers([]int64{-1, 1 << 40}, func(n int64) int64 { return n }), some("-1", "1099511627776")},
		{"integer", integers([]int{-1, 1 << 30}, func(n int) int { return n }), some("-1", "1073741824")},
		{"bigint", optionalTimes([]time.Time{{}, at}, func(t time.Time) time.Time { return t }), append(null, some("-7")...)},
		{"boolean", flags([]bool{true, false}, func(b bool) bool { return b }), some("true", "false")},
		{"boolean", []bool{true}, some("true")}, // what the driver encodes
	} {
		rows, err := c.Query(t.Context(), "SELECT v::text FROM unnest($1::"+e.of+"[]) WITH ORDINALITY x(v, n) ORDER BY n", e.arg)
		require.NoError(t, err, e.of)
		got, err := pgx.CollectRows(rows, pgx.RowTo[pgtype.Text])
		require.NoError(t, err, e.of)
		require.ElementsMatch(t, e.want, got, e.of)
	}
}

// The server reads from a single value what was put into its array.
func TestTheServerReadsSingleValues(t *testing.T) {
	t.Parallel()
	c, err := pgx.Connect(t.Context(), pgtest.Database(t))
	require.NoError(t, err)
	defer c.Close(context.Background())
	takeEncoded(c.TypeMap())
	self := func(s string) string { return s }
	for _, e := range []struct {
		of    string
		array any
		want  pgtype.Text
	}{
		{"uuid", ids([]workitem.CaseID{{1, 15: 255}}, func(id workitem.CaseID) workitem.CaseID { return id }),
			pgtype.Text{String: "01000000-0000-0000-0000-0000000000ff", Valid: true}},
		{"uuid", ids([]workitem.CaseID{{}}, func(id workitem.CaseID) workitem.CaseID { return id }), pgtype.Text{}},
		{"text", texts([]string{"é\"{},NULL"}, self), pgtype.Text{String: "é\"{},NULL", Valid: true}},
		{"text", texts([]string{""}, self), pgtype.Text{Valid: true}},
		{"text", optionalTexts([]string{""}, self), pgtype.Text{}},
		{"bigint", numbers([]int64{-1 << 40}, func(n int64) int64 { return n }), pgtype.Text{String: "-1099511627776", Valid: true}},
		{"bigint", optionalNumbers([]int{0}, func(int) int64 { return unknown }), pgtype.Text{}},
		{"boolean", flags([]bool{true}, func(b bool) bool { return b }), pgtype.Text{String: "true", Valid: true}},
	} {
		var got pgtype.Text
		err := c.QueryRow(t.Context(), "SELECT $1::"+e.of+"::text", onlyValues([]any{e.array})...).Scan(&got)
		require.NoError(t, err, e.of)
		require.Equal(t, e.want, got, e.of)
	}
}

// The server reads from a COPY what was put into the arrays.
func TestTheServerReadsCopiedRows(t *testing.T) {
	t.Parallel()
	c, err := pgx.Connect(t.Context(), pgtest.Database(t))
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "CREATE TEMPORARY TABLE rows (id uuid, a text, b text, c bigint, d integer, e smallint, f boolean)")
	require.NoError(t, err)
	list := []int64{1, -1}
	some := func(n int64) string { return []string{"", "é, NULL"}[(n+1)/2] }
	rows := rowsFrom(len(list), []any{
		ids(list, func(n int64) workitem.CaseID { return workitem.CaseID{0: byte(n + 1)} }),
		texts(list, some),
		optionalTexts(list, some),
		numbers(list, func(n int64) int64 { return n << 40 }),
		integers(list, func(n int64) int { return int(n << 20) }),
		smallints(list, func(n int64) int16 { return int16(n << 10) }),
		flags(list, func(n int64) bool { return n > 0 }),
	})
	_, err = c.PgConn().CopyFrom(t.Context(), bytes.NewReader(rows), "COPY rows FROM STDIN (FORMAT binary)")
	require.NoError(t, err)
	found, err := c.Query(t.Context(), "SELECT r::text FROM rows r ORDER BY c DESC")
	require.NoError(t, err)
	got, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{
		`(02000000-0000-0000-0000-000000000000,"é, NULL","é, NULL",1099511627776,1048576,1024,t)`,
		`(,"",,-1099511627776,-1048576,-1024,f)`,
	}, got)
}
