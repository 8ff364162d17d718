package cli

import (
	"context"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// recipePrefix begins the name by which a workflow of this program is addressed: demo:order. A name without it is that
// of a workflow in the database, also if a recipe has the same one.
const recipePrefix = "demo:"

// recipeName is the name of the recipe that a word addresses; false for any other word.
func recipeName(word string) (string, bool) { return strings.CutPrefix(word, recipePrefix) }

// recipes are the workflows that this program brings along.
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

// recipe finds a recipe by its name without the prefix.
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

// orRecipe ends an error about a name that no workflow has: a recipe that has it is named too.
func (a *app) orRecipe(name string) string {
	if _, err := a.recipe(name); err != nil {
		return ""
	}
	return "; the recipe of tasq demo is " + recipePrefix + name
}

// unknownWorkflow is the error for a name that no workflow in the database has.
func (a *app) unknownWorkflow(name string, known []string) error {
	return exit(ExitNotFound, "there is no workflow %q in the database; %s%s", name, spelling.Hint(name, known), a.orRecipe(name))
}

// codeFor lists the recipes that may run on a database: all on one that tasq demo made, and none on any other. A
// definition there may have the name, and even the fingerprint, of a recipe that it was copied from; its code is that of
// the program it belongs to.
func (a *app) codeFor(ctx context.Context, r store.Reader) ([]*workflow.Definition, error) {
	made, err := demo.Made(ctx, r)
	if err != nil || !made {
		return nil, err
	}
	return a.recipes()
}
