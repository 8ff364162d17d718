package cli

import (
	"context"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// already says who made the setting of a command, when and why, if that was an earlier command; "" otherwise.
func (a *app) already(ctx context.Context, q *asking) (text string, err error) {
	switch q.command.Kind {
	case workflow.KindPause, workflow.KindSetWorkers, workflow.KindSetLimit, workflow.KindSuspendWorkflow:
	default:
		return "", nil
	}
	err = a.view(ctx, func(r store.Reader) error {
		all, err := r.Settings(ctx)
		if err != nil {
			return err
		}
		d, err := settingBy(all, &q.command)
		if err == nil && d != (store.Decision{}) && (d.By != q.command.Actor || d.Reason != q.reason) {
			text = setBefore(d)
		}
		return err
	})
	return text, err
}

// setBefore says who made a setting, when and why.
func setBefore(d store.Decision) string {
	text := "; set before"
	if d.By != "" {
		text += " by " + printable.Line(d.By)
	}
	text += ", " + printable.Duration(now().Sub(d.At)) + " ago"
	if d.Reason != "" {
		text += " (" + printable.Line(d.Reason) + ")"
	}
	return text
}

// settingBy returns the decision about what a command has set; the zero value if there is none.
func settingBy(all []store.Setting, c *workflow.Command) (d store.Decision, err error) {
	limits, queues, err := store.ReadControls(all)
	if err != nil {
		return d, err
	}
	suspended, err := store.ReadSuspensions(all)
	if err != nil {
		return d, err
	}
	switch q, l := queues[c.Queue], limits[c.Limit]; c.Kind {
	case workflow.KindPause:
		if d = q.Decision; c.QueueKey != "" {
			d = q.Keys[c.QueueKey]
		}
	case workflow.KindSetWorkers:
		if q.Workers != nil {
			d = q.Workers.Decision
		}
	case workflow.KindSetLimit:
		if d = l.Decision; c.LimitKey != "" {
			d = l.Keys[c.LimitKey].Decision
		}
	case workflow.KindSuspendWorkflow:
		d = suspended[c.Workflow]
	}
	return d, nil
}
