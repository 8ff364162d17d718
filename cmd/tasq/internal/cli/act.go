package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// asking has the common parts of commands that act on the database.
type asking struct {
	a       *app
	command workflow.Command
	about   string // id or prefix of the id of a case or work item
	data    data
	reason  string // of the actor
	timeout time.Duration
	queue   bool
	dryRun  bool
	force   bool // of a restart of many: also cases that were restarted already
	made    bool // the command is complete, with its data
}

// left reports whether the command was not executed, so that there is no result to show.
func (q *asking) left() bool { return q.queue || q.dryRun }

func (q *asking) flags(cmd *cobra.Command, what string) {
	q.data.a = q.a
	f := cmd.Flags()
	f.Var(&q.data, "data", what+" (as it is, @FILE, or - for standard input)")
	f.StringVar(&q.command.Key, "key", "",
		"idempotency `key`: a second command with it does nothing, and returns the first result")
	f.StringVar(&q.command.Actor, "by", "", "`name` of the actor, for the history (default: the environment variable USER)")
	f.StringVar(&q.reason, "reason", "", "`reason`, for the history")
	q.dryRunFlag(cmd)
	q.patience(cmd)
}

func (q *asking) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&q.dryRun, "dry-run", false, "print what the command would do, and do nothing")
}

// patience declares the flags for how long to wait for the reply.
func (q *asking) patience(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&q.timeout, "timeout", 10*time.Second, "how long to wait for the process that owns the database")
	f.BoolVar(&q.queue, "queue", false, "leave the command for the next owner of the database, and do not wait")
}

// find resolves the case or item that the command is for.
func (q *asking) find(ctx context.Context, r store.Finder) error {
	switch q.command.Kind {
	case workflow.KindAct, workflow.KindRetry, workflow.KindSkip, workflow.KindGiveUp:
		return resolve(ctx, r, itemIDs, q.about, &q.command.Item)
	case workflow.KindRetryIncident, workflow.KindGiveUpIncident, workflow.KindReclaim:
		return resolve(ctx, r, jobIDs, q.about, &q.command.Job)
	}
	return resolve(ctx, r, caseIDs, q.about, &q.command.Case)
}

// complete sets the fields that every command has.
func (q *asking) complete() error {
	if q.timeout < 0 {
		return usagef("--timeout %s: must not be negative; use 0s to not wait", q.timeout)
	}
	q.command.WaitForOwner = q.queue
	if q.command.Actor == "" {
		q.command.Actor = os.Getenv("USER")
	}
	ends := q.command.Kind == workflow.KindCancel || q.command.Action == workitem.Fail || q.command.Action == workitem.Cancel
	if ends && q.reason != "" && q.data.json != nil {
		return usagef("--reason and --data both have the reason; give one of them")
	}
	var err error
	switch {
	case q.made:
	case ends && q.reason != "":
		q.command.Reason = &workitem.Failure{Message: q.reason, Retryable: q.command.Action == workitem.Fail} // see retryable
	case q.command.Kind == workflow.KindCancel:
		if q.command.Reason, err = builder.DecodeFailure(q.data.json); err != nil {
			err = fmt.Errorf("the reason of the cancellation: %w", err)
		}
	case q.reason != "":
		q.command = workflow.With(q.command, workflow.Because(q.reason))
		q.command.Payload = q.data.json
	case q.command.Action == workitem.Fail:
		q.command.Payload = retryable(q.data.json)
	default:
		q.command.Payload = q.data.json
	}
	return err
}

// retryable marks a failure as retryable unless it says whether it is, as the error of a function does. Otherwise a
// retry policy would not see it.
func retryable(data json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil || fields["retryable"] != nil {
		return data
	}
	fields["retryable"] = json.RawMessage("true")
	changed, err := json.Marshal(fields)
	if err != nil {
		return data
	}
	return changed
}
