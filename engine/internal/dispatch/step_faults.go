package dispatch

import "github.com/tasq-dev/tasq/engine/internal/fault"

// note logs when the store begins to refuse the steps of functions, and when that is over. It returns the error unchanged. Without it, a
// function whose own SQL breaks the connection again and again would only seem to take long.
func (j *journal) note(command string, err error) error {
	if fault.Is(err) {
		j.d.o.Faults.Note("steps", err, "a step could not be stored; it is tried again; if the function's own SQL is the cause, the step "+
			"fails after some attempts", "step", command, "job", j.n.job, "case", j.n.root)
	} else {
		j.d.o.Faults.Note("steps", nil, "")
	}
	return err
}
