package registry

import (
	"slices"

	"github.com/tasq-dev/tasq/workflow"
)

// HaveBatches reports whether a task of any definition processes its items in batches.
func (r *Registry) HaveBatches() bool {
	for _, d := range r.byFingerprint {
		if slices.ContainsFunc(d.Tasks, func(t workflow.Task) bool { return t.Batch != nil }) {
			return true
		}
	}
	return false
}
