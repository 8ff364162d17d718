package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
)

// Batch has the jobs of a task done together, several by one call: once Most of them are due, or the first of them has been due for
// Wait. Each succeeds or fails by itself.
type Batch struct {
	Batching
	// Key says which jobs are done together: those with the same one. Nil puts all of them together.
	Key func(input json.RawMessage) (string, error)
	// Run does the jobs in a worker, outside any transaction. It returns what became of each, by its index.
	Run func(ctx context.Context, jobs []*activities.Work) []Done
}

// Batching says when a batch begins.
type Batching struct {
	Most int           // how many jobs one call does, 1 or more
	Wait time.Duration // how long the first waits for others; 0 takes those that are there when a worker is free
}

// Done is what became of one job of a batch.
type Done struct {
	Output json.RawMessage
	Err    error // why it failed; nil if it did not
}

// BatchesOf reads the batches of a [Definition.Document], by the task, so that a process without the definition knows them too.
func BatchesOf(document json.RawMessage) (map[string]Batching, error) {
	if !bytes.Contains(document, []byte(`"batch":`)) { // as most
		return nil, nil
	}
	var d struct {
		Tasks []struct {
			Name  string         `json:"name"`
			Batch *BatchDocument `json:"batch"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("the batches of a definition: %w", err)
	}
	batches := make(map[string]Batching)
	for _, t := range d.Tasks {
		if t.Batch == nil {
			continue
		}
		wait, err := time.ParseDuration(t.Batch.Wait)
		if err != nil {
			return nil, fmt.Errorf("the batch of task %s: %w", t.Name, err)
		}
		batches[t.Name] = Batching{Most: t.Batch.Most, Wait: wait}
	}
	return batches, nil
}

// BatchDocument is the form of a [Batching] in a [Definition.Document].
type BatchDocument struct {
	Most int    `json:"most"`
	Wait string `json:"wait"`           // as time.Duration has it
	Keys bool   `json:"keys,omitempty"` // there is one for each key of the input
}
