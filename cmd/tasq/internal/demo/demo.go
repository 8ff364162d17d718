// Package demo implements "tasq demo": runnable demonstrations of the recipes against servers that fail as real ones do. [Run]
// shows the recipe airetry, RunOrder, RunOnboarding, RunIncident, RunLimits and RunFleet the others; [Command] chooses among
// them by the arguments.
//
// Each demo prints every attempt as it happens. All but RunLimits and RunFleet keep their case in a database, which remains
// afterwards for exploration with the other commands. Such a demo can be stopped at any moment, also by kill -9: started again
// on the same database it continues the same case, with the same attempts and the rest of the same wait.
//
//	$ tasq demo order          charge, mail, save fails            ^C or kill -9
//	$ tasq demo order          save again: neither a second charge nor a second mail
//
// The services that a demo calls (bank, mail server, model) are simulated on this machine. The demos of steps record the calls
// to them in a file beside the database, which shows that nothing was done twice.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The defaults of [Options].
const (
	DefaultDB     = "tasq-demo.db"
	DefaultPrompt = "Tell me about the rabbit."
	DefaultFaults = "error, limit 3s, cut" // with Fast: FastFaults
	FastFaults    = "error, limit 1s, cut" // a server cannot ask for less than one second
)

// The kinds of errors of [Run] and [Command], besides those of the engine, the store and the context.
var (
	ErrUsage    = errors.New("wrong usage")           // invalid or contradictory options
	ErrFailed   = errors.New("the case failed")       // after its last attempt, or with an error that is not retried
	ErrCanceled = errors.New("the case was canceled") // by another process, as with tasq case cancel
)

// errUnanswered ends a run whose input ended before the review. The case keeps waiting, so this is not a failure.
var errUnanswered = errors.New("there is no answer to the review")

// Options configure the demo. The zero value runs it without input, with the default file ([DefaultDB]), prompt and
// faults.
type Options struct {
	Setting
	// Prompt is the prompt for the model. Default: [DefaultPrompt]. If the file has a running case, that continues
	// instead, unless Prompt differs from its prompt.
	Prompt string

	// URL, Model and Key select a real endpoint. Without a URL those of the environment are used, see package chat. If
	// there are none, a server on this machine is started, which fails as Faults says.
	URL, Model, Key string
	// Faults is the script of the local server, see fakechat.ParseFaults: the first fault is that of the first attempt,
	// and so on. Default: [DefaultFaults]. "ok" is a server without faults.
	Faults string

	// Ask reads the review of a draft from In; otherwise every draft is approved. If In ends before the review is
	// complete, the review stays open, and Run prints how to complete it and how to continue.
	Ask bool
	// In has the answers of the reviewer. Default: no answers.
	In io.Reader
}

// demo is one run of the demo.
type demo struct {
	Options
	out     io.Writer
	clock   retry.Clock
	recipe  *airetry.Recipe
	engine  *engine.Engine
	view    view
	answers chan string // lines of the reviewer; nil before the first question
	asked   question
}

// Run runs the demo: it continues the cases that are running in the file, starts one if there is none, and returns when
// they have ended. When the context ends, Run stops at once and returns the error of the context; the cases stay in the
// file.
func Run(ctx context.Context, out io.Writer, o Options) (err error) {
	o.DB = cmp.Or(o.DB, DefaultDB)
	m, err := o.model()
	if err != nil {
		return err
	}
	defer m.close()
	d := &demo{Options: o, out: out, clock: retry.SystemClock, view: newView(out, o.Terminal, o.Plain)}
	if d.recipe, err = airetry.New(m.client, o.policy()); err != nil {
		return err
	}
	db := database.Of(o.DB)
	fmt.Fprintf(out, "database: %s (%s)\nmodel:    %s\n", db.Name(), made(ctx, db), m.name)
	if err := Claim(ctx, db.Opener()); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	flows, many := d.withBulk(d.recipe)
	if d.engine, err = configOf(o.Err).Open(ctx, db.Opener(), flows...); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	defer func() { err = errors.Join(err, d.engine.Close()) }()
	wait, stop, err := d.pages(ctx, out, d.engine, many)
	if err != nil {
		return err
	}
	defer stop()
	if err = d.cases(ctx); ctx.Err() != nil {
		fmt.Fprintf(out, "\nStopped, and nothing is lost. To go on: tasq demo -d %s\n", printable.Word(db.Name()))
		return ctx.Err()
	}
	wait()
	return err
}

// recordsOf returns the command that lists the records of a collection.
func recordsOf(db, collection string) string {
	return database.Of(db).Query("SELECT value FROM records WHERE collection = '" + collection + "'")
}

func made(ctx context.Context, db database.Database) string {
	if db.Fresh(ctx) {
		return "new"
	}
	return "was there"
}

// policy returns the retry policy of the recipe: five attempts in all.
func (o *Options) policy() retry.Policy {
	if o.Fast {
		return retry.Exponential(5, 50*time.Millisecond)
	}
	p := retry.Exponential(5, time.Second)
	p.MaxElapsed = time.Hour // a longer wait is of no use in a demo
	return p
}

// configOf returns the configuration of the engine in all demos. Messages for operators are written to errs, nil for
// none.
func configOf(errs io.Writer) engine.Config {
	if errs == nil {
		errs = io.Discard
	}
	return engine.Config{
		Grace:  200 * time.Millisecond, // an attempt that is interrupted is repeated, and does not count
		Logger: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

// cases follows the cases to their ends, one after the other; all of them run meanwhile.
func (d *demo) cases(ctx context.Context) error {
	running, err := d.running(ctx)
	if err != nil {
		return err
	}
	old := len(running)
	if d.needsNew(running) {
		id, err := d.recipe.Start(ctx, d.engine, airetry.Prompt{Text: cmp.Or(d.Prompt, DefaultPrompt)}, workflow.By("demo"))
		if err != nil {
			return err
		}
		running = append(running, id)
	}
	var failed error
	for i, id := range running {
		s, err := d.follow(ctx, id, i < old)
		if errors.Is(err, errUnanswered) {
			d.leaveOpen()
			return failed
		}
		if err != nil {
			return errors.Join(failed, err)
		}
		d.conclude(s)
		failed = errors.Join(failed, s.outcome())
	}
	d.explore(running[len(running)-1])
	return failed
}

// running lists the cases of an earlier run, and adds their prompts.
func (d *demo) running(ctx context.Context) (ids []workitem.CaseID, err error) {
	f := store.CaseFilter{Workflow: d.recipe.Name, States: []state.CaseState{state.CaseStarted}, RootOnly: true}
	for c, err := range store.AllCases(ctx, d.engine, f) {
		if err != nil {
			return nil, err
		}
		p, err := builder.CaseInputOf[airetry.Prompt](inputOf(c))
		if err != nil {
			return nil, err
		}
		if p.Text == d.Prompt {
			d.Prompt = "" // so that the same command, given again, continues the same case
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// needsNew reports whether no running case has the given prompt.
func (d *demo) needsNew(running []workitem.CaseID) bool { return len(running) == 0 || d.Prompt != "" }

// leaveOpen prints how to answer an open review later.
func (d *demo) leaveOpen() {
	fmt.Fprintf(d.out, `
There is no answer here, so the review stays open, and nothing is lost. To answer it:
  tasq item start %[2]s -d %[1]s
  tasq item complete %[2]s -d %[1]s --data '{"approved":true}'
or with --data '{"approved":false,"note":"what to do better"}'. To go on: tasq demo -d %[1]s
`, printable.Word(database.Of(d.DB).Name()), d.asked.item)
}

// explore prints commands for exploration.
func (d *demo) explore(id workitem.CaseID) {
	fmt.Fprintf(d.out, `
All of it is in %[1]s. To look around:
  tasq items -d %[1]s --case %[2]s
  tasq history %[2]s -d %[1]s
  tasq why %[2]s review -d %[1]s
  tasq cases -d %[1]s --counts
  %[3]s
`, printable.Word(database.Of(d.DB).Name()), id, recordsOf(d.DB, airetry.Jobs.Name))
}
