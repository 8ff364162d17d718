package dispatch

import (
	"cmp"
	"encoding/json"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Fair scheduling is a round robin between the fairness keys of a queue: a job is assigned to a round when it becomes
// due, with at most one job of each key in a round, and jobs of one priority start in the order of their rounds.
//
//	due in this order    a1 a2 a3 a4 a5         b1
//	rounds               1  2  3  4  5          2    b1 became due as round 1 began
//	begin                a1             a2 b1 a3 a4 a5
//
// Within a round, keys have the order in which they arrived. A new key joins the round after the current one, so its
// first job waits for at most two jobs of each other key; after that, at most one job of each other key starts between
// two of its own. No key starves, since keys that arrive later join later rounds.
//
// A job keeps its round while it waits for its hours or for limits, so limits are acquired fairly as well. The line of
// a limit can contain jobs of several queues, whose rounds are not comparable: there, rounds are ordered by the time at
// which their first job became due.
//
// The key of jobs that an engine finds when it is opened, or takes from other engines, is unknown until their case is
// read. Up to readRound such jobs share a round, and are read before jobs of the round start.

// readRound is the largest number of jobs with unknown keys in one round.
const readRound = 64

// turn is the position of a job in the round robin. The scheduler's lock guards it.
type turn struct {
	key      string
	round    int64 // from 1; 0 until the job is due
	since    int64 // when the first job of the round was due
	rotation *rotation
	sharer   *sharer // nil if the key is unknown
	gone     bool    // it no longer waits
}

// rotation is the round robin of the jobs of one priority in a queue.
type rotation struct {
	id     int64   // unique among rotations
	round  int64   // the current round: that of the job that started last
	opened []int64 // for each later round, when its first job became due
	keys   map[string]*sharer
	places int64 // the number of keys that have arrived
	unread int64 // the number of jobs with unknown keys in the round lastUnread
	last   int64 // the last round of jobs with unknown keys
}

// sharer is a key with waiting jobs.
type sharer struct {
	key     string
	place   int64 // in a round
	last    int64 // the round of its last job
	begun   int64 // the last round whose job of this key has started
	waiting int
}

// compareTurns orders turns by the time of their round, which is the order of rounds within a rotation, then by round
// and place. Jobs without a turn are ordered by due.
func compareTurns(a, b *entry) int {
	if a.turn == nil && b.turn == nil {
		return 0
	}
	x, y := a.turnOrder(), b.turnOrder()
	return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.rotation, y.rotation), cmp.Compare(x.round, y.round), cmp.Compare(x.place, y.place))
}

// turnOrder returns the sort key of a turn.
type turnOrder struct{ since, rotation, round, place int64 }

func (n *entry) turnOrder() turnOrder {
	t := n.turn
	if t == nil || t.rotation == nil {
		return turnOrder{since: n.due}
	}
	p := turnOrder{since: t.since, rotation: t.rotation.id, round: t.round}
	if t.sharer != nil {
		p.place = t.sharer.place
	}
	return p
}

// join assigns a job to a round. due is when it became due.
func (r *rotation) join(t *turn, due int64) {
	k := r.keys[t.key]
	if k == nil {
		r.places++
		k = &sharer{key: t.key, place: r.places, last: r.round, begun: r.round}
		r.keys[t.key] = k
	}
	k.last = max(r.round, k.last) + 1
	k.waiting++
	t.sharer = k
	r.place(t, k.last, due)
}

// joinUnread assigns a job with an unknown key to a round.
func (r *rotation) joinUnread(t *turn, due int64) {
	if r.unread++; r.unread > readRound || r.last <= r.round {
		r.unread, r.last = 1, max(r.round, r.last)+1
	}
	r.place(t, r.last, due)
}

// place puts a turn into a round, which is an existing one or the next one.
func (r *rotation) place(t *turn, round, due int64) {
	at := int(round - r.round - 1)
	for at >= len(r.opened) {
		if last := len(r.opened); last > 0 {
			due = max(due, r.opened[last-1]) // rounds have the order of their times
		}
		r.opened = append(r.opened, due)
	}
	t.rotation, t.round, t.since = r, round, r.opened[at]
}

// recordStart records that the job of a turn starts. It does nothing without a turn.
func (t *turn) recordStart() {
	if t == nil || t.sharer == nil {
		return
	}
	t.sharer.begun = max(t.sharer.begun, t.round)
	if r := t.rotation; t.round > r.round {
		r.opened = r.opened[min(int(t.round-r.round), len(r.opened)):]
		r.round = t.round
	}
}

// leave records that a job no longer waits. A key without further jobs is dropped: it would join the next round like a
// new key.
func (t *turn) leave() {
	if t == nil || t.sharer == nil || t.gone {
		return
	}
	t.gone = true
	if t.sharer.waiting--; t.sharer.waiting == 0 {
		delete(t.rotation.keys, t.sharer.key)
	}
}

// recordStepStart records that a step has acquired its limits.
func (t *turn) recordStepStart() {
	t.recordStart()
	t.leave()
}

// fairness assigns turns to the jobs of queues with fairness keys. The lock of the scheduler guards it.
type fairness struct {
	keyOf     func(*state.Case, *state.Job) (key string, ok bool) // the key of a job; nil if no function has keys
	ages      bool                                                // jobs become more urgent as they wait
	rotations int64                                               // the number of rotations so far, for their ids
	turns     map[workitem.JobID]*turn                            // of due, waiting jobs
}

// hasKeys reports whether some functions have fairness keys.
func (f *fairness) hasKeys() bool { return f.keyOf != nil }

// rotationOf returns the rotation of a queue for a priority, and creates it if necessary.
func (f *fairness) rotationOf(q *jobQueue, priority int32) *rotation {
	r := q.rotations[priority]
	if r == nil {
		if q.rotations == nil {
			q.rotations = make(map[int32]*rotation)
		}
		f.rotations++
		r = &rotation{id: f.rotations, keys: make(map[string]*sharer)}
		q.rotations[priority] = r
	}
	return r
}

// turnOf returns a turn for a job without a round; nil if its queue has no keys.
func (f *fairness) turnOf(c *state.Case, j *state.Job, q *jobQueue) *turn {
	if !f.hasKeys() || q == nil {
		return nil
	}
	if old := f.turns[j.ID]; old != nil && !old.gone && j.State == state.JobWaiting { // that of a step, which continues to wait
		t := *old
		old.gone, f.turns[j.ID] = true, &t
		return &t
	}
	key, ok := f.keyOf(c, j)
	if q.fair = q.fair || ok; !q.fair {
		return nil
	}
	return &turn{key: key}
}

// assign assigns a due job to a round, unless it has one or its queue has no keys.
func (f *fairness) assign(n *entry) {
	switch {
	case n.turn != nil && n.turn.rotation != nil:
		return
	case n.turn != nil:
		f.rotationOf(n.queue, n.priority).join(n.turn, n.due)
		f.turns[n.job] = n.turn
	case n.unread && n.queue.fair:
		n.turn = new(turn)
		f.rotationOf(n.queue, n.priority).joinUnread(n.turn, n.due)
	default:
		return
	}
	if f.ages {
		n.urgent += n.turn.since - n.due // its age is that of its round
	}
}

// turnOfStep returns the turn of a step that waits for a limit; nil if the queue of its job has no keys.
func (f *fairness) turnOfStep(job *entry, due int64) *turn {
	if job.turn == nil {
		return nil
	}
	t := &turn{key: job.turn.key}
	f.rotationOf(job.queue, job.priority).join(t, due)
	if old := f.turns[job.job]; old == nil || old.gone {
		f.turns[job.job] = t // if the job is suspended, it keeps that
	}
	return t
}

// leave records that a job starts, or no longer waits.
func (f *fairness) leave(job workitem.JobID) {
	if t := f.turns[job]; t != nil {
		delete(f.turns, job)
		t.leave()
	}
}

// leaveIf is leave for a job that still has the given turn: it may have got another one, see readNeeds.
func (f *fairness) leaveIf(job workitem.JobID, has *turn) {
	if f.turns[job] == has {
		f.leave(job)
	}
}

// leaveRound removes a job of a paused key from its round: it joins a later one when the key is resumed. Otherwise all
// jobs of the key would start before those of the others, whose rounds have gone on.
func (f *fairness) leaveRound(n *entry) {
	t := n.turn
	if t == nil || t.rotation == nil {
		return
	}
	if f.ages {
		n.urgent -= t.since - n.due // see assign
	}
	f.leave(n.job)
	n.turn = &turn{key: t.key}
}

// waitsHere reports whether a job of the key of another one waits in its queue here, or is left here by the command
// that is reported; if not, that one is. A queue without keys has no such jobs to keep.
func (f *fairness) waitsHere(q *jobQueue, c *state.Case, j *state.Job) bool {
	if !f.hasKeys() {
		return true
	}
	key, ok := f.keyOf(c, j)
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

// fairKeyOf computes the fairness key of a job from its input; false if its function has none.
func (d *Dispatcher) fairKeyOf(c *state.Case, j *state.Job) (key string, ok bool) {
	f := d.conditionsOf(c, j)
	if f.fair == nil {
		return "", false
	}
	key, err := keyOf(f.fair, f.input)
	if err != nil {
		d.noteKey(c, j, "fair scheduling", "its job counts as one without a key", err)
		key = ""
	}
	return key, true
}

// keys returns the number of keys with waiting jobs in a queue.
func (q *jobQueue) keys() (n int) {
	for _, r := range q.rotations {
		n += len(r.keys)
	}
	return n
}

// keyFunc is a function of a definition that computes a key from an input.
type keyFunc func(input json.RawMessage) (string, error)
