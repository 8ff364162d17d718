package pgtest

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Pool lends databases whose tables are there, and hold nothing. A database is emptied at the end of its test, and lent again: to
// delete some rows takes a tenth of the time of making the tables, and the files of a new database take more still.
//
// A test that is about the making of tables, about roles or about several schemas needs a [Database] of its own.
type Pool struct {
	Schema string                 // where the tables are: all are emptied but for schema_migrations
	Make   func(dsn string) error // makes them, in an empty database

	mu   sync.Mutex
	free []string // names of databases
}

// Database returns the connection string of a database of the pool. The test is skipped, or fails, if there is no server; see the
// package.
func (p *Pool) Database(t T) string {
	t.Helper()
	admin := serverOf(t)
	name, found := p.take()
	if !found {
		name = create(t, admin)
	}
	dsn, err := withDatabase(admin, name)
	if err == nil && !found {
		err = p.prepare(dsn)
	}
	if err != nil {
		t.Fatalf("prepare the database %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := p.empty(dsn); err != nil {
			t.Errorf("empty the database %s: %v", name, err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, name)
	})
	return dsn
}

// prepare makes the tables, and notes which they are: what else is there later was made by a test.
func (p *Pool) prepare(dsn string) error {
	if err := p.Make(dsn); err != nil {
		return err
	}
	return run(dsn, p.setting(), made, decoys)
}

func (p *Pool) take() (name string, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return "", false
	}
	last := len(p.free) - 1
	name, p.free = p.free[last], p.free[:last]
	return name, true
}

// end ends the connections that a killed store has left, which may still be about to commit, and waits for each.
const end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

const made = "CREATE TABLE public.pgtest_made AS SELECT oid AS made FROM pg_class WHERE relnamespace = current_setting('pgtest.schema')::regnamespace"

// decoys makes tables with the names of all that Make has made, in a schema that comes before theirs in the search path. A statement that
// does not say which schema it means fails. $user is not in the path: the role and the schema may have the same name.
const decoys = `DO $$
DECLARE r record;
BEGIN
	CREATE SCHEMA decoys;
	GRANT USAGE ON SCHEMA decoys TO public;
	FOR r IN SELECT relname FROM pg_class WHERE relnamespace = current_setting('pgtest.schema')::regnamespace AND relkind IN ('r', 'v') LOOP
		EXECUTE format('CREATE TABLE decoys.%I (decoy int)', r.relname);
	END LOOP;
	EXECUTE format('ALTER DATABASE %I SET search_path = public, decoys', current_database());
END $$`

// emptied deletes rows, and does not truncate: that would make a file for each table and each index. The sequences of a table go with it, so a name may be
// gone when its turn comes.
const emptied = `DO $$
DECLARE r record;
BEGIN
	FOR r IN SELECT format('%s.%I', relnamespace::regnamespace, relname) AS name, relkind, EXISTS (SELECT FROM public.pgtest_made WHERE made = oid) AS made
		FROM pg_class WHERE relnamespace IN (current_setting('pgtest.schema')::regnamespace, 'public'::regnamespace)
		AND relkind IN ('r', 'S') AND relname NOT IN ('schema_migrations', 'pgtest_made') ORDER BY relkind DESC
	LOOP
		IF NOT r.made AND r.relkind = 'r' THEN
			EXECUTE 'DROP TABLE IF EXISTS ' || r.name || ' CASCADE';
		ELSIF NOT r.made THEN
			EXECUTE 'DROP SEQUENCE IF EXISTS ' || r.name || ' CASCADE';
		ELSIF r.relkind = 'S' THEN
			PERFORM setval(r.name, 1, false);
		ELSE
			EXECUTE 'DELETE FROM ' || r.name;
		END IF;
	END LOOP;
	FOR r IN SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace LOOP
		EXECUTE 'DROP ROUTINE IF EXISTS ' || r.name || ' CASCADE';
	END LOOP;
END $$`

// empty has the database as it was prepared.
func (p *Pool) empty(dsn string) error { return run(dsn, end, p.setting(), emptied) }

// setting has the schema known to the statements that follow.
func (p *Pool) setting() string { return "SET pgtest.schema = '" + p.Schema + "'" }

// run runs statements on a connection of their own.
func run(dsn string, statements ...string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
