package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/workflow"
)

func (a *app) caseRestart() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Short: "start a case that has ended again, as a new case",
		Long: paragraph("Start a new case with the input and options of a root case that has ended, and print its id. It takes over the " +
			"completed steps of the last job; with --from-step only those before that step, which is executed again with those after it. " +
			"A failed case can also be resumed where it failed: tasq case resume." + helpOfEnded + "Cases that were restarted or forked " +
			"already are left out, unless --force is given. " + helpOfBulk),
		Example: `  tasq case restart 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --from-step charge --reason "the wrong account"
  tasq case restart --workflow order --state failed --code no-funds --all --reason "the accounts are filled"`,
	}
	q.reasoned(cmd)
	cmd.Flags().StringVar(&q.command.FromStep, "from-step", "", "execute the `step` with this name and those after it again")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = workflow.KindRestart
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.printNewCase(ctx, result.Case)
	})
	a.manyCases(cmd, q, workflow.KindRestart)
	return cmd
}

// job is the command "job".
func (a *app) job() *cobra.Command {
	cmd := &cobra.Command{Use: "job", Short: "release a job from its worker", Args: cobra.ArbitraryArgs, RunE: a.group}
	cmd.AddCommand(a.jobRelease())
	return cmd
}

func (a *app) jobRelease() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "release JOB", Short: "release a job from a worker that hangs",
		Long: paragraph("Release a running job from a worker that hangs: its context is canceled, the job becomes due again, and a result that " +
			"the worker reports later is rejected. The process that owns the database executes the command."),
		Example: "  tasq jobs --state running\n  tasq job release 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --reason \"it hangs\"",
		Args:    exactly("the id of a JOB"),
	}
	q.reasoned(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = workflow.KindReclaim
		if q.about = args[0]; checkID(jobIDs, q.about) != nil {
			return checkID(jobIDs, q.about)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.say("job %s of case %s is released", q.command.Job, result.Case)
	})
	return cmd
}
