package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// FleetOptions configure the demo of several processes.
type FleetOptions struct {
	DSN    string // of a PostgreSQL database; "" starts a server with the programs installed on this machine
	Member string // the name of a member process, which the demo starts; "" for the demo itself
}

const (
	fleetSchema    = "tasq_demo_fleet"
	fleetTransfers = 60
	fleetWork      = 300 * time.Millisecond // the duration of one transfer
	fleetEvery     = 100 * time.Millisecond // the interval between starts of transfers
	fleetKill      = 20                     // the number of transfers after which a process with one under way is killed
)

// RunFleet runs transfers in three processes, kills one of them, and checks the balances at the end.
func RunFleet(ctx context.Context, out io.Writer, o FleetOptions) (err error) {
	if o.Member != "" {
		return fleetMember(ctx, o)
	}
	if o.DSN == "" {
		fmt.Fprintln(out, "Starting a PostgreSQL server for this demo ...")
		if o.DSN, err = pgtest.Server(); errors.Is(err, pgtest.ErrNone) {
			return fmt.Errorf("%w: install PostgreSQL 15 or newer, or name a database with -d", ErrUsage)
		} else if err != nil {
			return err
		}
	}
	schema := postgres.Schema(fleetSchema)
	if err := postgres.Drop(ctx, o.DSN, schema); err != nil {
		return err
	}
	w, err := fleetWorkflow("")
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Config{Workers: -1, Logger: quiet}.Open(ctx, postgres.Open(o.DSN, schema), w)
	if err != nil {
		return err
	}
	f := &fleetDemo{FleetOptions: o, out: out, engine: e, members: make(map[string]*exec.Cmd)}
	defer func() {
		f.stop()
		err = errors.Join(err, e.Close(), postgres.Drop(context.WithoutCancel(ctx), o.DSN, schema))
	}()
	return f.run(ctx)
}

// fleetWorkflow transfers one coin from an account to another, with a delay in between. Each booking has the name of
// its process.
func fleetWorkflow(member string) (engine.Workflow, error) {
	book := func(ctx context.Context, account string, n, amount int) error {
		_, err := step.Tx(ctx, account, func(ctx context.Context, db domain.DB) (int, error) {
			_, err := db.ExecContext(ctx, "INSERT INTO "+fleetSchema+".books (transfer, account, amount, process) VALUES ($1, $2, $3, $4)",
				n, account, amount, member)
			return n, err
		})
		return err
	}
	b := builder.New[int]("transfer")
	task := builder.Task(b, "move", builder.Work[int, int]{Input: builder.CaseInput(b), Run: func(ctx context.Context, n int) (int, error) {
		if err := book(ctx, "debit", n, -1); err != nil {
			return 0, err
		}
		_, err := step.Do(ctx, "clear", func(ctx context.Context) (int, error) {
			select {
			case <-time.After(fleetWork):
				return n, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if err != nil {
			return 0, err
		}
		return n, book(ctx, "credit", n, 1)
	}})
	b.Path(b.Start(), task, b.End())
	return b.Build()
}

// fleetMember is one of the processes: it runs until its standard input ends.
func fleetMember(ctx context.Context, o FleetOptions) error {
	w, err := fleetWorkflow(o.Member)
	if err != nil {
		return err
	}
	e, err := engine.Config{Workers: 2, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, postgres.Open(o.DSN, postgres.Schema(fleetSchema)), w)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the demo closes it to stop the process
	return e.Close()
}

// fleetDemo is one run of the demo.
type fleetDemo struct {
	FleetOptions
	out     io.Writer
	engine  *engine.Engine
	members map[string]*exec.Cmd
	ids     []workitem.CaseID
	shown   int64     // the last booking that was printed
	killed  time.Time // by the clock of the database server
}

func (f *fleetDemo) run(ctx context.Context) error {
	err := f.engine.Update(ctx, func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, "CREATE TABLE "+fleetSchema+".books (id bigint GENERATED ALWAYS AS IDENTITY, transfer int NOT NULL, "+
			"account text NOT NULL, amount int NOT NULL, process text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())")
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := f.start(name); err != nil {
			return err
		}
	}
	fmt.Fprintf(f.out, "Three processes, a, b and c, do %d transfers: each is a debit, some work, and a credit.\n", fleetTransfers)
	for n := range fleetTransfers {
		r, err := f.engine.Do(ctx, workflow.Start("transfer", fmt.Appendf(nil, "%d", n)))
		if err != nil {
			return err
		}
		f.ids = append(f.ids, r.Case)
		if err := f.look(ctx, n >= fleetKill); err != nil {
			return err
		}
	}
	for f.killed.IsZero() { // on a slow machine no transfer was under way until now
		if err := f.look(ctx, true); err != nil {
			return err
		}
	}
	for _, id := range f.ids {
		if _, err := f.engine.Wait(ctx, id); err != nil {
			return err
		}
		if err := f.show(ctx); err != nil {
			return err
		}
	}
	return f.balance(ctx)
}

// start starts a member process.
func (f *fleetDemo) start(name string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "demo", "fleet", "-member", name, "-d", f.DSN)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it stays open until this process ends
		return err
	}
	f.members[name] = cmd
	return cmd.Start()
}

// look prints what was booked, and pauses. It first kills a process if that is to be done.
func (f *fleetDemo) look(ctx context.Context, kills bool) error {
	if kills && f.killed.IsZero() {
		if err := f.kill(ctx); err != nil {
			return err
		}
	}
	if err := f.show(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(fleetEvery):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill kills the process with the most transfers between debit and credit, if there is one.
func (f *fleetDemo) kill(ctx context.Context) error {
	var name string
	var held int
	err := f.query(ctx, "SELECT process, count(*), clock_timestamp() FROM @.books d WHERE account = 'debit' AND NOT EXISTS "+
		"(SELECT FROM @.books c WHERE c.transfer = d.transfer AND c.account = 'credit') GROUP BY process ORDER BY count(*) DESC LIMIT 1",
		nil, &name, &held, &f.killed)
	if errors.Is(err, sql.ErrNoRows) {
		var ended int
		err = f.query(ctx, "SELECT count(*) FROM @.books WHERE account = 'credit'", nil, &ended)
		if err == nil && ended == fleetTransfers {
			return fmt.Errorf("%w: all transfers have ended, and no process was found with one under way", ErrFailed)
		}
		return err
	}
	if err != nil {
		return err
	}
	cmd := f.members[name]
	delete(f.members, name)
	err = cmd.Process.Kill()
	_ = cmd.Wait() // the error says that it was killed
	fmt.Fprintf(f.out, "---- process %s is killed, with %d transfers between debit and credit ----\n", name, held)
	return err
}

// show prints the bookings since the last call.
func (f *fleetDemo) show(ctx context.Context) error {
	return f.engine.View(ctx, func(r store.Reader) error {
		rows, err := r.DB().QueryContext(ctx, "SELECT id, transfer, account, process, at FROM "+fleetSchema+".books WHERE id > $1 ORDER BY id", f.shown)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			var account, process string
			var at time.Time
			if err := rows.Scan(&f.shown, &n, &account, &process, &at); err != nil {
				return err
			}
			fmt.Fprintf(f.out, "%s  process %s  transfer %2d  %s\n", at.In(retry.SystemClock.Now().Location()).Format("15:04:05.000"), process, n, account)
		}
		return rows.Err()
	})
}

func (f *fleetDemo) query(ctx context.Context, query string, args []any, into ...any) error {
	return f.engine.View(ctx, func(r store.Reader) error {
		return r.DB().QueryRowContext(ctx, strings.ReplaceAll(query, "@", fleetSchema), args...).Scan(into...)
	})
}

// balance checks the balances, and prints how long the work of the killed process waited.
func (f *fleetDemo) balance(ctx context.Context) error {
	var entries, distinct, sum int
	var took float64
	err := f.query(ctx, "SELECT count(*), count(DISTINCT (transfer, account)), sum(amount) FROM @.books", nil, &entries, &distinct, &sum)
	if err != nil {
		return err
	}
	if entries != 2*fleetTransfers || distinct != entries || sum != 0 {
		return fmt.Errorf("%w: the books have %d entries, %d of them distinct, and a sum of %d", ErrFailed, entries, distinct, sum)
	}
	fmt.Fprintf(f.out, "The books balance: %d transfers, %d entries, each once, sum %d.\n", fleetTransfers, entries, sum)
	err = f.query(ctx, "SELECT COALESCE(extract(epoch FROM min(c.at) - $1::timestamptz), 0)::float8 FROM @.books d JOIN @.books c ON c.transfer = d.transfer "+
		"AND c.account = 'credit' WHERE d.account = 'debit' AND d.process <> c.process", []any{f.killed}, &took)
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "Failover: the first transfer of the killed process was credited by another one %.1f s after its death.\n", took)
	return nil
}

// stop stops the remaining processes.
func (f *fleetDemo) stop() {
	for _, cmd := range f.members {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
