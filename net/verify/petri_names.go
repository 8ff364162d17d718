package verify

import (
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

func (l *petriLowering) place(p int32) Element {
	at := &l.p.Places[p]
	return Element{Name: at.Name, Pos: at.Pos}
}

func (l *petriLowering) busy(int32) bool { return false }

func (l *petriLowering) task(t int32) Element {
	at := &l.p.Transitions[t]
	return Element{Name: at.Name, Pos: at.Pos}
}

func (l *petriLowering) tasks() int { return len(l.p.Transitions) }

func (l *petriLowering) step(m *statespace.Move) Step {
	return Step{Task: l.p.Transitions[m.Task].Name}
}

func (l *petriLowering) weak() bool { return false }

func (l *petriLowering) words() words { return words{run: "run", task: "transition", plain: true} }
