package cli

import (
	"context"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// recipePrefix is the prefix for the workflows of this program: demo:order. A name without it is that of a workflow in
// the database, even if a recipe has the same name.
const recipePrefix = "demo:"

// recipeName returns the name of a recipe without the prefix; false for a word without it.
func recipeName(word string) (string, bool) { return strings.CutPrefix(word, recipePrefix) }

// recipes returns the workflows of this program.
func (a *app) recipes() ([]*workflow.Definition, error) {
	if a.reg.Recipes == nil {
		return nil, nil
	}
	workflows, err := a.reg.Recipes()
	if err != nil {
		return nil, err
	}
	all := make([]*workflow.Definition, len(workflows))
	for i, w := range workflows {
		all[i] = w.Untyped()
	}
	return all, nil
}

// recipe returns a recipe by its name without the prefix.
func (a *app) recipe(name string) (*workflow.Definition, error) {
	all, err := a.recipes()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, d := range all {
		if d.Name == name {
			return d, nil
		}
		known = append(known, recipePrefix+d.Name)
	}
	return nil, exit(ExitNotFound, "tasq demo has no recipe %q; %s", name, spelling.Hint(recipePrefix+name, known))
}

// orRecipe returns the end of an error about an unknown workflow: it suggests a recipe with the name, if there is one.
func (a *app) orRecipe(name string) string {
	if _, err := a.recipe(name); err != nil {
		return ""
	}
	return "; the recipe of tasq demo is " + recipePrefix + name
}

// unknownWorkflow returns the error for a name that no workflow in the database has.
func (a *app) unknownWorkflow(name string, known []string) error {
	if name == schedules.Name {
		return exit(ExitRefused, "the program of this database has no schedules: give its engine the workflow of schedules.New")
	}
	return exit(ExitNotFound, "there is no workflow %q in the database; %s%s", name, spelling.Hint(name, known), a.orRecipe(name))
}

// codeFor lists the recipes that may run on a database: all on one of tasq demo, and none on any other. A definition
// there may have the name, and even the fingerprint, of the recipe that it was copied from; its code belongs to another
// program.
func (a *app) codeFor(ctx context.Context, r store.Reader) ([]*workflow.Definition, error) {
	made, err := demo.Made(ctx, r)
	if err != nil || !made {
		return nil, err
	}
	return a.recipes()
}
