package net

// netWatcher notes, while a net is searched, what the warnings are about.
type netWatcher struct {
	l     *netLowering
	joins []TaskID         // or-joins
	seen  map[TaskID]marks // by or-join
	xors  []TaskID         // xor-joins with several inputs, which their own region does not empty
	twice Bits             // those that held two tokens
	owned Bits             // tasks with a region
	fired Bits             // those of them that completed
	hit   map[TaskID]Bits  // by owner: its member tasks, then its member conditions, that lost something
	after []uint8          // scratch
	whole bool             // the search saw everything
}

// marks says how many inputs of an or-join were marked when it started.
type marks uint8

const (
	oneMarked marks = 1 << iota
	someMarked
	allMarked
)

func newNetWatcher(l *netLowering) *netWatcher {
	w := &netWatcher{l: l, seen: map[TaskID]marks{}, hit: map[TaskID]Bits{}}
	w.twice, w.owned, w.fired = NewBits(l.n.NumTasks()), NewBits(l.n.NumTasks()), NewBits(l.n.NumTasks())
	for i := range l.n.NumTasks() {
		t := TaskID(i)
		tasks, conditions := l.n.Region(t)
		switch {
		case l.orJoin(t):
			w.joins = append(w.joins, t)
		case l.n.Task(t).Join == Xor && len(l.n.Inputs(t)) > 1 && !l.takesAll(t):
			w.xors = append(w.xors, t)
		}
		if n := len(tasks) + len(conditions); n > 0 {
			w.owned.Add(i)
			w.hit[t] = NewBits(n)
		}
	}
	return w
}

func (w *netWatcher) state(state []uint8) {
	for _, t := range w.xors {
		tokens := 0
		for _, c := range w.l.n.Inputs(t) {
			tokens += int(state[c])
		}
		if tokens > 1 {
			w.twice.Add(int(t))
		}
	}
}

func (w *netWatcher) move(m *gameMove, before []uint8) {
	if m.or >= 0 {
		w.join(TaskID(m.or), before)
	}
	if t := TaskID(m.task); w.owned.Has(int(t)) && w.l.moves[m.label].moment != Starts {
		w.region(t, m, before)
	}
}

func (w *netWatcher) join(t TaskID, before []uint8) {
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

// region notes which members are there when a region fires: when the owner has taken its tokens, and puts none out yet.
func (w *netWatcher) region(t TaskID, m *gameMove, before []uint8) {
	w.fired.Add(int(t))
	w.after = append(w.after[:0], before...)
	for _, a := range m.in {
		if w.after[a.place] != unbounded && w.after[a.place] >= a.n {
			w.after[a.place] -= a.n
		}
	}
	tasks, conditions := w.l.n.Region(t)
	for i, u := range tasks {
		busy := w.l.busyAt[u]
		if u != t && (busy >= 0 && w.after[busy] > 0 || w.l.memberEnabled(&gameSpare{task: u, owner: t}, w.after)) {
			w.hit[t].Add(i)
		}
	}
	for i, c := range conditions {
		if w.after[c] > 0 {
			w.hit[t].Add(len(tasks) + i)
		}
	}
}
