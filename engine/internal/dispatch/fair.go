package dispatch

import (
	"cmp"
	"encoding/json"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The jobs of a queue whose functions have fairness keys take turns: each is given a round as it is due, and jobs of one priority begin in
// the order of rounds. A key has one job in a round.
//
//	due in this order    a1 a2 a3 a4 a5         b1
//	rounds               1  2  3  4  5          2    b1 became due as round 1 began
//	begin                a1             a2 b1 a3 a4 a5
//
// In a round, keys have the order in which they came. A key that comes joins the round after the one that is under way, so it waits for at
// most two jobs of each other key; while it has jobs, at most one job of each other key begins between two of its own. No key starves: those
// that come later join later rounds.
//
// A job keeps its round while it waits for hours and for limits, so the line of a limit goes by turns too. Lines are of several queues,
// whose rounds do not compare: there a round has the time at which its first job was due, and takes its place among others by that.
//
// What an engine finds when it is opened, or takes from others, has no key until its case is read. As many as readRound join a round
// together, and are read before jobs of the round begin.

// readRound is how many jobs whose key is not known are in one round.
const readRound = 64

// turn is the place of a job among those of other keys. The lock of the scheduler guards it.
type turn struct {
	key   string
	round int64 // from 1; 0 until the job is due
	since int64 // when the first job of the round was due
	in    *rotation
	of    *sharer // nil of a job whose key is not known
	left  bool    // it waits no longer
}

// rotation gives out the rounds of a queue, to jobs of one priority.
type rotation struct {
	id     int64   // of no other rotation
	round  int64   // of the job that began last
	opened []int64 // since when there are the rounds after that one
	keys   map[string]*sharer
	places int64 // how many keys have come
	unread int64 // how many jobs without a known key are in the round lastUnread
	last   int64 // the last round of jobs without a known key
}

// sharer is a key with jobs that wait.
type sharer struct {
	key     string
	place   int64 // in a round
	last    int64 // the round of its last job
	begun   int64 // the last round of which its job began
	waiting int
}

// compareTurns orders by the time of rounds, which is the order of rounds in one rotation, then by round and place. due is that of a job
// without a turn.
func compareTurns(a, b *entry) int {
	if a.turn == nil && b.turn == nil {
		return 0
	}
	x, y := a.standing(), b.standing()
	return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.rotation, y.rotation), cmp.Compare(x.round, y.round), cmp.Compare(x.place, y.place))
}

// standing is what a turn is compared by.
type standing struct{ since, rotation, round, place int64 }

func (n *entry) standing() standing {
	t := n.turn
	if t == nil || t.in == nil {
		return standing{since: n.due}
	}
	p := standing{since: t.since, rotation: t.in.id, round: t.round}
	if t.of != nil {
		p.place = t.of.place
	}
	return p
}

// join gives a job its round. due is when it was due.
func (r *rotation) join(t *turn, due int64) {
	k := r.keys[t.key]
	if k == nil {
		r.places++
		k = &sharer{key: t.key, place: r.places, last: r.round, begun: r.round}
		r.keys[t.key] = k
	}
	k.last = max(r.round, k.last) + 1
	k.waiting++
	t.of = k
	r.place(t, k.last, due)
}

// joinUnread gives a job its round whose key is not known.
func (r *rotation) joinUnread(t *turn, due int64) {
	if r.unread++; r.unread > readRound || r.last <= r.round {
		r.unread, r.last = 1, max(r.round, r.last)+1
	}
	r.place(t, r.last, due)
}

// place puts a turn into a round, which is one of those that there are or the one after them.
func (r *rotation) place(t *turn, round, due int64) {
	at := int(round - r.round - 1)
	for at >= len(r.opened) {
		if last := len(r.opened); last > 0 {
			due = max(due, r.opened[last-1]) // rounds have the order of their times
		}
		r.opened = append(r.opened, due)
	}
	t.in, t.round, t.since = r, round, r.opened[at]
}

// begins notes that the job of a turn begins. A job without a turn takes none.
func (t *turn) begins() {
	if t == nil || t.of == nil {
		return
	}
	t.of.begun = max(t.of.begun, t.round)
	if r := t.in; t.round > r.round {
		r.opened = r.opened[min(int(t.round-r.round), len(r.opened)):]
		r.round = t.round
	}
}

// leave notes that a job waits no longer. A key that has no other is forgotten: it would join the next round, as one that comes does.
func (t *turn) leave() {
	if t == nil || t.of == nil || t.left {
		return
	}
	t.left = true
	if t.of.waiting--; t.of.waiting == 0 {
		delete(t.in.keys, t.of.key)
	}
}

// rotationOf finds or makes the rotation of a queue for a priority. The lock is held.
func (s *scheduler) rotationOf(q *jobQueue, priority int32) *rotation {
	r := q.rotations[priority]
	if r == nil {
		if q.rotations == nil {
			q.rotations = make(map[int32]*rotation)
		}
		s.rotations++
		r = &rotation{id: s.rotations, keys: make(map[string]*sharer)}
		q.rotations[priority] = r
	}
	return r
}

// turnOf is the turn of a job whose round is not known yet; nil if its queue has no keys. The lock is held.
func (s *scheduler) turnOf(c *state.Case, j *state.Job, q *jobQueue) *turn {
	if !s.d.haveKeys || q == nil {
		return nil
	}
	if old := s.turns[j.ID]; old != nil && !old.left && j.State == state.JobWaiting { // that of a step, which goes on waiting
		t := *old
		old.left, s.turns[j.ID] = true, &t
		return &t
	}
	key, ok := s.d.fairKeyOf(c, j)
	if q.fair = q.fair || ok; !q.fair {
		return nil
	}
	return &turn{key: key}
}

// fairKeyOf asks the function of a job for the key of its input; false if it has none.
func (d *Dispatcher) fairKeyOf(c *state.Case, j *state.Job) (key string, ok bool) {
	f := d.conditionsOf(c, j)
	if f.fair == nil {
		return "", false
	}
	key, err := keyOf(f.fair, f.input)
	if err != nil {
		key = ""
	}
	return key, true
}

// takesTurn gives a due job its round, unless it has one or its queue has no keys. The lock is held.
func (s *scheduler) takesTurn(n *entry) {
	switch {
	case n.turn != nil && n.turn.in != nil:
		return
	case n.turn != nil:
		s.rotationOf(n.queue, n.priority).join(n.turn, n.due)
		s.turns[n.job] = n.turn
	case n.unread && n.queue.fair:
		n.turn = new(turn)
		s.rotationOf(n.queue, n.priority).joinUnread(n.turn, n.due)
	default:
		return
	}
	if s.d.o.Aging > 0 {
		n.urgent += n.turn.since - n.due // its age is that of its round
	}
}

// turnOfStep is the turn of a step of a job here that waits for a limit; nil if its queue has no keys. The lock is held.
func (s *scheduler) turnOfStep(job *entry, due int64) *turn {
	if job.turn == nil {
		return nil
	}
	t := &turn{key: job.turn.key}
	s.rotationOf(job.queue, job.priority).join(t, due)
	if old := s.turns[job.job]; old == nil || old.left {
		s.turns[job.job] = t // if the job is suspended, it keeps that
	}
	return t
}

// stepBegins notes that a step has what it waited for.
func (t *turn) stepBegins() {
	t.begins()
	t.leave()
}

// leavesTurn notes that a job begins, or waits no longer. The lock is held.
func (s *scheduler) leavesTurn(job workitem.JobID) {
	if t := s.turns[job]; t != nil {
		delete(s.turns, job)
		t.leave()
	}
}

// waitsHere reports whether a job of the key of another one waits in its queue here, or is left here by the command that is reported; if not, that one
// is. A queue without keys has no such jobs to keep. The lock is held.
func (s *scheduler) waitsHere(q *jobQueue, c *state.Case, j *state.Job) bool {
	if !s.d.haveKeys {
		return true
	}
	key, ok := s.d.fairKeyOf(c, j)
	if _, promised := q.promisedTo[key]; !ok || promised {
		return true
	}
	if r := q.rotations[shortPriority(j.Priority)]; r != nil && r.keys[key] != nil {
		return true
	}
	if q.promisedTo == nil {
		q.promisedTo = make(map[string]struct{})
	}
	q.promisedTo[key] = struct{}{}
	return false
}

// keys is how many keys have jobs that wait in a queue.
func (q *jobQueue) keys() (n int) {
	for _, r := range q.rotations {
		n += len(r.keys)
	}
	return n
}

// Turn is the place of a job that waits for its turn.
type Turn struct {
	Ahead int // how many jobs of the key go first
	Keys  int // how many keys there are that have jobs of the same priority
}

// InTurn finds the place of a job among those of other keys; false if it has none, or is not due.
func (d *Dispatcher) InTurn(job workitem.JobID) (Turn, bool) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[job]
	if t == nil {
		return Turn{}, false
	}
	before := max(t.of.begun, t.of.last-int64(t.of.waiting))
	return Turn{Ahead: int(max(0, t.round-before-1)), Keys: len(t.in.keys)}, true
}

// askKey is a function of a definition that makes a key of an input.
type askKey func(input json.RawMessage) (string, error)
