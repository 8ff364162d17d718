package dispatch

import (
	"math"

	"github.com/tasq-dev/tasq/store/state"
)

// jobQueue has the due jobs of one queue. A due job without a worker is in one of these places:
//
//	ready           it waits for a worker
//	held            its queue or its fairness key is paused
//	lines           it waits for others of its batch
//	limitGate       it waits for room in a limit
//	hours           it waits for the time window of its function
//	parking         its case is suspended
//	retries         the store has failed when it was to start
//
// All but the first three belong to the scheduler, since they do not depend on the queue.
type jobQueue struct {
	name    string
	limit   int
	running int
	ready   entries // by priority
	held    []entry // due jobs while the queue is paused
	lines   lines   // jobs of batches, by entry.batch

	reading  int // unread entries that were handed out; if there are batches, each is put back after it was read
	promised int // due jobs that commands of the current batch of the writer keep here

	fair       bool                // some functions of the queue have fairness keys
	rotations  map[int32]*rotation // by priority
	promisedTo map[string]struct{} // the keys of the promised jobs since the last dispatch

	// The fields below are for queues with a bound.
	pending     int           // waiting jobs
	uncommitted int           // jobs opened by starts that are not committed
	elsewhere   int           // waiting jobs that other engines hold, or none
	offers      int           // how many jobs this engine has offered so far
	room        chan struct{} // closed when there is room; nil if no start waits for it
}

// urgency returns the sort key for jobs that age: the due time, minus Aging for each unit of priority. It does not
// change while a job waits, since all jobs age at the same rate, so the heap stays ordered.
func (d *Dispatcher) urgency(j *state.Job) int64 {
	aging := d.o.Aging.Microseconds()
	if aging <= 0 {
		return 0
	}
	due, most := j.Due.UnixMicro(), int64(math.MaxInt64/4)/aging
	return due - max(-most, min(int64(j.Priority), most))*aging
}
