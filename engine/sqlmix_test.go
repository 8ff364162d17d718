package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A random mix of commands whose SQL fails in each way that SQLite has, sent so that they share transactions, against a model of what
// each of them does alone.

const mixTables = `CREATE TABLE t (x INTEGER PRIMARY KEY); INSERT INTO t VALUES (0);
CREATE TABLE strict (x INTEGER PRIMARY KEY ON CONFLICT ROLLBACK); INSERT INTO strict VALUES (0);
CREATE TRIGGER raises BEFORE INSERT ON t WHEN NEW.x < 0 BEGIN SELECT CASE NEW.x
	WHEN -1 THEN RAISE(ABORT, 'aborts') WHEN -2 THEN RAISE(FAIL, 'fails')
	WHEN -3 THEN RAISE(ROLLBACK, 'rolls back') WHEN -4 THEN RAISE(IGNORE) END; END`

// statement is one that may fail. The first %d is a fresh row.
type statement struct {
	sql   string
	adds  bool // the fresh row is there afterwards
	fails bool
	undo  bool // all of the transaction is undone
}

var statements = []statement{
	{sql: "INSERT INTO t VALUES (%d)", adds: true},
	{sql: "INSERT OR ABORT INTO t VALUES (%d), (0)", fails: true},
	{sql: "INSERT OR FAIL INTO t VALUES (%d), (0)", fails: true, adds: true},
	{sql: "INSERT OR IGNORE INTO t VALUES (%d), (0)", adds: true},
	{sql: "INSERT OR REPLACE INTO t VALUES (%d), (0)", adds: true},
	{sql: "INSERT OR ROLLBACK INTO t VALUES (%d), (0)", fails: true, undo: true},
	{sql: "INSERT OR ROLLBACK INTO t VALUES (%d), (0) RETURNING x", fails: true, undo: true},
	{sql: "INSERT INTO t VALUES (%d); INSERT INTO strict VALUES (0)", fails: true, undo: true},
	{sql: "INSERT INTO t VALUES (%d), (-1)", fails: true},
	{sql: "INSERT INTO t VALUES (%d), (-2)", fails: true, adds: true},
	{sql: "INSERT INTO t VALUES (%d), (-3)", fails: true, undo: true},
	{sql: "INSERT INTO t VALUES (%d), (-4)", adds: true},
	{sql: "ROLLBACK /* %d */", fails: true},
	{sql: "COMMIT /* %d */", fails: true},
	{sql: "INSERT INTO nowhere VALUES (%d)", fails: true},
	{sql: "FAULT FULL %d", fails: true, undo: true},
	{sql: "FAULT IOERR %d", fails: true, undo: true},
}

// mixed is a command: some statements, each of after which its function may continue, and perhaps its own failure at the end.
type mixed struct {
	kind      string // "update", "callback" or "plain", which runs no SQL
	run       []int  // of statements
	goesOn    bool   // after an error
	failsLast bool
	lost      bool   // the store cannot append what it did
	fresh     int    // its first fresh row
	wrong     string // what the model of it has wrong, one of mixFaults; "" if nothing
	calls     atomic.Int32
}

// mixFaults are ways in which the model can be wrong; the comparison has to see each.
var mixFaults = []string{"keeps what is undone", "undoes nothing", "loses a row", "goes on", "ends well", "commits what is lost",
	"commits what is down", "counts no case", "is called never"}

var errOwn = errors.New("its own failure")

func (m *mixed) exec(ctx context.Context, db domain.DB) error {
	for i, s := range m.run {
		_, err := db.ExecContext(ctx, fmt.Sprintf(statements[s].sql, m.fresh+i))
		if err != nil && !m.goesOn {
			return err
		}
	}
	if m.failsLast {
		return errOwn
	}
	return nil
}

// expect is what the command does alone: the rows that it adds, and whether it fails, and undoes all.
func (m *mixed) expect() (rows []int, fails, undoes bool) {
	for i, s := range m.run {
		s := statements[s]
		if s.undo {
			return nil, true, m.wrong != "undoes nothing"
		}
		if s.fails && !m.goesOn && m.wrong != "goes on" {
			return nil, true, false
		}
		if s.adds && (i == 0 || m.wrong != "loses a row") || m.wrong == "keeps what is undone" {
			rows = append(rows, m.fresh+i)
		}
	}
	if m.failsLast && m.wrong != "ends well" {
		return nil, true, false
	}
	return rows, false, false
}

// mixWorkflow runs the statements of a command in the callback of its first task.
func mixWorkflow(commands map[int]*mixed) *builder.Workflow[int] {
	b := builder.New[int]("mix")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{
		OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			var n int
			if err := json.Unmarshal(a.Case().Input, &n); err != nil {
				return err
			}
			m := commands[n]
			m.calls.Add(1)
			return m.exec(ctx, a.DB())
		},
	}), b.End())
	return b.MustBuild()
}

func drawMixed(rt *rapid.T, fresh int) *mixed {
	m := &mixed{fresh: fresh, kind: rapid.SampledFrom([]string{"update", "callback", "plain"}).Draw(rt, "kind")}
	if m.kind != "plain" {
		m.run = rapid.SliceOfN(rapid.IntRange(0, len(statements)-1), 0, 4).Draw(rt, "statements")
		m.goesOn = rapid.Bool().Draw(rt, "goes on")
		m.failsLast = rapid.IntRange(0, 4).Draw(rt, "fails last") == 0
	}
	m.lost = rapid.IntRange(0, 9).Draw(rt, "lost") == 0
	return m
}

func TestRandomSQLFailsItsOwnCommandAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { playMix(t, rt, rt, "") })
}

// The comparison sees each fault of a model.
func TestAWrongModelOfSQLDisagrees(t *testing.T) {
	for _, wrong := range mixFaults {
		requireDifference(t, wrong, func(t *testing.T, rt *rapid.T, c require.TestingT) { playMix(t, rt, c, wrong) })
	}
}

// playMix sends random commands to an engine and to a model that has the fault, and compares them after each round.
func playMix(t *testing.T, rt *rapid.T, c require.TestingT, wrong string) {
	ctx := t.Context()
	commands := make(map[int]*mixed)
	w := mixWorkflow(commands)
	plain := builder.New[int]("plain")
	plain.Path(plain.Start(), builder.Task(plain, "t", builder.Work[any, any]{}), plain.End())
	p := plain.MustBuild()
	f := &outage{Opener: sqlite.Memory()}
	faults := &faulty{Opener: f}
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, faults, w, p)
	require.NoError(rt, err)
	defer func() { _ = e.Close() }()
	require.NoError(rt, e.Update(ctx, func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, mixTables)
		return err
	}))
	rows, cases, fresh := map[int]bool{0: true}, map[string]int{}, 1
	for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
		var round []*mixed
		var ask []func(context.Context) error
		for range rapid.IntRange(1, 8).Draw(rt, "commands") {
			m := drawMixed(rt, fresh)
			m.wrong = wrong
			commands[fresh] = m
			if m.lost {
				faults.lost.Store(strconv.Itoa(fresh), true)
			}
			fresh += 10
			round = append(round, m)
			ask = append(ask, func(ctx context.Context) error { return m.ask(ctx, e, w, p) })
		}
		down := rapid.IntRange(0, 9).Draw(rt, "down") == 0
		f.down.Store(down)
		errs := engine.Together(ctx, e, ask...)
		f.down.Store(false)
		for i, m := range round {
			m.judge(c, errs[i], down, rows, cases)
		}
		mixCompare(ctx, c, e, rows, cases)
	}
	require.NoError(rt, integrity.Check(ctx, e))
}

func (m *mixed) ask(ctx context.Context, e *engine.Engine, w, p *builder.Workflow[int]) error {
	switch m.kind {
	case "callback":
		_, err := w.Start(ctx, e, m.fresh)
		return err
	case "plain":
		_, err := p.Start(ctx, e, m.fresh)
		return err
	}
	return e.Update(ctx, func(tx *engine.Tx) error {
		m.calls.Add(1)
		if _, err := p.Start(ctx, tx, m.fresh); err != nil {
			return err
		}
		return m.exec(ctx, tx.DB())
	})
}

// judge compares the outcome of a command with what it does alone, and adds that to the model.
func (m *mixed) judge(c require.TestingT, err error, down bool, rows map[int]bool, cases map[string]int) {
	adds, fails, undoes := m.expect()
	if m.kind == "update" {
		most := int32(1)
		if m.wrong == "is called never" {
			most = 0
		}
		require.LessOrEqual(c, m.calls.Load(), most, "the function of an Update is called once at most")
	}
	switch {
	case fails:
		require.Error(c, err)
		require.Equal(c, undoes, errors.Is(err, store.ErrUndone), "%v", err)
		return
	case m.lost && m.wrong != "commits what is lost":
		require.ErrorIs(c, err, store.ErrUnavailable)
		require.NotErrorIs(c, err, store.ErrUndone)
		return
	case down && m.wrong != "commits what is down":
		require.ErrorIs(c, err, errDisk)
		return
	}
	require.NoError(c, err, "%s %v", m.kind, m.run)
	for _, x := range adds {
		rows[x] = true
	}
	if m.wrong == "counts no case" {
		return
	}
	cases[map[string]string{"callback": "mix"}[m.kind]]++
}

// mixCompare compares the database with the model.
func mixCompare(ctx context.Context, tt require.TestingT, e *engine.Engine, rows map[int]bool, cases map[string]int) {
	got, found := make(map[int]bool), make(map[string]int)
	require.NoError(tt, e.View(ctx, func(r store.Reader) error {
		list, err := r.DB().QueryContext(ctx, "SELECT x FROM t")
		if err != nil {
			return err
		}
		defer list.Close()
		for list.Next() {
			var x int
			if err := list.Scan(&x); err != nil {
				return err
			}
			got[x] = true
		}
		return list.Err()
	}))
	for c, err := range store.AllCases(ctx, e, store.CaseFilter{}) {
		require.NoError(tt, err)
		found[map[string]string{"mix": "mix"}[c.Workflow]]++
	}
	require.Equal(tt, slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(got)))
	require.Equal(tt, cases, found)
}
