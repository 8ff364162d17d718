package dispatch

// jobQueue holds the due jobs of one queue.
type jobQueue struct {
	name    string
	limit   int
	running int
	ready   entries // by priority
	held    []entry // due, but the queue is paused

	promised int // jobs that are due and that commands of the open batch leave here
}
