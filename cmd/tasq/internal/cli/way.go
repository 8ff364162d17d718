package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
)

// way is the command "way".
func (a *app) way() *cobra.Command {
	return &cobra.Command{
		Use: "way CASE", Short: "list the tasks of the shortest run that completes a case",
		Long: paragraph("List the tasks of the shortest run that completes a case from its current state, in order, and who or what must " +
			"act in the active ones. If there is no such run, show where the case gets stuck."),
		Example: `  tasq way 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq way 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json | jq -r .tasks[].task`,
		Args: exactly("the id or business key of a CASE"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := checkID(caseIDs, args[0]); err != nil {
				return err
			}
			return a.view(ctx, func(r store.Reader) error {
				c, err := caseByWord(ctx, r, args[0])
				if err != nil {
					return err
				}
				tree, err := r.Tree(ctx, c.Root)
				if err != nil {
					return err
				}
				answer, err := why.Read(ctx, r, c.ID, now(), why.Here{})
				if err != nil {
					return err
				}
				way := why.WayOf(tree, answer)
				if a.output == "json" {
					return a.object(way)
				}
				return a.say("%s", &way)
			})
		}),
	}
}
