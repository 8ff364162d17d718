package record

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Change is the JSON form of one event of a history.
type Change struct {
	Seq     int64           `json:"seq"` // position of the command in the journal
	At      time.Time       `json:"at"`
	Command string          `json:"command"`
	By      string          `json:"by,omitempty"`
	Key     string          `json:"key,omitempty"`
	Case    workitem.CaseID `json:"case"`
	Text    string          `json:"text"`
	Event   json.RawMessage `json:"event"`
}
