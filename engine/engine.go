package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/alarm"
	"github.com/tasq-dev/tasq/engine/internal/command"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/dispatch"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/fleet"
	"github.com/tasq-dev/tasq/engine/internal/host"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/engine/internal/retention"
	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/internal/transfer"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The kinds of errors of commands, besides *workitem.TransitionError, *domain.InvalidError, and the errors of
// callbacks, which are wrapped. Test for them with errors.Is.
var (
	ErrNotFound   = store.ErrNotFound      // no such case, item, task or job
	ErrInactive   = activities.ErrInactive // the case or the task has ended
	ErrBadRoute   = kernel.ErrBadRoute     // the route of a split names no flow, or a flow that does not exist
	ErrFull       = workflow.ErrFull       // a queue already has the most pending jobs that Config.MaxPending allows
	ErrRunaway    = kernel.ErrRunaway      // the command does not terminate
	ErrLeaseLost  = kernel.ErrLeaseLost    // the job is assigned to another worker, or to none
	ErrUnknown    = kernel.ErrUnknown      // the engine was not opened with the workflow
	ErrUnfinished = kernel.ErrUnfinished   // the command needs a case that has ended, and the case has not
	ErrDrift      = registry.ErrDrift
	ErrClosed     = commit.ErrClosed
	ErrCallback   = commit.ErrCallback    // a callback panicked, or took too long
	ErrKeyReused  = workflow.ErrKeyReused // the idempotency key was used for another command
	ErrTooLarge   = domain.ErrTooLarge
)

// Workflow is anything that is, or embeds, a definition.
type Workflow interface {
	Untyped() *workflow.Definition
}

// Engine runs cases on one store. It is safe for concurrent use.
//
// It combines its internal packages: command executes commands, commit makes their changes durable, dispatch runs due
// work, notify wakes callers, retention removes old cases, and mailbox receives commands from other processes.
type Engine struct {
	cfg         Config
	wrap        Middleware // all of Config.Wrap
	store       store.Store
	log         *slog.Logger
	ids         *workitem.Generator
	definitions *registry.Registry
	limits      []limit.Limit // that functions and code outside of jobs use
	faults      *fault.Log
	alarms      *alarm.Clock
	active      *activity
	opened      time.Time

	writer   *commit.Writer
	commands *command.Executor
	dispatch *dispatch.Dispatcher
	notifier *notify.Notifier
	topics   *notify.Topics
	cleaner  *retention.Cleaner
	fleet    *fleet.Member // nil if no other engine can have the store open
	controls *controls
	mailbox  *mailbox.Poller // nil if the store has none

	close   sync.Once
	ending  sync.Once             // see endWork
	loss    sync.Once             // see stopIfLost
	lost    atomic.Pointer[error] // why the engine stopped by itself; nil if it did not
	closing chan struct{}
	ctx     context.Context // of jobs; canceled at the end of Config.Grace
	cancel  context.CancelFunc
}

// Open opens the store with the zero Config and starts to run due work. The workflows are those that new cases are
// started with, and those that running cases need; the workflows of their composite tasks are included. The error wraps
// ErrDrift if a running case depends on a different definition with the same name and version, and
// workflow.ErrHoldDeadlock if cases of the workflows can deadlock over limits that they hold.
func Open(ctx context.Context, o store.Opener, workflows ...Workflow) (*Engine, error) {
	return Config{}.Open(ctx, o, workflows...)
}

// Open is like the function [Open], with this configuration.
func (cfg Config) Open(ctx context.Context, o store.Opener, workflows ...Workflow) (*Engine, error) {
	argument.Context(ctx, "engine.Open")
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	// What can be refused without the store is checked before it is opened, so that a mistake in the program leaves
	// no file and no lock.
	definitions, err := definitionsOf(cfg.Logger, workflows)
	if err != nil {
		return nil, err
	}
	limits, err := definitions.Limits(cfg.Limits)
	if err != nil {
		return nil, err
	}
	if err := definitions.CheckHolds(cfg.Clock); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, wrap: wrapped(cfg.Wrap), log: cfg.Logger, ids: workitem.NewGenerator(cfg.Random), definitions: definitions, limits: limits,
		closing: make(chan struct{})}
	// If the source of random bits has failed, the ids of this engine may not be unique.
	if err := e.ids.Failed(); err != nil {
		return nil, fmt.Errorf("Config.Random: %w", err)
	}
	if o == nil {
		return nil, errors.New("there is no store to open: give sqlite.File(path) or sqlite.Memory()")
	}
	s, err := o.Open(ctx, store.Options{Now: e.now, Logger: cfg.Logger, Shared: true})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	e.store, e.opened = s, e.now()
	if err := e.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return e, nil
}

// definitionsOf returns the definitions of workflows.
func definitionsOf(log *slog.Logger, workflows []Workflow) (*registry.Registry, error) {
	all := make([]*workflow.Definition, len(workflows))
	for i, w := range workflows {
		if w != nil && !isNilPointer(w) { // the Untyped method of a nil struct with an embedded definition would panic
			all[i] = w.Untyped()
		}
	}
	return registry.New(log, all)
}

// A typed nil in an interface is not nil; registry.New refuses both with an error that says which argument it is.
func isNilPointer(w Workflow) bool {
	v := reflect.ValueOf(w)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// The order in which an engine opens. Each line requires those above it, and no work begins before the last line:
//
//	KeepAlive               heartbeats, until recoverJobs: the other engines would declare this one dead after 7.5 s
//	Whole                   a database that is the beginning of a copy is refused
//	CheckDrift, Register    a program with other definitions is refused before it has written anything
//	resumeIDs               ids rise above what is stored, also if the clock went back since
//	assemble                the parts; no goroutine yet
//	topics, controls        what the writer and the dispatcher consult is read from the store
//	writer.Start            commands can be committed: those of the engine's own come next
//	recoverJobs             jobs of a process that died are pending again; in a fleet, those that no engine holds are taken
//	reportUnserved          live cases of definitions that are missing here are logged
//	dispatch, cleaner, fleet, mailbox    due work, removals and commands of other processes begin

// prepare checks definitions, releases the jobs of a process that died, and starts the goroutines of the engine.
func (e *Engine) prepare(ctx context.Context) error {
	alive := e.keepAlive(ctx)
	defer alive()
	if err := e.store.View(ctx, func(r store.Reader) error { return transfer.Whole(ctx, r) }); err != nil {
		return err
	}
	if err := e.definitions.CheckDrift(ctx, e.store); err != nil {
		return err
	}
	if err := e.store.Register(ctx, e.definitions.Stored(e.now())); err != nil {
		return fmt.Errorf("register the workflows: %w", err)
	}
	if err := e.resumeIDs(ctx); err != nil {
		return fmt.Errorf("find the last ids: %w", err)
	}
	e.assemble()
	if err := e.store.View(ctx, func(r store.Reader) error { return e.topics.Load(ctx, r) }); err != nil {
		e.cancel()
		return fmt.Errorf("find the waits for topics: %w", err)
	}
	if err := e.controls.load(ctx, e.limits); err != nil {
		e.cancel()
		return fmt.Errorf("read the settings of limits and queues: %w", err)
	}
	e.writer.Start()
	alive() // from here on, the member of the fleet has to learn when this engine was declared dead
	if err := e.recoverJobs(ctx); err != nil {
		e.endAll()
		return fmt.Errorf("recover the jobs: %w", err)
	}
	if err := e.reportUnserved(ctx); err != nil {
		e.endAll()
		return fmt.Errorf("count the unserved cases: %w", err)
	}
	e.dispatch.Start()
	e.cleaner.Start(e.ctx)
	if e.fleet != nil {
		e.fleet.Start(e.ctx)
	}
	e.startMailbox()
	return nil
}

// How the parts are connected. Only the writer changes cases. The others send it requests, and observe each commit
// after it is durable:
//
//	Do, Update ─▶ command ─▶ writer ─▶ store
//	jobs, timers ─▶ dispatch ──┘ │
//	mailbox, cleaner, fleet ─────┘ Committed ─▶ dispatch (jobs to do), notifier (callers that wait),
//	                                           topics (cases that wait for one), cleaner (cases to remove), fleet (known positions)

// assemble creates the parts of the engine. Those that need the changes of commits observe the writer.
func (e *Engine) assemble() {
	e.ctx, e.cancel = context.WithCancel(host.With(context.Background(), e))
	e.alarms, e.faults, e.active = alarm.New(e.cfg.Clock), fault.NewLog(e.log, e.now), newActivity()
	e.notifier, e.topics, e.cleaner = notify.New(), notify.NewTopics(), e.newCleaner()
	e.controls = &controls{e: e}
	e.commands = command.New(command.Options{
		Controls:    e.controls,
		Definitions: e.definitions, IDs: e.ids, Topics: e.topics, Log: e.log, MaxPayload: e.cfg.MaxPayload,
		Public: func(tx *commit.Tx) builder.InTx { return &Tx{e, tx} },
	})
	e.writer = commit.New(commit.Options{
		Store: e.store, Definitions: e.definitions, Suspensions: e.controls, IDs: e.ids, Now: e.now, Faults: e.faults,
		NewToken:        func(root workitem.CaseID) (string, error) { return command.NewToken(e.ids, root) },
		CallbackTimeout: e.cfg.CallbackTimeout, CacheCases: e.cfg.CacheCases,
		Shared: e.isShared(), Holder: holder{e},
		RootEnded: e.commands.RootEnded, GivenUp: e.commands.GivenUp, Active: e.active.add, Lost: e.stopIfLost, Closed: e.closedError,
		Committed: e.committed(),
		Recovered: func() { e.dispatch.TryAgain() }, Fenced: func() { e.dispatch.Ownership().Lost() },
	})
	e.dispatch = dispatch.New(dispatch.Options{
		Context: e.ctx, Writer: e.writer, Store: e.store, Definitions: e.definitions, Clock: e.cfg.Clock, Now: e.now, Alarms: e.alarms,
		Log: e.log, Faults: e.faults, Retrier: e.retrier(),
		Limits: e.limits, Rows: e.store, Elsewhere: e.countElsewhere(), Held: e.held(), Fleet: e.isShared(), Queues: e.cfg.Queues, Workers: e.cfg.Workers, MaxRunning: e.cfg.MaxRunning, MaxPending: e.cfg.MaxPending, Aging: e.cfg.Aging, Steps: e.cfg.Steps, Lease: e.cfg.Lease, Owner: e.cfg.Owner,
		MaxPayload: e.cfg.MaxPayload, Active: e.active.add, TakeWork: e.takeWork(), AroundJob: e.wrap.Job, AroundStep: e.wrap.Step,
		CallHandler: e.commands.CallDue, CheckPayload: e.commands.CheckPayload,
	})
	e.writer.Extend(e.dispatch)
	e.writer.Observe(e.dispatch, e.notifier, e.topics, e.cleaner)
	e.joinFleet()
}

// retrier returns what repeats internal commands of the engine after faults.
func (e *Engine) retrier() fault.Retrier {
	return fault.Retrier{Closing: e.closing, Closed: e.closedError}
}

// resumeIDs makes new ids greater than all stored ones. Ids begin with the time, and lists are in the order of ids: if
// the clock was set back while no engine ran, a new case would come before older ones, and a page that continues after
// the greatest id would never show it.
func (e *Engine) resumeIDs(ctx context.Context) error {
	last := store.Page{Desc: true, Limit: 1}
	return e.store.View(ctx, func(r store.Reader) error {
		cases, err := r.Cases(ctx, store.CaseFilter{Page: last})
		if err != nil {
			return err
		}
		for _, c := range cases {
			e.ids.Above(c.ID)
		}
		items, err := r.Items(ctx, store.ItemFilter{Page: last})
		if err != nil {
			return err
		}
		for _, it := range items {
			e.ids.Above(it.ID)
		}
		jobs, err := r.Jobs(ctx, store.JobFilter{Page: last})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			e.ids.Above(j.ID)
		}
		steps, err := r.Steps(ctx, store.StepFilter{Page: last})
		if err != nil {
			return err
		}
		for _, s := range steps {
			e.ids.Above(s.ID)
		}
		messages, err := r.Messages(ctx, store.MessageFilter{Page: last})
		if err != nil {
			return err
		}
		for _, m := range messages {
			e.ids.Above(m.ID)
		}
		return nil
	})
}

// now is the only source of time. Times have microseconds, the precision of the database.
func (e *Engine) now() time.Time { return e.cfg.Clock.Now().Truncate(time.Microsecond).UTC() }

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.now() }

// Close stops the engine: it claims no further jobs, waits for running ones for the time Config.Grace, and then cancels
// their contexts. Jobs that do not return even then are released, without counting an attempt. Acknowledged commands
// are durable whether or not Close is called.
//
// A callback cannot close the engine, which would have to wait for the callback: the error wraps ErrCallback, and the
// engine stays open. If the function of a job calls Close, Close waits for that function as for any other.
func (e *Engine) Close() error {
	if commit.InCallback() {
		return fmt.Errorf("%w: it called Close, which waits for all callbacks to return; the engine stays open: close it outside of "+
			"callbacks, where commands are sent", ErrCallback)
	}
	var err error
	e.close.Do(func() { err = e.closeOnce() })
	return err
}

// Every acknowledged command is durable already, so the order of closing matters for callers and not for the data:
//
//	dispatch.Stop, cleaner.Stop    no more work begins
//	dispatch.Finish                jobs end within the grace and commit their results; the others are released
//	endAll                         the mailbox and the fleet end, then the writer after its queue, then waiting callers
//	store.Close                    it has no users any more

// closeOnce stops the sources of work before the parts that execute it. First no job is claimed and no case is removed
// any more. Then running jobs end, and the writer still executes the commands with their results. Then the writer ends
// after its queue, and waiting callers get ErrClosed. The store is closed last, so none of them uses a closed one.
func (e *Engine) closeOnce() error {
	e.dispatch.Stop()
	e.cleaner.Stop()
	e.dispatch.Finish(e.cfg.Grace, e.cancel)
	e.endAll()
	return e.store.Close()
}

// endAll ends all goroutines of the engine. The store stays open.
func (e *Engine) endAll() {
	e.endWork()
	e.writer.Wait()
	e.writer.Stop()
	e.cancel()
	e.waitForInternal()
	e.notifier.Close(e.closedError())
}

// waitForInternal waits for the goroutines that send internal commands of the engine.
func (e *Engine) waitForInternal() {
	if e.mailbox != nil {
		e.mailbox.Wait()
	}
	if e.fleet != nil {
		e.fleet.Wait()
	}
	e.cleaner.Wait()
}

// Kill stops the engine as the death of its process would: nothing more is written, running jobs are abandoned, and
// their results are discarded. It is for tests of recovery. The store must be a store.Killer.
func (e *Engine) Kill() error {
	killer, ok := e.store.(store.Killer)
	if !ok {
		return errors.New("this store cannot be killed")
	}
	var err error
	e.close.Do(func() {
		e.dispatch.Stop()
		e.cleaner.Stop()
		e.endAll()
		err = killer.Kill()
	})
	return err
}
