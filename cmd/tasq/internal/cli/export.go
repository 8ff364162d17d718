package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
)

// export is the command "export".
func (a *app) export() *cobra.Command {
	l := listing{a: a, what: "cases"}
	var f store.CaseFilter
	var word string
	cmd := &cobra.Command{
		Use: "export", Short: "write an event log of cases for process mining",
		Long: paragraph("Write the history of cases as an event log to standard output: of work items, of tasks without work items, of " +
			"steps of functions, and of messages. The format ocel is OCEL 2.0 as JSON, with cases and work items as objects; xes is " +
			"IEEE 1849 XES, with a trace for each root case, which includes the events of its child cases. Flags select root cases. " +
			"Inputs, outputs and failure messages are omitted. -o has no effect."),
		Example: `  tasq export --format xes --workflow article --newer 30d > article.xes
  tasq export --format ocel --label customer=ada > ada.json`,
		Args: exactly(),
	}
	cmd.Flags().StringVar(&word, "format", string(eventlog.OCEL), "the `format`: ocel or xes")
	l.caseFilters(cmd, &f)
	l.runs(cmd, &f.Root, nil, func() error {
		if _, err := eventlog.ParseFormat(word); err != nil {
			return usagef("--format: %w", err)
		}
		return nil
	}, func(ctx context.Context, r store.Reader) (err error) {
		if err := l.known(ctx, r); err != nil {
			return err
		}
		if !f.Root.IsZero() {
			if f.Root, err = r.Root(ctx, f.Root); err != nil {
				return err
			}
		}
		if f.Fingerprint, err = wholeFingerprint(ctx, r, f.Fingerprint); err != nil {
			return err
		}
		at := now()
		f.Workflow, f.Before, f.Since = l.workflow, l.older.time(at), l.newer.time(at)
		return eventlog.Write(ctx, a.Out, store.ViewerOf(r), eventlog.Format(word), eventlog.Options{Cases: f})
	})
	return cmd
}
