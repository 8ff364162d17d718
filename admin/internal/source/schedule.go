package source

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/workflow"
)

// OnSchedule executes a command on a schedule: "pause", "resume", "run", "remove", or "backfill" of a period.
func OnSchedule(ctx context.Context, b Backend, name, what string, from, to time.Time, opts ...workflow.Option) error {
	switch what {
	case "pause":
		return schedules.Pause(ctx, b, name, opts...)
	case "resume":
		return schedules.Resume(ctx, b, name, opts...)
	case "run":
		return schedules.Run(ctx, b, name, opts...)
	case "remove":
		return schedules.Remove(ctx, b, name, opts...)
	case "backfill":
		return schedules.Backfill(ctx, b, name, from, to, opts...)
	}
	return fmt.Errorf("%w: %q is not a schedule command: use pause, resume, run, backfill or remove", workflow.ErrBadCommand, what)
}
