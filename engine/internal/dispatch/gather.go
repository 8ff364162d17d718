package dispatch

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The jobs of a task with a batch are gathered in a line of their queue until there are enough, or the first has waited long enough:
//
//	due ──▶ line ──▶ it is full, or its time is over, and a worker is free ──▶ hours and limits of each ──▶ group
//	          ▲                                                                      │
//	          └───────────── they begin, there is room ◀─────────────────────────────┘
//
// The time is that since the first job was due, so nothing of a line is stored, and it is the same after a restart. A job that waits in a
// line holds no worker, none of its limits, and is no work that is under way.

// batches are the lines of the jobs of tasks that are done together.
type batches struct {
	all map[*workflow.Batch]*lineKey // of the tasks whose jobs are all done together
	in  map[workitem.JobID]inLine
}

// inLine says in which line a job waits, and when it was due.
type inLine struct {
	line *gathering
	due  int64
}

// lineKey says with which others a job is done.
type lineKey struct {
	spec *workflow.Batch
	key  string // of the job's input; "" for all
}

// gathering is the line of the jobs of a task in one queue.
type gathering struct {
	workflow.Batching
	queue *jobQueue
	at    lineKey
	ready entries             // by priority
	gone  map[dueJob]struct{} // in ready, but canceled since, or another engine's
	first int64               // when the first of them was due; 0 if it is to be looked for
	now   bool                // one of them has waited for others before, and then for a limit

	in      *lineHeap // of lines, nil for none
	index   int       // in it
	begins  int64     // when the jobs have waited long enough, as of the last change
	full    int       // how many batches are full
	forming bool      // jobs of it are handed out
}

// lineOf finds or makes the key of a line; nil for none. A job for which the batch has no key is done alone.
func (b *batches) lineOf(spec *workflow.Batch, input json.RawMessage) *lineKey {
	if spec == nil {
		return nil
	}
	if b.in == nil {
		b.all, b.in = make(map[*workflow.Batch]*lineKey), make(map[workitem.JobID]inLine)
	}
	if spec.Key != nil {
		key, err := keyOf(spec.Key, input)
		if err != nil {
			return nil
		}
		return &lineKey{spec, key}
	}
	if b.all[spec] == nil {
		b.all[spec] = &lineKey{spec: spec}
	}
	return b.all[spec]
}

// keyOf asks a function for the key of an input. It is called in a goroutine of its own, as one that ends its goroutine would end the
// caller's.
func keyOf(ask askKey, input json.RawMessage) (key string, err error) {
	err = errGone
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

// batchOf is the line of the batch in which a job is done; nil if it is done alone, as is one whose process died with it: it would
// take the others with it. The lock is held.
func (s *scheduler) batchOf(c *state.Case, j *state.Job) *lineKey {
	if !s.d.haveBatches || j.Crashes > 0 {
		return nil
	}
	f := s.d.conditionsOf(c, j)
	return s.batches.lineOf(f.batch, f.input)
}

// gather has a due job wait for others. The lock is held.
func (s *scheduler) gather(n entry) {
	g := n.queue.lines.find(n.queue, *n.batch)
	s.batches.in[n.job] = inLine{g, n.due}
	g.add(n)
	n.queue.lines.place(g)
}

// leaveLine takes a job out of the line in which it waits, if any. The lock is held.
func (s *scheduler) leaveLine(job workitem.JobID) {
	if at, ok := s.batches.in[job]; ok {
		delete(s.batches.in, job)
		at.line.drop(dueJob{job, at.due})
		at.line.queue.lines.place(at.line)
	}
}

// setAside parks the jobs of a tree whose cases have been suspended: a batch is not full with those that cannot begin. The lock is held.
func (s *scheduler) setAside(tree *state.Tree) {
	if len(s.batches.in) == 0 {
		return
	}
	tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			at, ok := s.batches.in[j.ID]
			if !ok {
				continue
			}
			if _, by := tree.SuspendedBy(c); by != nil {
				n := at.line.entry(j.ID)
				s.leaveLine(j.ID)
				s.parked.put(n)
			}
		}
	})
}

// takeLines takes all jobs out of the lines of a queue. The lock is held.
func (s *scheduler) takeLines(q *jobQueue) (list []entry) {
	for _, g := range q.lines.all {
		for g.len() > 0 {
			n := g.pop()
			delete(s.batches.in, n.job)
			list = append(list, n)
		}
	}
	q.lines = lines{}
	return list
}

// readAhead is among how many of the most urgent jobs of a queue unread ones are looked for.
const readAhead = 256

// choose finds the line whose jobs are to begin, and the index of the job in ready that is next without one. A job that was taken up without
// its case, as all are when an engine is opened, may belong to a batch that is to begin and is not full: it is read before.
func (q *jobQueue) choose(now int64) (line *gathering, at int) {
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

// backlog is how many workers the jobs that wait in a queue would keep busy.
func (q *jobQueue) backlog() int {
	return len(q.ready) + q.lines.batches
}

// gathered is when the next line has waited long enough whose jobs cannot begin yet; never if there is none. The lock is held.
func (s *scheduler) gathered(now int64) (due int64) {
	due = never
	for _, q := range s.queues {
		due = min(due, q.lines.due(now))
	}
	return due
}

func (g *gathering) len() int { return len(g.ready) - len(g.gone) }

// add puts a job into the line. One that was canceled and is due at the same time again has its entry there.
func (g *gathering) add(n entry) {
	if g.len() == 0 {
		g.now = false // who waited has left
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

// drop passes over the entry of a job that waits in the line.
func (g *gathering) drop(job dueJob) {
	g.gone[job] = struct{}{}
	g.first = 0
	g.skip()
}

// entry is that of a job that waits in the line.
func (g *gathering) entry(job workitem.JobID) (found entry) {
	g.each(func(n *entry) {
		if n.job == job {
			found = *n
		}
	})
	return found
}

// skip takes what is gone off the head of the line, so that the head is the most urgent job.
func (g *gathering) skip() {
	for len(g.ready) > 0 && len(g.gone) > 0 {
		if _, gone := g.gone[g.ready[0].key()]; !gone {
			return
		}
		delete(g.gone, g.ready.pop(byPriority).key())
	}
}

// pop takes the most urgent job out. There has to be one.
func (g *gathering) pop() entry {
	n := g.ready.pop(byPriority)
	if n.due <= g.first {
		g.first = 0
	}
	g.skip()
	return n
}

// due is when the first job has waited long enough; never if there is none.
func (g *gathering) due() int64 {
	if g.len() == 0 {
		return never
	}
	if g.first == 0 {
		g.first = never
		g.each(func(n *entry) { g.first = min(g.first, n.due) })
	}
	return g.first + g.Wait.Microseconds()
}

// mayBegin reports whether the jobs of the line are to begin.
func (g *gathering) mayBegin(now int64) bool {
	n := g.len()
	return n > 0 && (n >= g.Most || g.now || g.due() <= now)
}

func (g *gathering) each(f func(*entry)) {
	for i := range g.ready {
		if _, gone := g.gone[g.ready[i].key()]; !gone {
			f(&g.ready[i])
		}
	}
}

// form makes a group of the jobs of a line that can begin, and appends them to those that are handed out; false if none begins. The lock is held.
func (s *scheduler) form(q *jobQueue, line *gathering, now int64, next []entry) (_ []entry, begun bool) {
	g := &group{d: s.d, expected: make(map[workitem.JobID]struct{}), done: make(chan struct{})}
	q.lines.remove(line)
	line.forming = true
	for g.held < line.Most && line.len() > 0 {
		n := line.pop()
		delete(s.batches.in, n.job)
		if s.hours.isClosed(&n, now) {
			s.hours.wait(n)
			s.limits.Pass(n.ticket)
			continue
		}
		s.d.o.Active(1)
		if !s.enter(n) {
			continue
		}
		n.turn.begins()
		n.cautious = true // none is called before all are this engine's
		g.held++
		s.groups[n.job] = g
		s.d.jobs.Add(1)
		next = append(next, n)
	}
	line.now = line.now && line.len() > 0
	line.forming = false
	q.lines.place(line)
	if g.undecided = g.held; g.held > 0 {
		s.begin(q)
	}
	return next, g.held > 0
}

// Gathered says how many jobs wait for each other in the line of a job, and when they begin at the latest; 0 if it is in none.
func (d *Dispatcher) Gathered(job workitem.JobID) (n int, due time.Time) {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	at, ok := d.sched.batches.in[job]
	if !ok {
		return 0, time.Time{}
	}
	return at.line.len(), time.UnixMicro(at.line.due()).UTC()
}
