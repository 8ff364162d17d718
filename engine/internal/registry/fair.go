package registry

import (
	"github.com/tasq-dev/tasq/workflow"
)

// FairQueues returns the queues with fair scheduling by keys, as far as the definitions determine the queue of a function; nil if no
// function has keys.
func (r *Registry) FairQueues() map[string]bool {
	queues := make(map[string]bool)
	for _, d := range r.byFingerprint {
		addFairQueues(queues, d)
	}
	if len(queues) == 0 {
		return nil
	}
	return queues
}

func addFairQueues(queues map[string]bool, d *workflow.Definition) {
	for i := range d.Tasks {
		if d.Tasks[i].FairBy != nil {
			queues[d.Tasks[i].Queue] = true
		}
	}
	for _, call := range d.Calls {
		if call.FairBy != nil {
			queues[call.Queue] = true
		}
	}
}
