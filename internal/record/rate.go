package record

import (
	"time"

	"github.com/tasq-dev/tasq/store"
)

// Rate is the JSON form of how many work items of a task ended, or cases of a workflow, and how long they took and had waited, in seconds.
type Rate struct {
	Workflow string    `json:"workflow"`
	Task     string    `json:"task,omitempty"`
	Hour     time.Time `json:"hour,omitzero"`
	Done     int       `json:"done"`
	Failed   int       `json:"failed"`
	P50      float64   `json:"p50"`
	P95      float64   `json:"p95"`

	// Of the work items that had been started.
	Started   int     `json:"started"`
	WaitedP50 float64 `json:"waited_p50"`
	WaitedP95 float64 `json:"waited_p95"`
}

// OfRate returns the JSON form of a rate.
func OfRate(r store.Rate) Rate {
	return Rate{Workflow: r.Workflow, Task: r.Task, Hour: r.Hour, Done: r.Done, Failed: r.Failed, P50: r.P50.Seconds(), P95: r.P95.Seconds(),
		Started: r.Started, WaitedP50: r.WaitedP50.Seconds(), WaitedP95: r.WaitedP95.Seconds()}
}
