package net

import (
	"fmt"
	"slices"
	"strings"
)

// report makes the report of a judgement. Warnings are added by the caller.
func report(l named, name string, j *judgement) Report {
	f := &findings{named: l, judgement: j}
	rep := Report{Net: name, States: j.states, Exhausted: j.limit, Findings: f.all()}
	dead := !slices.ContainsFunc(rep.Findings, func(x Finding) bool { return x.Code != DeadTask })
	switch {
	case j.sound:
		rep.Verdict = Sound
	case len(rep.Findings) > 0 && dead && l.weak():
		rep.Verdict = WeaklySound
	case len(rep.Findings) > 0:
		rep.Verdict = Unsound
	case j.x != nil && j.limit == NoLimit && j.x.exact():
		rep.Verdict = Sound
	}
	return rep
}

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

func (l *petriLowering) step(m *gameMove) Step { return Step{Task: l.p.Transitions[m.task].Name} }

func (l *petriLowering) weak() bool { return false }

func (l *petriLowering) words() words { return words{run: "run", task: "transition", plain: true} }

// sentence joins parts with commas and a last "and".
func sentence(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// listed names elements in a sentence.
func listed(elements []Element) string {
	parts := make([]string, 0, maxListed+1)
	for i, e := range elements {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("%d more", len(elements)-maxListed))
			break
		}
		parts = append(parts, fmt.Sprintf("%q", e.Name))
	}
	return sentence(parts)
}
