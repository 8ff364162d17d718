package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func now() time.Time { return retry.SystemClock.Now() }

// database returns the database of the command.
func (a *app) database() (database.Database, error) {
	word := a.db
	if word == "" {
		word = os.Getenv("TASQ_DB")
	}
	if word == "" {
		return database.Database{}, usagef("no database: name its file, or postgres://..., with --db, or set the environment variable TASQ_DB")
	}
	return named(word)
}

// named returns the database for a word. A word that cannot name one is bad input, and not a database that cannot be used.
func named(word string) (database.Database, error) {
	db := database.Of(word)
	if err := db.Valid(); err != nil {
		return database.Database{}, usagef("%w; a database on a server is named as in postgres://app@db.example/article", err)
	}
	return db, nil
}

// view reads the database without changing it.
func (a *app) view(ctx context.Context, f func(store.Reader) error) error {
	return a.withStore(ctx, func(s store.Store) error { return s.View(ctx, f) })
}

// withStore opens the database for reading.
func (a *app) withStore(ctx context.Context, f func(store.Store) error) error {
	db, err := a.database()
	if err != nil {
		return err
	}
	s, err := read(ctx, db)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// read opens a database for reading.
func read(ctx context.Context, d database.Database) (store.Store, error) {
	if info, err := os.Stat(d.File()); err == nil && info.IsDir() {
		return nil, exit(ExitDatabase, "%s is a folder; name the database file in it", d.File())
	}
	s, err := d.Read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.File() != "":
		return nil, exit(ExitDatabase, "there is no file %s; name another with --db", d.File())
	case errors.Is(err, store.ErrOlder):
		return nil, exit(ExitDatabase, "%w; stop the programs of the older version that have it open, make a copy, and apply the missing migrations: "+
			"tasq migrate %s", err, printable.Word(d.Name()))
	case err != nil:
		return nil, &exitError{ExitDatabase, err}
	}
	return s, nil
}

// names provides the names of workflows and tasks in a database.
type names struct{ defs []*store.Definition }

func namesOf(ctx context.Context, r store.Reader) (names, error) {
	defs, err := r.Definitions(ctx)
	return names{defs}, err
}

func (n names) workflows() []string {
	var all []string
	for _, d := range n.defs {
		if !slices.Contains(all, d.Name) {
			all = append(all, d.Name)
		}
	}
	return all
}

// newest returns the last registered definition of a workflow; nil if there is none.
func (n names) newest(workflow string) *store.Definition {
	var found *store.Definition
	for _, d := range n.defs {
		if d.Name == workflow && (found == nil || !d.Created.Before(found.Created)) {
			found = d
		}
	}
	return found
}

// tasks lists the tasks of a workflow, or of all if it is "".
func (n names) tasks(workflow string) []string {
	var all []string
	for _, d := range n.defs {
		for i := range d.Net.Tasks {
			if name := d.Net.Tasks[i].Name; (workflow == "" || d.Name == workflow) && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// check returns an error for the name of a workflow or a task that the database does not have; "" is valid.
func (n names) check(workflow, task string) error {
	if all := n.workflows(); workflow != "" && !slices.Contains(all, workflow) {
		return exit(ExitNotFound, "there is no workflow %q in the database; %s", workflow, spelling.Hint(workflow, all))
	}
	if all := n.tasks(workflow); task != "" && !slices.Contains(all, task) {
		of := ""
		if workflow != "" {
			of = " of workflow " + workflow
		}
		return exit(ExitNotFound, "there is no task %q%s; %s", task, of, spelling.Hint(task, all))
	}
	return nil
}

// findCase returns a case by its id. The error has a hint if the id is that of something else, and says who has removed
// the case if somebody has.
func findCase(ctx context.Context, r store.Finder, id workitem.CaseID) (*state.Case, error) {
	found, err := r.Cases(ctx, store.CaseFilter{ID: id})
	if err != nil || len(found) > 0 {
		return first(found), err
	}
	items, err := r.Items(ctx, store.ItemFilter{ID: workitem.ID(id)})
	if err != nil {
		return nil, err
	}
	if len(items) > 0 {
		return nil, exit(ExitNotFound, "%s is a work item, %s of case %s; give the id of the case",
			id, items[0].Label(), items[0].Case)
	}
	jobs, err := r.Jobs(ctx, store.JobFilter{ID: workitem.JobID(id)})
	if err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		return nil, exit(ExitNotFound, "%s is a job of case %s; give the id of the case", id, jobs[0].Case)
	}
	missing := exit(ExitNotFound, "there is no case %s; tasq cases lists them", id)
	whole, ok := r.(store.Reader)
	if !ok {
		return nil, missing
	}
	switch err := store.OrRemoved(ctx, whole, id, store.ErrNotFound); {
	case errors.As(err, new(*store.RemovedError)):
		return nil, &exitError{ExitNotFound, err}
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	return nil, missing
}

// caseByWord is findCase for an id or a prefix of one.
func caseByWord(ctx context.Context, r store.Finder, word string) (*state.Case, error) {
	var id workitem.CaseID
	if err := resolve(ctx, r, caseIDs, word, &id); err != nil {
		return nil, err
	}
	return findCase(ctx, r, id)
}

// findItem returns a work item by its id. The error has a hint if the id is that of something else.
func findItem(ctx context.Context, r store.Finder, id workitem.ID) (*store.ItemRow, error) {
	found, err := r.Items(ctx, store.ItemFilter{ID: id})
	if err != nil || len(found) > 0 {
		return first(found), err
	}
	cases, err := r.Cases(ctx, store.CaseFilter{ID: workitem.CaseID(id)})
	if err != nil {
		return nil, err
	}
	if len(cases) > 0 {
		return nil, exit(ExitNotFound, "%s is a case; its work items are listed by tasq items --case %s", id, id)
	}
	return nil, exit(ExitNotFound, "there is no work item %s; tasq items lists them", id)
}

func first[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// findTask returns a task of a case's workflow by its name.
func findTask(c *state.Case, name string) (net.TaskID, error) {
	if t, ok := c.Net.TaskByName(name); ok {
		return t, nil
	}
	return 0, exit(ExitNotFound, "workflow %s has no task %q; %s", c.Workflow, name, spelling.Hint(name, c.Net.TaskNames()))
}
