package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
)

// Batch executes several jobs of a task in one call: as soon as Most of them are due, or the first has been due for Wait. Each job
// succeeds or fails by itself.
type Batch struct {
	Batching
	// Key groups the jobs: only jobs with the same key share a batch. Nil groups all jobs together.
	Key func(input json.RawMessage) (string, error)
	// Run executes the jobs in a worker, outside any transaction. It returns one result for each job, in the same order.
	Run func(ctx context.Context, jobs []*activities.Work) []Done
}

// Batching says when a batch starts.
type Batching struct {
	Most int           // the largest number of jobs in one call, 1 or more
	Wait time.Duration // how long the first job waits for others; 0 takes those that are due when a worker is free
}

// Done is the result of one job of a batch.
type Done struct {
	Output json.RawMessage
	Err    error // why it failed; nil if it succeeded
}

// BatchesOf returns the batches in a Definition.Document by task, for a process without the definition.
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

// BatchDocument is the encoding of a Batching in a Definition.Document.
type BatchDocument struct {
	Most int    `json:"most"`
	Wait string `json:"wait"`           // as time.Duration has it
	Keys bool   `json:"keys,omitempty"` // each key of the input has batches of its own
}
