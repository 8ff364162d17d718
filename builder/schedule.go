package builder

import (
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
)

// Startable is a [Workflow] or a [FuncRef] whose cases take a C.
type Startable[C any] interface{ startable() *Workflow[C] }

func (w *Workflow[C]) startable() *Workflow[C] { return w }

func (f *FuncRef[In, Out]) startable() *Workflow[In] {
	if f == nil {
		return nil
	}
	return f.Workflow
}

// Schedule returns a definition that starts a case of a workflow, or a run of a function, with this input at each tick of a
// schedule. Pass it to package engine/schedules, which runs it. Errors in it are reported by its Check method and by that
// package.
//
//	builder.Schedule(schedule.Schedule{Name: "digest", Cron: "0 8 * * mon-fri", Zone: "Europe/Berlin"}, digest, Digest{})
//
// The run knows its tick, see [workflow.TickOf].
func Schedule[C any](s schedule.Schedule, w Startable[C], input C, opts ...workflow.Option) workflow.Scheduled {
	name, payload, err := "", []byte(nil), errNotBuilt
	if w != nil {
		if w := w.startable(); w != nil {
			name = w.Name
			payload, err = encode(input)
		}
	}
	failing := workflow.OptionFunc(func(*workflow.Command) error { return err })
	return workflow.Scheduled{Schedule: s, Start: workflow.With(workflow.Start(name, payload, opts...), failing)}
}
