package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	gosqlite "github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // DBOS asks for it
	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// gate counts functions in and lets somebody wait until all that were started have come to their wait.
type gate struct{ started, there atomic.Int64 }

// pass waits until all are there, and a moment longer, for the last line before the wait is not the wait.
func (g *gate) pass() error {
	for g.there.Load() < g.started.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	return nil
}

// dbosRuns runs functions as workflows of DBOS, with the eight connections that it opens itself; but synchronous=FULL,
// where it asks for NORMAL.
type dbosRuns struct {
	gate
	ctx dbos.Context
	fn  dbos.Workflow[errand, receipt]
}

func newDBOS(dir string, s script) (durable, error) {
	db, err := openPeer(dir, 8)
	if err != nil {
		return nil, err
	}
	return dbosIn(dbos.Config{AppName: "bench", SQLiteSystemDB: db, Logger: quiet}, s)
}

func dbosIn(cfg dbos.Config, s script) (durable, error) {
	ctx, err := dbos.NewContext(noTimeout, cfg)
	if err != nil {
		return nil, err
	}
	d := &dbosRuns{ctx: ctx}
	d.fn = func(ctx dbos.Context, e errand) (receipt, error) {
		for range s.steps {
			if _, err := dbos.RunAsStep(ctx, dbosStep); err != nil {
				return receipt{}, err
			}
		}
		if !s.waits {
			return aReceipt, nil
		}
		s.there(e.Caller)
		d.there.Add(1)
		if err := dbosWait(ctx, s); err != nil {
			return receipt{}, err
		}
		s.awake(e.Caller)
		return aReceipt, nil
	}
	dbos.RegisterWorkflow(ctx, d.fn, dbos.WithWorkflowName("function"))
	return d, dbos.Launch(ctx)
}

func dbosWait(ctx dbos.Context, s script) error {
	if s.naps {
		_, err := dbos.Sleep(ctx, 24*time.Hour)
		return err
	}
	_, err := dbos.Recv[receipt](ctx, event, time.Hour)
	return err
}

func dbosStep(context.Context) (receipt, error) { return aReceipt, nil }

// Run implements durable.
func (d *dbosRuns) Run(caller int) error {
	h, err := dbos.RunWorkflow(d.ctx, d.fn, errand{order: anOrder, Caller: caller})
	if err == nil {
		_, err = h.GetResult()
	}
	return err
}

// Start implements durable.
func (d *dbosRuns) Start(caller int) (string, error) {
	d.started.Add(1)
	h, err := dbos.RunWorkflow(d.ctx, d.fn, errand{order: anOrder, Caller: caller})
	if err != nil {
		return "", err
	}
	return h.GetWorkflowID(), nil
}

// Send implements durable.
func (d *dbosRuns) Send(id string) error { return dbos.Send(d.ctx, id, aReceipt, event) }

// Result implements durable.
func (d *dbosRuns) Result(id string) error {
	h, err := dbos.RetrieveWorkflow[receipt](d.ctx, id)
	if err == nil {
		_, err = h.GetResult(dbos.WithHandlePollingInterval(5 * time.Millisecond))
	}
	return err
}

// Settle implements durable.
func (d *dbosRuns) Settle() error { return d.pass() }

// Close implements durable. DBOS would wait for the functions that wait; the process ends here, which is as good.
func (d *dbosRuns) Close() error { return nil }

// goRuns runs functions as workflows of go-workflows, whose steps are activities: in the process of the client, which
// it has a wrapper for that spares the polling, with the one connection that it opens itself, and with no time in which
// a workflow is kept for a worker that is gone, since there is one worker.
type goRuns struct {
	gate
	client *client.Client
	fn     func(workflow.Context, errand) (receipt, error)
	stop   func() error
}

func newGoWorkflows(dir string, s script) (durable, error) {
	b, db, err := goBackend(dir)
	if err != nil {
		return nil, err
	}
	g := &goRuns{client: client.New(b)}
	g.fn = func(ctx workflow.Context, e errand) (receipt, error) {
		for range s.steps {
			if _, err := workflow.ExecuteActivity[receipt](ctx, workflow.DefaultActivityOptions, goStep).Get(ctx); err != nil {
				return receipt{}, err
			}
		}
		if !s.waits {
			return aReceipt, nil
		}
		if !workflow.Replaying(ctx) {
			s.there(e.Caller)
			g.there.Add(1)
		}
		if s.naps {
			return aReceipt, workflow.Sleep(ctx, 24*time.Hour)
		}
		workflow.NewSignalChannel[receipt](ctx, event).Receive(ctx)
		s.awake(e.Caller)
		return aReceipt, nil
	}
	w := worker.New(b, nil)
	if err := errors.Join(w.RegisterWorkflow(g.fn), w.RegisterActivity(goStep)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(noTimeout)
	g.stop = func() error {
		cancel()
		return errors.Join(w.WaitForCompletion(), db.Close())
	}
	return g, w.Start(ctx)
}

func goBackend(dir string) (backend.Backend, *sql.DB, error) {
	db, err := openPeer(dir, 1)
	if err != nil {
		return nil, nil, err
	}
	b := gosqlite.NewSqliteBackendWithDB(db, gosqlite.WithApplyMigrations(true),
		gosqlite.WithBackendOptions(backend.WithLogger(quiet), backend.WithStickyTimeout(0)))
	return monoprocess.NewMonoprocessBackend(b), db, nil
}

func goStep(context.Context) (receipt, error) { return aReceipt, nil }

func (g *goRuns) start(caller int) (*workflow.Instance, error) {
	return g.client.CreateWorkflowInstance(noTimeout, client.WorkflowInstanceOptions{InstanceID: uuid.NewString()}, g.fn,
		errand{order: anOrder, Caller: caller})
}

func (g *goRuns) end(i *workflow.Instance) error {
	_, err := client.GetWorkflowResult[receipt](noTimeout, g.client, i, time.Hour)
	return err
}

// Run implements durable.
func (g *goRuns) Run(caller int) error {
	i, err := g.start(caller)
	if err == nil {
		err = g.end(i)
	}
	return err
}

// Start implements durable. The id is that of the instance and that of its execution.
func (g *goRuns) Start(caller int) (string, error) {
	g.started.Add(1)
	i, err := g.start(caller)
	if err != nil {
		return "", err
	}
	return i.InstanceID + " " + i.ExecutionID, nil
}

// Send implements durable.
func (g *goRuns) Send(id string) error {
	instance, _, _ := strings.Cut(id, " ")
	return g.client.SignalWorkflow(noTimeout, instance, event, aReceipt)
}

// Result implements durable.
func (g *goRuns) Result(id string) error {
	instance, execution, _ := strings.Cut(id, " ")
	return g.end(&workflow.Instance{InstanceID: instance, ExecutionID: execution})
}

// Settle implements durable.
func (g *goRuns) Settle() error { return g.pass() }

// Close implements durable.
func (g *goRuns) Close() error { return g.stop() }

// riverSteps is the closed loop on River, whose jobs have steps: it remembers no results, but which step was the last.
// That is recorded with the job's end, unless each step asks for a transaction, as here.
func riverSteps(r job, callers, steps int) (metrics, error) {
	names := stepNames(steps)
	return jobsOf(r, callers, func(dir string, work func(errand)) (*peer, error) {
		return newRiverOf(dir, func(ctx context.Context, db *sql.DB, j *river.Job[errand]) error {
			var failed error
			for _, name := range names {
				river.ResumableStep(ctx, name, nil, func(ctx context.Context) error {
					failed = errors.Join(failed, recordStep(ctx, db, j))
					return failed
				})
			}
			work(j.Args)
			return failed
		})
	})
}

func recordStep(ctx context.Context, db *sql.DB, j *river.Job[errand]) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := river.ResumableSetStepTx[*riversqlite.Driver](ctx, tx, j); err != nil {
		return errors.Join(fmt.Errorf("record a step: %w", err), tx.Rollback())
	}
	return tx.Commit()
}
