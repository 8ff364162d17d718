package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Options are the options of one run, besides its input. A case stores them as JSON. The zero value has no effect.
type Options struct {
	Retry      json.RawMessage `json:"retry,omitempty"`      // instead of the workflow's own, as its builder encodes it
	OnComplete []HandlerCall   `json:"onComplete,omitempty"` // the handlers of its end, in this order
	Work       workitem.ID     `json:"work,omitzero"`        // of a restart: what the work began with, see Work.First
	Tick       *Tick           `json:"tick,omitempty"`       // of the schedule that starts the run; nil if none does
	Trace      string          `json:"trace,omitempty"`      // of the command that starts the run, see Command.Trace
	Queued     bool            `json:"queued,omitempty"`     // the run waits for those with its business key that were started before it
	Debounced  time.Time       `json:"debounced,omitzero"`   // of a run that was put off by Debounce: when the first of the starts came
	Queue      string          `json:"queue,omitempty"`      // of the run's jobs, see Queue; "" is that of each task and function
	Needs      string          `json:"needs,omitempty"`      // the workflow of which the case starts others: of several engines, one that has it begins the case
	Window     time.Duration   `json:"window,omitempty"`     // of a run that was started with Throttle: for how long it counts, in nanoseconds
}

// HandlerCall registers a completion handler for a run.
type HandlerCall struct {
	Handler string          `json:"handler"`         // its name, see Definition.Handlers
	Value   json.RawMessage `json:"value,omitempty"` // the argument of the handler
	Only    []string        `json:"only,omitempty"`  // the outcomes after which it is called; empty for all
}

// outcomes are the words for how a run can end.
var outcomes = []string{workitem.Completed.String(), workitem.Failed.String(), workitem.Canceled.String()}

// Includes reports whether the handler is called after this outcome.
func (t *HandlerCall) Includes(outcome workitem.State) bool {
	return len(t.Only) == 0 || slices.Contains(t.Only, outcome.String())
}

// Encode returns the JSON that a case keeps; nil for the zero value. The error is a [*domain.InvalidError].
func (o Options) Encode() (json.RawMessage, error) {
	if o.isZero() {
		return nil, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, &domain.InvalidError{Type: "workflow.Options", Err: err}
	}
	return raw, nil
}

func (o *Options) isZero() bool {
	return len(o.Retry) == 0 && len(o.OnComplete) == 0 && o.Work.IsZero() && o.Tick == nil && o.Trace == "" && !o.Queued && o.Debounced.IsZero() && o.Window == 0 && o.Queue == "" && o.Needs == ""
}

// OptionsOf returns the options of a case.
func OptionsOf(c activities.CaseInfo) (Options, error) {
	if len(c.Options) == 0 {
		return Options{}, nil // most have none, for which nothing is to be allocated
	}
	return decodeOptions(&c)
}

func decodeOptions(c *activities.CaseInfo) (o Options, err error) {
	if err := json.Unmarshal(c.Options, &o); err != nil {
		return o, fmt.Errorf("the options of case %s (%s) cannot be read: %w", c.ID, c.Workflow, err)
	}
	return o, nil
}

// Check returns an error if the options do not fit the workflow: a handler that it does not declare, a value that
// the handler rejects, or an unknown outcome.
func (o Options) Check(d *Definition) error {
	for _, t := range o.OnComplete {
		h := d.Handlers[t.Handler]
		if h == nil {
			return fmt.Errorf("workflow %s has no completion handler %q: declare it with the workflow", d.Name, t.Handler)
		}
		if h.Accept != nil {
			if _, err := h.Accept(t.Value); err != nil {
				return fmt.Errorf("value for completion handler %s of workflow %s: %w", t.Handler, d.Name, err)
			}
		}
		for _, word := range t.Only {
			if !slices.Contains(outcomes, word) {
				return fmt.Errorf("completion handler %s of workflow %s is to be called after %q only: use some of %s",
					t.Handler, d.Name, word, strings.Join(outcomes, ", "))
			}
		}
	}
	return nil
}

// Handler is a completion handler. It is part of the definition; a start selects it by name, with a value (see Options). It
// is called once, when the run has completed, failed or was canceled.
type Handler struct {
	// Accept decodes and validates the value of a start; nil accepts any.
	Accept func(value json.RawMessage) (json.RawMessage, error)
	// Run is called in the transaction in which the case ends, which the context carries. If it fails, only its own changes
	// are rolled back, and a job calls it again later. It is nil if a worker calls the function of this name in Calls
	// instead.
	Run func(ctx context.Context, c activities.CaseInfo, value json.RawMessage) error
}
