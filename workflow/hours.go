package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/schedule"
)

// Hours are the windows in which the functions of a definition may start. A function that is not listed may start at any time.
type Hours struct {
	Tasks map[string]schedule.Window // of the functions of tasks, by the task
	Calls map[string]schedule.Window // of the functions that jobs run, by name
}

// HoursOf returns the windows in a Definition.Document, for a process without the definition.
func HoursOf(document json.RawMessage) (h Hours, err error) {
	if !bytes.Contains(document, []byte(`"hours":`)) { // as most
		return h, nil
	}
	type function struct {
		Name  string          `json:"name"`
		Hours schedule.Window `json:"hours"`
	}
	var d struct{ Tasks, Jobs []function }
	if err := json.Unmarshal(document, &d); err != nil {
		return h, fmt.Errorf("the hours of a definition: %w", err)
	}
	of := func(list []function) map[string]schedule.Window {
		windows := make(map[string]schedule.Window)
		for _, f := range list {
			if !f.Hours.IsZero() {
				windows[f.Name] = f.Hours
			}
		}
		return windows
	}
	return Hours{Tasks: of(d.Tasks), Calls: of(d.Jobs)}, nil
}
