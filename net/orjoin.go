package net

import (
	"sync"
	"sync/atomic"
)

// An or-join with a token in some of its inputs, and none in the others, starts unless another input can still get a
// token while the marked ones keep theirs. Whether that can happen is a question about all futures of the case. The
// following steps answer it. Each costs more than the one before, and is tried only if that gave no answer:
//
//	walk     a single token, or a busy task, has a path to an empty input that needs no other token: wait
//	reach    no token and no busy task has any path to an empty input: start
//	project  no empty input can be marked even if tokens were never consumed: start
//	plan     execute the run that project suggests: if it marks an empty input, wait
//	forward  explore the futures, without what is irrelevant to the question, within a budget
//	backward explore the predecessors of "the marked inputs and one more", within a budget
//
// If both budgets are exhausted, the join waits and is reported as undecided.
//
// Tasks start and complete in a future as they do in a case, whatever their predicates, with these rules:
//
//   - The join itself does not start.
//   - Only the reached marking counts: if a region empties a marked input on the way, and it is marked again, it has
//     kept its token. This is YAWL's definition: the marked inputs and one more can be covered in the reset net.
//   - A busy task does not start again before it completes or is canceled.
//   - An xor-join may take any one of its tokens. Other or-joins are treated as xor-joins: so a join waits for a token
//     that stands before another or-join.
//   - A cancellation region empties its conditions and cancels its busy tasks. An idle member that is enabled loses the
//     tokens in its private inputs: an and-join if all its inputs are marked, any other task if one is. An or-join of
//     several inputs is spared: it may or may not be enabled at that moment, and sparing it can only make the join wait
//     until the region's owner has completed. The same goes for the join itself as a member.
//
// So fewer tokens never make more possible, except those of an and-join of several inputs that a region names, see
// [growth]. The slice and the searches rely on that. A task being busy is worth at least as much as the tokens that it
// took: idle, it could only take them and be busy.

// orJoin is what can be computed for an or-join from the net alone. It is computed when the join is first decided: for
// a large net with many or-joins it is expensive, and verification, or a short case, never decides most of them.
type orJoin struct {
	slice
	task  TaskID
	held  int       // approximate size in bytes; guarded by the net's lock
	ways  []way     // by input; nil if there would be too many
	ready sync.Once // for what only the searches need; most joins never need one
}

// orJoins is a cache of what is computed for the or-joins of a net. A large net with thousands of or-joins has
// thousands of large slices, so the cache is bounded, and evicted slices are computed again when they are needed.
type orJoins struct {
	known []atomic.Pointer[orJoin] // by task
	mu    sync.Mutex
	kept  []TaskID // oldest first
	bytes int      // approximate size of what is kept
}

// maxKept bounds the size of the cache in bytes.
const maxKept = 32 << 20

// isOrJoin reports whether a task is an or-join with several inputs. With one there is nothing else to wait for.
func (n *Net) isOrJoin(t TaskID) bool { return n.def.Tasks[t].Join == Or && len(n.tasks[t].inputs) > 1 }

// orJoin returns what is computed for an or-join with several inputs. The value stays valid after its eviction.
func (n *Net) orJoin(t TaskID) *orJoin {
	if j := n.joins.known[t].Load(); j != nil {
		return j
	}
	l := &n.joins
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.known[t].Load()
	if j == nil { // else another goroutine has stored it meanwhile
		j = &orJoin{slice: newSlice(n, t), task: t}
		if j.inputs*j.cells() <= maxWays {
			j.ways = make([]way, j.inputs)
		}
		l.known[t].Store(j)
		l.kept = append(l.kept, t)
		l.grow(j, j.bytes())
	}
	return j
}

// grow records that an or-join uses more memory, and evicts others.
func (l *orJoins) grow(j *orJoin, bytes int) {
	if l.known[j.task].Load() != j {
		return
	}
	j.held += bytes
	l.bytes += bytes
	for l.bytes > maxKept && len(l.kept) > 1 {
		old := l.kept[0]
		l.kept = l.kept[1:]
		l.bytes -= l.known[old].Swap(nil).held
	}
}

// prepare computes what only the searches need.
func (j *orJoin) prepare(n *Net) {
	j.ready.Do(func() {
		j.addMoves(n)
		n.joins.mu.Lock()
		defer n.joins.mu.Unlock()
		n.joins.grow(j, j.moreBytes())
	})
}

// OrJoinScope lists the other tasks and the conditions whose state the decision of an or-join with several inputs
// depends on: if none of these changes, [Net.Enabled] gives the same answer. The lists must not be changed.
func (n *Net) OrJoinScope(t TaskID) (tasks []TaskID, conditions []ConditionID) {
	j := n.orJoin(t)
	return j.tasks, j.places
}

// takesOne reports whether a token in any one input enables a task; an or-join is treated as an xor-join.
func takesOne(n *Net, t TaskID) bool {
	return n.def.Tasks[t].Join != And || len(n.tasks[t].inputs) == 1
}

// searches reuses the memory of finished searches, so that decisions do not allocate.
var searches = sync.Pool{New: func() any { return new(search) }}

// decideOrJoin decides an or-join with tokens in some of its inputs and none in others, and returns the cost of the
// decision.
func (n *Net) decideOrJoin(t TaskID, m Marking, busy Bits) (Decision, int) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	fresh := n.joins.known[t].Load() == nil
	j := n.orJoin(t)
	if s.load(j, m, busy); fresh {
		s.work += j.cells() // computing it is part of the cost
	}
	switch s.arrives(n, m) {
	case yes:
		return Decision{}, s.work
	case no:
		return Decision{Enabled: true}, s.work
	}
	return Decision{Undecided: true}, s.work
}

// answer is the answer of one step to the question whether an empty input can still get a token.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// arrives tries the steps in order.
func (s *search) arrives(n *Net, m Marking) answer {
	if a := s.look(n); a != unknown {
		return a
	}
	if a := s.project(n); a != unknown {
		return a
	}
	s.begin(m)
	if a := s.plan(); a != unknown {
		return a
	}
	if a := s.forward(true); a != unknown {
		return a
	}
	return s.backward()
}
