package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

func (a *app) workflow() *cobra.Command {
	cmd := &cobra.Command{Use: "workflow", Short: "suspend or resume a workflow", RunE: a.group, Args: cobra.ArbitraryArgs}
	for _, c := range []struct {
		use, short, long, done string
		kind                   workflow.Kind
	}{
		{"suspend", "suspend a workflow: its new cases begin suspended", "Suspend a workflow, in all programs: cases of it that are started from now on, also child " +
			"cases, begin suspended, so that nothing of them starts. The database stores the suspension. Cases that exist are not suspended by this: see tasq case " +
			"suspend --workflow.", "is suspended: new cases begin suspended", workflow.KindSuspendWorkflow},
		{"resume", "resume a suspended workflow: its new cases begin as usual", "Resume a suspended workflow: its new cases begin as usual. Cases that are suspended " +
			"stay so: see tasq case resume --suspended --workflow.", "is resumed: new cases begin as usual", workflow.KindResumeWorkflow},
	} {
		q, o := &asking{a: a}, owning{a: a}
		sub := &cobra.Command{Use: c.use + " WORKFLOW", Short: c.short, Long: paragraph(c.long), Args: exactly("a WORKFLOW"),
			Example: "  tasq workflow " + c.use + " order"}
		q.acting(sub)
		sub.RunE = a.run(func(ctx context.Context, args []string) error {
			q.command.Kind, q.command.Workflow = c.kind, args[0]
			if err := a.send(ctx, o, q, fmt.Sprintf("workflow %s %s", args[0], c.done)); err != nil || q.left() {
				return err
			}
			return a.noteCases(ctx, c.kind, args[0])
		})
		cmd.AddCommand(sub)
	}
	return cmd
}

// noteCases says which cases a suspension or a resumption of their workflow does not affect.
func (a *app) noteCases(ctx context.Context, kind workflow.Kind, name string) error {
	return a.view(ctx, func(r store.Reader) error {
		f := store.CaseFilter{Page: store.Page{Limit: 1}, Workflow: name, States: []state.CaseState{state.CaseStarted}}
		hint := "its active cases are not suspended by this: tasq case suspend --workflow %s --all"
		if kind == workflow.KindResumeWorkflow {
			f.Suspended, hint = true, "its suspended cases are not resumed by this: tasq case resume --suspended --workflow %s --all"
		}
		found, err := r.Cases(ctx, f)
		if len(found) > 0 {
			a.remark(hint, name)
		}
		return err
	})
}
