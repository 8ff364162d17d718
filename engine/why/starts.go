package why

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// startsOf returns the workflow of which a live case starts others, as the case of a schedule does; "" if there is none.
func startsOf(c *state.Case) string {
	if len(c.Options) == 0 || c.State.Final() {
		return ""
	}
	o, err := workflow.OptionsOf(activities.CaseInfo{ID: c.ID, Workflow: c.Workflow, Options: c.Options})
	if err != nil {
		return ""
	}
	return o.Needs
}

// readNamed reads the definitions of the workflows of which cases of the tree start others.
func (in *Input) readNamed(ctx context.Context, r store.Reader) (err error) {
	starts := false
	in.Tree.Each(func(c *state.Case) { starts = starts || startsOf(c) != "" })
	if starts && !in.Unknown() {
		in.Named, err = namesOf(ctx, r)
	}
	return err
}

// namesOf returns the fingerprints of the definitions of each name.
func namesOf(ctx context.Context, r store.Reader) (map[string][]string, error) {
	defs, err := r.Definitions(ctx)
	named := make(map[string][]string)
	for _, d := range defs {
		named[d.Name] = append(named[d.Name], d.Fingerprint)
	}
	return named, err
}

// lacksNamed reports whether no engine has a workflow, in any version, as far as it is known. One that was never registered is one that no
// engine has had.
func (in *Input) lacksNamed(workflow string) bool {
	if workflow == "" || in.Named == nil || in.Unknown() {
		return false
	}
	return !slices.ContainsFunc(in.Named[workflow], func(fingerprint string) bool {
		missing, _ := in.lacks(fingerprint)
		return !missing
	})
}
