package record

import (
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Failures is the JSON form of a group of failures.
type Failures struct {
	Workflow string      `json:"workflow,omitempty"`
	Task     string      `json:"task,omitempty"`
	Code     string      `json:"code,omitempty"`
	N        int         `json:"n"`
	First    time.Time   `json:"first"`
	Last     time.Time   `json:"last"`
	Item     workitem.ID `json:"item"`
}
