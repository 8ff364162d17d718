package state

import "github.com/tasq-dev/tasq/workitem"

// The parts of changes of items and jobs. A creation writes every field, so that decoding returns the same value, whatever
// its maker has set. A later change writes only what a change of that kind can set: the rest of an item or job, such as
// its input, never changes, and would be most of the journal if it were repeated.

func appendItemOpened(dst []byte, it *workitem.Item) []byte {
	dst = key(dst, "item", it.ID)
	dst = str(dst, "task", it.Task)
	dst = num(dst, "gen", int64(it.Generation))
	dst = num(dst, "n", int64(it.Number))
	dst = str(dst, "to", it.State.String())
	dst = num(dst, "attempt", int64(it.Attempt))
	dst = key(dst, "predecessor", it.Predecessor)
	dst = key(dst, "successor", it.Successor)
	dst = raw(dst, "retry", it.Retry)
	dst = raw(dst, "input", it.Input)
	dst = raw(dst, "output", it.Output)
	dst = failure(dst, "failure", it.Failure)
	dst = str(dst, "queue", it.Queue)
	dst = num(dst, "priority", int64(it.Priority))
	dst = str(dst, "by", it.By)
	dst = at(dst, "at", it.Created)
	dst = at(dst, "due", it.Due)
	dst = at(dst, "started", it.Started)
	return at(dst, "ended", it.Ended)
}

// The action is written besides the new state: two actions can lead to one state (initialize and reset), and the history
// says which it was.
func appendItemMoved(dst []byte, e *ItemMoved) []byte {
	dst = key(dst, "item", e.Item)
	dst = str(dst, "action", e.Action.String())
	dst = str(dst, "to", e.To.String())
	dst = raw(dst, "output", e.Output)
	dst = failure(dst, "failure", e.Failure)
	dst = str(dst, "by", e.By)
	return at(dst, "at", e.At)
}

func appendJobOpened(dst []byte, t *Tree, j *Job) []byte {
	dst = key(dst, "job", j.ID)
	dst = ofTree(dst, t, "root", j.Root)
	dst = str(dst, "task", j.Task)
	dst = num(dst, "gen", int64(j.Generation))
	dst = key(dst, "item", j.Item)
	dst = str(dst, "kind", j.Kind)
	dst = str(dst, "name", j.Name)
	dst = str(dst, "queue", j.Queue)
	dst = num(dst, "priority", int64(j.Priority))
	dst = raw(dst, "input", j.Input)
	dst = flag(dst, "detached", j.Detached)
	dst = str(dst, "to", j.State.String())
	dst = at(dst, "due", j.Due)
	dst = num(dst, "attempt", int64(j.Attempt))
	dst = num(dst, "crashes", int64(j.Crashes))
	dst = num(dst, "fence", j.Fence)
	dst = str(dst, "owner", j.Owner)
	dst = at(dst, "lease", j.Lease)
	dst = failure(dst, "failure", j.Failure)
	dst = at(dst, "at", j.Created)
	return at(dst, "ended", j.Ended)
}

// All fields that can change are written, as moveJob of the kernel sets them all.
func appendJobMoved(dst []byte, e *JobMoved) []byte {
	dst = key(dst, "job", e.Job)
	dst = str(dst, "to", e.To.String())
	dst = at(dst, "due", e.Due)
	dst = num(dst, "attempt", int64(e.Attempt))
	dst = num(dst, "crashes", int64(e.Crashes))
	dst = num(dst, "fence", e.Fence)
	dst = str(dst, "owner", e.Owner)
	dst = at(dst, "lease", e.Lease)
	dst = failure(dst, "failure", e.Failure)
	return at(dst, "at", e.At)
}
