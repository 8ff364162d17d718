package registry

import "github.com/tasq-dev/tasq/workflow"

// HaveHours reports whether a function of any definition is restricted to a time window.
func (r *Registry) HaveHours() bool {
	for _, d := range r.byFingerprint {
		if hasHours(d) {
			return true
		}
	}
	return false
}

func hasHours(d *workflow.Definition) bool {
	for i := range d.Tasks {
		if !d.Tasks[i].Hours.IsZero() {
			return true
		}
	}
	for _, call := range d.Calls {
		if !call.Hours.IsZero() {
			return true
		}
	}
	return false
}
