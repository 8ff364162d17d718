package step

import "errors"

// The kinds of errors, by errors.Is.
var (
	// ErrSuspended says that the job has been given up until something it waits for is there. Return it, wrapped or not;
	// the function will be called again.
	ErrSuspended = errors.New("the job is suspended")

	// ErrNoJob says that the context is not that of a running job.
	ErrNoJob = errors.New("not in a job")
)
