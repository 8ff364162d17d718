package verify

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

func (l *netLowering) place(p int32) Element {
	if i := int(p) - l.n.NumConditions(); i >= 0 {
		return l.task(int32(l.busyTasks[i]))
	}
	return l.condition(net.ConditionID(p))
}

// condition is an explicit condition, or the flow that made an implicit one.
func (l *netLowering) condition(c net.ConditionID) Element {
	e := Element{Name: l.n.ConditionName(c)}
	if !l.n.Implicit(c) {
		e.Pos = l.n.Definition().Conditions[c].Pos
		return e
	}
	if l.flows == nil {
		l.flows = make(map[string]net.Pos, len(l.n.Definition().Flows))
		for _, f := range l.n.Definition().Flows {
			if name := net.ImplicitName(f.From, f.To); l.flows[name].IsZero() {
				l.flows[name] = f.Pos
			}
		}
	}
	e.Pos = l.flows[e.Name]
	return e
}

func (l *netLowering) busy(p int32) bool { return int(p) >= l.n.NumConditions() }

func (l *netLowering) task(t int32) Element {
	at := l.n.Task(net.TaskID(t))
	return Element{Name: at.Name, Pos: at.Pos}
}

func (l *netLowering) tasks() int { return l.n.NumTasks() }

func (l *netLowering) step(m *statespace.Move) Step {
	what := l.moves[m.Label]
	s := Step{Task: l.n.TaskName(what.task), Moment: what.moment, Routing: l.n.Task(what.task).Kind == net.Routing}
	if what.input >= 0 {
		s.Input = l.n.ConditionName(l.n.Inputs(what.task)[what.input])
	}
	if what.output >= 0 {
		s.Outputs = []string{target(l.n, l.n.Outputs(what.task)[what.output])}
	}
	for i, c := range l.n.Outputs(what.task) {
		if i < 64 && what.chosen>>i&1 != 0 {
			s.Outputs = append(s.Outputs, target(l.n, c))
		}
	}
	return s
}

// target returns what the author wrote as the target of a flow to the condition: the condition, or the task behind an
// implicit one.
func target(n *net.Net, c net.ConditionID) string {
	if n.Implicit(c) {
		return n.TaskName(n.Consumers(c)[0])
	}
	return n.ConditionName(c)
}

// weak reports whether dead tasks leave the net weakly sound: a task behind a region or an or-join may be intended only for
// another context of a shared net.
func (l *netLowering) weak() bool { return l.regions || l.orJoins }

func (l *netLowering) tokens(_ int32, counted uint8, _ []int32, _ *statespace.System) int {
	return int(counted)
}

func (l *netLowering) words() words { return words{run: "case", task: "task"} }
