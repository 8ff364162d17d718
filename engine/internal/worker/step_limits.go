package worker

import (
	"time"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// Take implements [step.Limiter].
func (j *Journal) Take(name string, takes []workitem.Take, since time.Time, room func()) (step.Lease, error) {
	acquired := room
	if room != nil {
		acquired = func() { j.limitsAcquired(room) }
	}
	l, held, err := j.limits.Take(name, takes, since, acquired)
	if l == nil {
		return nil, err
	}
	if room != nil && held {
		room()
	}
	return l, nil
}

// limitsAcquired reports to a run that a step has acquired its limits. While the run is being suspended, the report is
// delayed until it is known whether the run continues; at its end, unreported grants are returned.
func (j *Journal) limitsAcquired(room func()) {
	j.mu.Lock()
	report := !j.ended && !j.suspending
	if j.suspending {
		j.delayed = append(j.delayed, room)
	}
	j.mu.Unlock()
	if report {
		room()
	}
}

// unusedAdmission returns a record that ends the step for which the job was admitted, if the function has ended or
// suspended without calling the step; nil if it has called it. Without that record the job would be admitted for the
// step again and again.
func (j *Journal) unusedAdmission() []*workitem.Step {
	name := j.limits.Reserved()
	if name == "" {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.waits {
		if s.Name == name && s.Limited() {
			ended := *s
			ended.State, ended.Due, ended.Result = workitem.StepCanceled, time.Time{}, nil
			return []*workitem.Step{&ended}
		}
	}
	return nil
}
