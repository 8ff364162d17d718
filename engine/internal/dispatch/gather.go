package dispatch

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The jobs of a task with a batch wait in a line of their queue until there are enough, or the first has waited long
// enough:
//
//	due ──▶ line ──▶ it is full, or its time is over, and a worker is free ──▶ hours and limits of each ──▶ group
//	          ▲                                                                      │
//	          └───────────── they begin, there is room ◀─────────────────────────────┘
//
// The wait counts from the time at which the first job was due, so a line stores nothing, and a restart does not change
// it. A job that waits in a line uses no worker and no limits, and does not count as work in progress.

// batches has the lines of jobs that are processed together. The lock of the scheduler guards it.
type batches struct {
	keyless   map[*workflow.Batch]*lineKey // by batch: the line of its jobs, if the batch has no key
	positions map[workitem.JobID]linePosition
}

// linePosition is the line in which a job waits, and its due time.
type linePosition struct {
	line *batchLine
	due  int64
}

// lineKey identifies a line.
type lineKey struct {
	spec *workflow.Batch
	key  string // of the job's input; "" for all
}

// batchLine is a line: the waiting jobs of a task in one queue.
type batchLine struct {
	workflow.Batching
	queue  *jobQueue
	key    lineKey
	ready  entries             // by priority
	gone   map[dueJob]struct{} // entries in ready whose jobs were canceled or taken by another engine
	first  int64               // the due time of the first job; 0 if it has to be determined
	noWait bool                // a job was in a group before, and then waited for a limit: it does not wait for others again

	heap    *lineHeap // the heap that contains the line; nil for none
	index   int       // in the heap
	begins  int64     // when the jobs have waited long enough, as of the last change
	full    int       // the number of full batches
	forming bool      // a group is being formed of its jobs
}

// lineOf returns the key of the line of a job; nil for none. A job for which the batch function returns no key runs
// alone.
func (b *batches) lineOf(spec *workflow.Batch, input json.RawMessage) (*lineKey, error) {
	if spec == nil {
		return nil, nil
	}
	if b.positions == nil {
		b.keyless, b.positions = make(map[*workflow.Batch]*lineKey), make(map[workitem.JobID]linePosition)
	}
	if spec.Key != nil {
		key, err := keyOf(spec.Key, input)
		if err != nil {
			return nil, err
		}
		return &lineKey{spec, key}, nil
	}
	if b.keyless[spec] == nil {
		b.keyless[spec] = &lineKey{spec: spec}
	}
	return b.keyless[spec], nil
}

// keyOf calls a key function on a goroutine of its own, since a function that ends its goroutine would otherwise end
// that of the scheduler.
func keyOf(ask keyFunc, input json.RawMessage) (key string, err error) {
	err = worker.ErrExited
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = retry.NewPanicError(p)
			}
		}()
		key, err = ask(input)
	}()
	<-done
	return key, err
}

// noteKey logs that a function of a definition gave no key for a job, at most once a minute for each function.
func (d *Dispatcher) noteKey(c *state.Case, j *state.Job, of, instead string, err error) {
	if err == nil {
		return
	}
	name, stack := j.Name, []any(nil)
	if it := c.Item(j.Item); it != nil {
		name = it.Task
	}
	if p, ok := errors.AsType[*retry.PanicError](err); ok {
		err, stack = errors.New(p.Brief()), []any{"stack", string(p.Stack)}
	}
	args := append([]any{"workflow", c.Workflow, "of", name, "job", j.ID, "case", c.ID}, stack...)
	d.o.Faults.Note("keys of "+of+" of "+c.Workflow+"/"+name, err, "the key function of "+of+" failed; "+instead, args...)
}

// batchOf returns the line of a job; nil if it runs alone. A job that has crashed a process runs alone, so that it
// cannot crash the others of its batch. The lock is held.
func (s *scheduler) batchOf(c *state.Case, j *state.Job) *lineKey {
	if !s.d.haveBatches || j.Crashes > 0 {
		return nil
	}
	f := s.d.conditionsOf(c, j)
	line, err := s.batches.lineOf(f.batch, f.input)
	s.d.noteKey(c, j, "batches", "its job is done alone", err)
	return line
}

// gather adds a due job to its line.
func (b *batches) gather(n entry) {
	g := n.queue.lines.find(n.queue, *n.batch)
	b.positions[n.job] = linePosition{g, n.due}
	g.add(n)
	n.queue.lines.place(g)
}

// leave removes a job from its line, if it is in one.
func (b *batches) leave(job workitem.JobID) {
	if at, ok := b.positions[job]; ok {
		delete(b.positions, job)
		at.line.drop(dueJob{job, at.due})
		at.line.queue.lines.place(at.line)
	}
}

// pop removes and returns the most urgent job of a line that is not empty.
func (b *batches) pop(g *batchLine) entry {
	n := g.pop()
	delete(b.positions, n.job)
	return n
}

// empty removes and returns all jobs from the lines of a queue.
func (b *batches) empty(q *jobQueue) (list []entry) {
	for _, g := range q.lines.all {
		for g.len() > 0 {
			list = append(list, b.pop(g))
		}
	}
	q.lines = lines{}
	return list
}

// stopWaiting records that a job has been in a group: the others of its line start as soon as they can.
func (b *batches) stopWaiting(job workitem.JobID) {
	if at, ok := b.positions[job]; ok {
		at.line.noWait = true
		at.line.queue.lines.place(at.line)
	}
}

// parkSuspended parks the jobs of suspended cases of a tree, since jobs that cannot start must not count for a full
// batch. The lock is held.
func (s *scheduler) parkSuspended(tree *state.Tree) {
	if len(s.batches.positions) == 0 {
		return
	}
	tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			at, ok := s.batches.positions[j.ID]
			if !ok {
				continue
			}
			if _, by := tree.SuspendedBy(c); by != nil {
				n := at.line.entry(j.ID)
				s.batches.leave(j.ID)
				s.parked.put(n)
			}
		}
	})
}

// readAhead is the number of the most urgent jobs of a queue among which unread ones are looked for.
const readAhead = 256

// choose returns the line whose jobs are to start, and the index of the next job in ready that has no line. A job that
// was loaded without its case, as all are when an engine is opened, may belong to a batch that starts without being
// full, so it is read first.
func (q *jobQueue) choose(now int64) (line *batchLine, at int) {
	line = q.lines.next(now)
	if line == nil || line.len() >= line.Most {
		return line, 0
	}
	at = slices.IndexFunc(q.ready[:min(len(q.ready), readAhead)], func(n entry) bool { return n.unread })
	if at >= 0 || q.reading > 0 {
		line = nil
	}
	return line, max(at, 0)
}

// backlog returns how many workers the waiting jobs of a queue would occupy.
func (q *jobQueue) backlog() int {
	return len(q.ready) + q.lines.batches
}

func (g *batchLine) len() int { return len(g.ready) - len(g.gone) }

// add adds a job to the line. If it was canceled before with the same due time, its old entry becomes valid again.
func (g *batchLine) add(n entry) {
	if g.len() == 0 {
		g.noWait = false // the job that had waited has left
	}
	if _, there := g.gone[n.key()]; there {
		delete(g.gone, n.key())
	} else {
		g.ready.push(n, byPriority)
	}
	if len(g.ready) == 1 {
		g.first = n.due
	} else if g.first != 0 {
		g.first = min(g.first, n.due)
	}
}

// drop marks the entry of a job in the line to be skipped.
func (g *batchLine) drop(job dueJob) {
	g.gone[job] = struct{}{}
	g.first = 0
	g.skip()
}

// entry returns the entry of a job in the line.
func (g *batchLine) entry(job workitem.JobID) (found entry) {
	g.each(func(n *entry) {
		if n.job == job {
			found = *n
		}
	})
	return found
}

// skip removes canceled entries from the head of the line, so that the head is the most urgent job.
func (g *batchLine) skip() {
	for len(g.ready) > 0 && len(g.gone) > 0 {
		if _, gone := g.gone[g.ready[0].key()]; !gone {
			return
		}
		delete(g.gone, g.ready.pop(byPriority).key())
	}
}

// pop removes and returns the most urgent job. The line must not be empty.
func (g *batchLine) pop() entry {
	n := g.ready.pop(byPriority)
	if n.due <= g.first {
		g.first = 0
	}
	g.skip()
	return n
}

// due returns when the first job has waited long enough; never if there is none.
func (g *batchLine) due() int64 {
	if g.len() == 0 {
		return never
	}
	if g.first == 0 {
		g.first = never
		g.each(func(n *entry) { g.first = min(g.first, n.due) })
	}
	return g.first + g.Wait.Microseconds()
}

// mayBegin reports whether the jobs of the line are to start.
func (g *batchLine) mayBegin(now int64) bool {
	n := g.len()
	return n > 0 && (n >= g.Most || g.noWait || g.due() <= now)
}

func (g *batchLine) each(f func(*entry)) {
	for i := range g.ready {
		if _, gone := g.gone[g.ready[i].key()]; !gone {
			f(&g.ready[i])
		}
	}
}

// form makes a group of the jobs of a line that can start, and appends them to those that are handed out; false if
// there are none. The lock is held.
func (s *scheduler) form(q *jobQueue, line *batchLine, now int64, next []entry) (_ []entry, begun bool) {
	g := newGroup(s.d.o.Context, &s.pool)
	q.lines.remove(line)
	line.forming = true
	for g.held < line.Most && line.len() > 0 {
		n := s.batches.pop(line)
		if s.hours.isClosed(&n, now) {
			s.hours.wait(n)
			s.limits.Pass(n.ticket)
			continue
		}
		s.d.o.Active(1)
		if !s.enter(n) {
			continue
		}
		n.turn.recordStart()
		n.durableClaim = true // the call waits until all claims of the group are durable
		g.held++
		s.groups[n.job] = g
		s.d.jobs.Add(1)
		next = append(next, n)
	}
	line.noWait = line.noWait && line.len() > 0
	line.forming = false
	q.lines.place(line)
	if g.undecided = g.held; g.held > 0 {
		s.queues.occupy(q)
	}
	return next, g.held > 0
}
