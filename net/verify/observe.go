package verify

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// observer records during a search what the warnings need.
type observer struct {
	l     *netLowering
	joins []net.TaskID                     // or-joins
	seen  map[net.TaskID]marks             // by or-join
	xors  []net.TaskID                     // xor-joins with several inputs that their own region does not empty
	twice net.Bits                         // those of xors that had two tokens
	past  map[net.TaskID][]net.ConditionID // by routing task of xors: the inputs of the tasks with work behind it
	runs  map[net.TaskID]net.TaskID        // by routing task of xors: the task with work that gets two tokens of it
	owned net.Bits                         // tasks with a region
	fired net.Bits                         // those of owned that completed
	hit   map[net.TaskID]net.Bits          // by owner: its member tasks, then its member conditions, that lost something
	after []uint8                          // scratch
	whole bool                             // the search was complete
}

// marks records how many inputs of an or-join were marked when it started.
type marks uint8

const (
	oneMarked marks = 1 << iota
	someMarked
	allMarked
)

func newObserver(l *netLowering) *observer {
	w := &observer{l: l, seen: map[net.TaskID]marks{}, hit: map[net.TaskID]net.Bits{},
		past: map[net.TaskID][]net.ConditionID{}, runs: map[net.TaskID]net.TaskID{}}
	w.twice, w.owned, w.fired = net.NewBits(l.n.NumTasks()), net.NewBits(l.n.NumTasks()), net.NewBits(l.n.NumTasks())
	for i := range l.n.NumTasks() {
		t := net.TaskID(i)
		tasks, conditions := l.n.Region(t)
		switch {
		case l.orJoin(t):
			w.joins = append(w.joins, t)
		case l.n.Task(t).Join == net.Xor && len(l.n.Inputs(t)) > 1 && !l.takesAll(t):
			w.xors = append(w.xors, t)
			if l.n.Task(t).Kind == net.Routing {
				w.past[t] = w.behind(t, nil)
			}
		}
		if n := len(tasks) + len(conditions); n > 0 {
			w.owned.Add(i)
			w.hit[t] = net.NewBits(n)
		}
	}
	return w
}

func (w *observer) State(state []uint8) {
	for _, t := range w.xors {
		tokens := 0
		for _, c := range w.l.n.Inputs(t) {
			tokens += int(state[c])
		}
		if tokens > 1 {
			w.twice.Add(int(t))
		}
		for _, c := range w.past[t] {
			if state[c] > 1 {
				w.runs[t] = w.l.n.Consumers(c)[0]
			}
		}
	}
}

// behind appends the conditions that get tokens only from a routing task, or from routing tasks that only it leads to,
// and that one task with work takes them from.
func (w *observer) behind(t net.TaskID, list []net.ConditionID) []net.ConditionID {
	for _, c := range w.l.n.Outputs(t) {
		to := w.l.n.Consumers(c)
		if len(to) != 1 || len(w.l.n.Producers(c)) != 1 || len(w.l.n.Inputs(to[0])) != 1 || len(list) >= maxPast {
			continue
		}
		if w.l.n.Task(to[0]).Kind == net.Routing {
			list = w.behind(to[0], list)
		} else {
			list = append(list, c)
		}
	}
	return list
}

// maxPast bounds what is looked at behind a routing task.
const maxPast = 16

func (w *observer) Move(m *statespace.Move, before []uint8) {
	if m.OrJoin >= 0 {
		w.join(net.TaskID(m.OrJoin), before)
	}
	if t := net.TaskID(m.Task); w.owned.Has(int(t)) && w.l.moves[m.Label].moment != Starts {
		w.region(t, m, before)
	}
}

func (w *observer) join(t net.TaskID, before []uint8) {
	inputs := w.l.n.Inputs(t)
	marked := 0
	for _, c := range inputs {
		if before[c] > 0 {
			marked++
		}
	}
	switch marked {
	case len(inputs):
		w.seen[t] |= allMarked
	case 1:
		w.seen[t] |= oneMarked
	default:
		w.seen[t] |= someMarked
	}
}

// region records which members are present when a region fires: after the owner has taken its tokens, and before it
// produces any.
func (w *observer) region(t net.TaskID, m *statespace.Move, before []uint8) {
	w.fired.Add(int(t))
	w.after = append(w.after[:0], before...)
	for _, a := range m.In {
		if w.after[a.Place] != statespace.Omega && w.after[a.Place] >= a.Weight {
			w.after[a.Place] -= a.Weight
		}
	}
	tasks, conditions := w.l.n.Region(t)
	for i, u := range tasks {
		busy := w.l.busyAt[u]
		if u != t && (busy >= 0 && w.after[busy] > 0 || w.l.MemberEnabled(&statespace.MemberReset{Task: u, Owner: t}, w.after)) {
			w.hit[t].Add(i)
		}
	}
	for i, c := range conditions {
		if w.after[c] > 0 {
			w.hit[t].Add(len(tasks) + i)
		}
	}
}
