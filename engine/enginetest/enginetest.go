// Package enginetest tests workflows in an engine: on an in-memory database, with a clock that only the test moves, and
// with an integrity check of the whole database when the test ends. Tests need no sleeps.
//
//	e := enginetest.New(t, article)
//	id, err := article.Start(t.Context(), e, Prompt{Text: "Why Petri nets?"})
//	e.Drain()                  // runs everything that is due
//	e.Advance(4 * time.Second) // runs each job that becomes due, at its own due time
package enginetest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// patience is how long, in real time, a test waits for the engine to come to rest.
const patience = 3 * time.Minute

// Engine is an engine under test.
type Engine struct {
	*engine.Engine
	t         testing.TB
	clock     *virtual.Clock
	opener    store.Opener
	cfg       engine.Config
	workflows []engine.Workflow
}

// New opens an engine with the workflows on a fresh database, see [Store].
func New(t testing.TB, workflows ...engine.Workflow) *Engine {
	t.Helper()
	return Open(t, Store(t), engine.Config{}, workflows...)
}

// EnvStore is the environment variable that says on which store [Store] opens databases: "postgres", or one in memory if it
// is not set.
const EnvStore = "TASQ_TEST_STORE"

// Store returns an Opener of a database that is empty and only the test's: in memory, or, if the environment variable
// TASQ_TEST_STORE is "postgres", on a PostgreSQL server that the test process starts, or that TASQ_TEST_POSTGRES names. So
// the same tests run on both. Where there is no server, they are skipped then.
func Store(t testing.TB) store.Opener {
	t.Helper()
	switch name := os.Getenv(EnvStore); name {
	case "":
		return sqlite.Memory()
	case "postgres":
		return postgres.Open(pgtest.Database(t))
	default:
		t.Fatalf("%s is %q: set it to postgres, or not at all", EnvStore, name)
		return nil
	}
}

// Open opens an engine on any store. The configuration's clock and logger are replaced: by the virtual clock, and by
// silence unless a logger is given. Callbacks have three minutes unless the configuration says otherwise, as a machine that runs tests
// may be busy. When the test ends, the engine is closed and the database is proved to be whole.
func Open(t testing.TB, o store.Opener, cfg engine.Config, workflows ...engine.Workflow) *Engine {
	t.Helper()
	e := &Engine{t: t, clock: virtual.NewClock(), opener: o, cfg: cfg, workflows: workflows}
	e.cfg.Clock = e.clock
	if e.cfg.Logger == nil {
		e.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if e.cfg.CallbackTimeout == 0 {
		e.cfg.CallbackTimeout = patience
	}
	e.open()
	t.Cleanup(func() {
		e.Check()
		if err := e.Engine.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

func (e *Engine) open() {
	e.t.Helper()
	opened, err := e.cfg.Open(context.Background(), e.opener, e.workflows...)
	if err != nil {
		e.t.Fatalf("open the engine: %v", err)
	}
	e.Engine = opened
}

// NewClock returns a clock that only its Set and Advance move, at 2030-01-01 00:00 UTC, for engine.Config.Clock where there is no test:
// Advance(ctx, e, d) moves it by d, and has the engine e run each job that becomes due at its own due time. [Open] makes one itself.
func NewClock() *virtual.Clock { return virtual.NewClock() }

// Clock is the engine's clock. Its Set moves it to any time, also back, as a machine's clock may be set, and does not
// wait for what becomes due; [Engine.Advance] does.
func (e *Engine) Clock() *virtual.Clock { return e.clock }

// Advance moves the clock, and does every job that becomes due, in due order, each at its own due time.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.clock.Advance(ctx, e.Engine, d); err != nil {
		e.t.Fatalf("advance by %s: %v", d, err)
	}
}

// Drain waits until nothing is left to do at the present time.
func (e *Engine) Drain() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Engine.Drain(ctx); err != nil {
		e.t.Fatal(err)
	}
}

// Crash stops the engine as a kill would: nothing is written, no job is given back. Then the store is opened again,
// with the workflows given, or the same ones if there are none.
func (e *Engine) Crash(workflows ...engine.Workflow) {
	e.t.Helper()
	if len(workflows) > 0 {
		e.workflows = workflows
	}
	if err := e.Engine.Kill(); err != nil {
		e.t.Fatalf("kill the engine: %v", err)
	}
	e.open()
}

// Check proves the integrity of the whole database: every case is rebuilt from its journal and compared with the
// tables.
func (e *Engine) Check() {
	e.t.Helper()
	if err := integrity.Check(context.Background(), e.Engine); err != nil {
		e.t.Errorf("the database is not whole:\n%v", err)
	}
}
