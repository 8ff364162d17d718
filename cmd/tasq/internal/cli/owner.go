package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// owning sends a command to the process that owns the database, which is this one if there is no other.
type owning struct {
	a      *app
	net    string // file of the workflow to start; "" for a known workflow
	create bool

	db     database.Database
	defs   []engine.Workflow // what this process can run of the database
	lacks  string            // the workflow of the command, if this process cannot run it
	target string            // the workflow to start
	recipe bool              // it is a recipe of tasq demo
	claim  bool              // the database is new, and becomes one of tasq demo
}

// do executes a command and waits for the result; with --queue, it only leaves it.
func (o *owning) do(ctx context.Context, q *asking) (workflow.Result, error) {
	if err := q.complete(); err != nil {
		return workflow.Result{}, err
	}
	if q.command.Kind == workflow.KindStart && o.net == "" {
		q.command.Workflow, o.recipe = recipeName(q.command.Workflow)
	}
	if err := o.prepare(ctx, q); err != nil {
		return workflow.Result{}, err
	}
	result, err := o.ask(ctx, q)
	return result, q.wantsData(err)
}

// prepare reads what the command needs, without changing anything.
func (o *owning) prepare(ctx context.Context, q *asking) (err error) {
	if o.db, err = o.a.database(); err != nil {
		return err
	}
	o.target = q.command.Workflow
	if o.create && o.db.Fresh(ctx) {
		return o.gatherNew()
	}
	return o.read(ctx, func(r store.Reader) error {
		known, err := namesOf(ctx, r)
		if err != nil {
			return err
		}
		code, err := o.a.codeFor(ctx, r)
		if err != nil {
			return err
		}
		switch q.command.Kind {
		case workflow.KindSetLimit, workflow.KindForgetLimit, workflow.KindPause, workflow.KindUnpause, workflow.KindSetWorkers,
			workflow.KindForgetWorkers:
			return nil // without a workflow, so any process can execute it
		case workflow.KindSuspendWorkflow, workflow.KindResumeWorkflow:
			return known.check(q.command.Workflow, "") // by its name alone, likewise
		case workflow.KindBroadcast:
			return o.gatherAll(known.defs, code)
		}
		if err := q.find(ctx, r); err != nil {
			return err
		}
		on, err := caseOf(ctx, r, q.command)
		if err != nil || q.command.Kind == workflow.KindRemove { // nothing is called for a case that has ended
			return err
		}
		return o.gather(known.defs, o.a.withBulk(o.a.withSchedules(code, q.command), on), on)
	})
}

// caseOf returns the case that a command acts on; nil for a command that acts on no existing case.
func caseOf(ctx context.Context, r store.Finder, c workflow.Command) (*state.Case, error) {
	id := c.Case
	switch c.Kind {
	case workflow.KindStart:
		return nil, nil
	case workflow.KindAct, workflow.KindRetry, workflow.KindSkip, workflow.KindGiveUp:
		it, err := findItem(ctx, r, c.Item)
		if err != nil {
			return nil, err
		}
		id = it.Case
	case workflow.KindRetryIncident, workflow.KindGiveUpIncident, workflow.KindReclaim:
		jobs, err := r.Jobs(ctx, store.JobFilter{ID: c.Job})
		if err != nil {
			return nil, err
		}
		if len(jobs) == 0 {
			return nil, exit(ExitNotFound, "there is no incident or job %s; tasq incidents and tasq jobs list them", c.Job)
		}
		id = jobs[0].Case
	case workflow.KindToken:
		var err error
		if id, err = engine.TokenCase(c.Token); err != nil {
			return nil, err
		}
	}
	return findCase(ctx, r, id)
}

// read reads the database. An older schema is migrated first, as by an engine that opens it: the command may change the
// file, and another process that owned it could not execute this command.
func (o *owning) read(ctx context.Context, f func(store.Reader) error) error {
	err := o.a.view(ctx, f)
	if !errors.Is(err, store.ErrOlder) {
		return err
	}
	s, err := o.db.Opener().Open(ctx, store.Options{Now: now})
	if errors.Is(err, store.ErrOwned) {
		return exit(ExitDatabase, "the program that owns %s is of an older version, whose schema the file has: use its version of "+
			"tasq, or stop it and run its new version: %w", o.db.Name(), err)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return &exitError{ExitDatabase, err}
	}
	o.a.remark("%s was written by an older version, and is migrated", o.db.Name())
	return o.a.view(ctx, f)
}

// gatherNew is gather for a database that does not exist yet: it has no workflow to start, so that comes from a file,
// or is a recipe.
func (o *owning) gatherNew() error {
	switch {
	case o.net != "":
		return o.fromFile(nil, nil)
	case !o.recipe:
		return exit(ExitNotFound, "%s is still to be made, and has no workflow %q; take one of a file with --net%s", o.db.Name(), o.target,
			o.a.orRecipe(o.target))
	}
	o.claim = true
	d, err := o.a.recipe(o.target)
	o.defs = []engine.Workflow{d}
	return err
}

// gather collects the definitions that this process can run: those that the database has as text, the code that it has
// for others, and the one to start.
func (o *owning) gather(stored []*store.Definition, code []*workflow.Definition, on *state.Case) error {
	texts, err := rebuild(stored)
	if err != nil {
		return err
	}
	for _, d := range texts {
		o.defs = append(o.defs, d)
	}
	if o.recipe {
		if code, err = o.chosen(code); err != nil {
			return err
		}
	}
	for _, d := range code {
		known := func(s *store.Definition) bool { return s.Fingerprint == d.Fingerprint }
		if slices.ContainsFunc(stored, known) || o.recipe && d.Name == o.target {
			o.defs = append(o.defs, d)
		}
	}
	runs := func(is func(*workflow.Definition) bool) bool {
		return slices.ContainsFunc(o.defs, func(w engine.Workflow) bool { return is(w.Untyped()) })
	}
	all := names{stored}.workflows()
	switch {
	case on != nil && runs(func(d *workflow.Definition) bool { return d.Fingerprint == on.Fingerprint }):
	case on != nil:
		o.lacks = on.Workflow
	case o.net != "":
		return o.fromFile(stored, texts)
	case runs(func(d *workflow.Definition) bool { return d.Name == o.target }):
	case slices.Contains(all, o.target):
		o.lacks = o.target
	default:
		return o.a.unknownWorkflow(o.target, all)
	}
	return nil
}

// chosen checks that a recipe exists and may run on the database: there is code for it only if tasq demo created the
// database.
func (o *owning) chosen(code []*workflow.Definition) ([]*workflow.Definition, error) {
	if _, err := o.a.recipe(o.target); err != nil {
		return nil, err
	}
	if code == nil {
		return nil, exit(ExitRefused, "%s is a recipe of tasq demo, and %s belongs to another program; start it in a database of "+
			"its own, with --db FILE --create", recipePrefix+o.target, o.db.Name())
	}
	return code, nil
}

// gatherAll is gather for a command that concerns all cases: this process must be able to start every subscribed
// workflow.
func (o *owning) gatherAll(stored []*store.Definition, code []*workflow.Definition) error {
	if len(stored) == 0 {
		return nil
	}
	newest := make(map[string]*store.Definition)
	for _, s := range stored {
		if old := newest[s.Name]; old == nil || old.Created.Before(s.Created) {
			newest[s.Name] = s
		}
	}
	if err := o.gather(stored, code, &state.Case{Fingerprint: stored[0].Fingerprint}); err != nil {
		return err
	}
	o.lacks = ""
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		can := func(w engine.Workflow) bool { return w.Untyped().Fingerprint == newest[name].Fingerprint }
		if !slices.ContainsFunc(o.defs, can) {
			o.lacks = name
		}
	}
	return nil
}

// fromFile reads the workflow to start, and those that it needs, from a file. A changed one is a new version, so that
// running cases of the old one continue.
func (o *owning) fromFile(stored []*store.Definition, texts []*workflow.Definition) error {
	parsed, err := o.a.readNotation(o.net)
	if err != nil {
		return err
	}
	known := make(map[string]*workflow.Definition)
	for _, d := range texts {
		known[d.Name] = d
	}
	defs, problems, err := scenario.Compile(parsed, known)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return problemsOf(o.net, problems)
	}
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
		versions := 0
		isStored := false
		for _, s := range stored {
			if s.Name == d.Name {
				versions++
				isStored = isStored || s.Fingerprint == d.Fingerprint
			}
		}
		if isStored {
			continue // it is among the texts
		}
		if versions > 0 {
			d.Version = strconv.Itoa(versions + 1)
		}
		o.defs = append(o.defs, d)
	}
	if !slices.Contains(names, o.target) {
		return exit(ExitNotFound, "%s has no workflow %q; %s", o.net, o.target, spelling.Hint(o.target, names))
	}
	return nil
}

// ask executes the command in this process if no process owns the database, and otherwise in the one that does.
func (o *owning) ask(ctx context.Context, q *asking) (result workflow.Result, err error) {
	if err := q.command.Check(); err != nil { // before JSON replaces bytes that are not UTF-8
		return result, err
	}
	if q.dryRun {
		return result, o.dryRun(ctx, q)
	}
	if q.queue {
		command, err := json.Marshal(q.command)
		if err != nil {
			return result, err
		}
		if err := o.db.Inbox().Leave(ctx, command); err != nil {
			return result, &exitError{ExitDatabase, err}
		}
		o.a.remark("left in %s for the program that owns it next", o.db.Name())
		return result, nil
	}
	if o.claim {
		if err := demo.Claim(ctx, o.db.Opener()); err != nil {
			return result, err
		}
	}
	answer, answered, err := o.askOwner(ctx, q, func() (owned bool, err error) {
		e, err := o.open(ctx)
		if err == nil {
			result, err = o.execute(ctx, e, q.command)
			return false, err
		}
		if errors.Is(err, store.ErrOwned) && o.net == "" {
			return true, nil
		}
		return false, err
	})
	if answered {
		result = answer
	}
	return result, err
}

// askOwner sends the command to the process that owns the database. Before each attempt it calls isOwned. answered is
// false if that returns an error, or that no process owns the database.
func (o *owning) askOwner(
	ctx context.Context, q *asking, isOwned func() (bool, error),
) (result workflow.Result, answered bool, err error) {
	command, err := json.Marshal(q.command)
	if err != nil {
		return result, false, err
	}
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	for {
		if owned, err := isOwned(); !owned || err != nil {
			return result, false, err
		}
		result, err = o.post(limited, command)
		switch {
		case errors.Is(err, errUnowned):
		case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
			return result, true, exit(ExitDatabase, "%s belongs to another process, which did not answer within %s, and the command did "+
				"not happen: it may be busy, or not have the workflow; wait longer with --timeout, or leave the command with --queue",
				o.db.Name(), q.timeout)
		default:
			return result, true, err
		}
	}
}

// open opens the database with what this process can run. The error wraps store.ErrOwned if another process owns it.
func (o *owning) open(ctx context.Context) (*engine.Engine, error) {
	return engine.Config{Workers: -1, Logger: slog.New(slog.NewTextHandler(o.a.Err, &slog.HandlerOptions{
		Level: slog.LevelError}))}.Open(ctx, o.db.Opener(), o.defs...)
}

// lacking returns an error if this process does not have the code that the command needs.
func (o *owning) lacking() error {
	if o.lacks == "" {
		return nil
	}
	return exit(ExitRefused, "workflow %s is code that tasq does not have, and no process owns %s; run the "+
		"program that defines it, or leave the command for it with --queue", o.lacks, o.db.Name())
}

// execute executes the command as the owner of the database.
func (o *owning) execute(
	ctx context.Context, e *engine.Engine, c workflow.Command,
) (result workflow.Result, err error) {
	if err = o.lacking(); err == nil {
		if result, err = e.Do(ctx, c); engine.Code(err) == "error" { // not an error of the engine: the process's own code
			err = &exitError{ExitRefused, err}
		}
	}
	if err == nil {
		err = e.Drain(ctx) // due timers
	}
	return result, errors.Join(err, e.Close())
}
