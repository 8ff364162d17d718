package scenario

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// player plays the token game of a net alone, without work items: what a witness needs to say what its commands will
// print. Routing tasks run by themselves as soon as they are enabled; that is what the engine does, and where their
// order would matter, the writer of a witness has made ordinary tasks of them.
type player struct {
	n       *net.Net
	marking net.Marking
	busy    net.Bits
}

func newPlayer(n *net.Net) *player {
	p := &player{n: n, marking: n.InitialMarking(), busy: net.NewBits(n.NumTasks())}
	p.settle()
	return p
}

func (p *player) over() bool { return p.marking[p.n.End()] > 0 }

// step does one step of a witness. The error says that it cannot be done.
func (p *player) step(s verify.Step) error {
	t, known := p.n.TaskByName(s.Task)
	switch {
	case !known:
		return fmt.Errorf("there is no task %q", s.Task)
	case p.over():
		return fmt.Errorf("task %q cannot start: the case is over", s.Task)
	}
	if s.Moment != verify.Completes {
		if !p.n.Enabled(t, p.marking, p.busy).Enabled {
			return fmt.Errorf("task %q is not enabled", s.Task)
		}
		p.start(t)
	}
	if s.Moment == verify.Starts {
		return nil
	}
	if !p.busy.Has(int(t)) {
		return fmt.Errorf("task %q has not started", s.Task)
	}
	into, err := p.into(t, s.Outputs)
	if err != nil {
		return err
	}
	p.complete(t, into)
	p.settle()
	return nil
}

// into finds the conditions that a split marks: those named, or all.
func (p *player) into(t net.TaskID, names []string) ([]net.ConditionID, error) {
	if len(names) == 0 {
		return p.n.Outputs(t), nil
	}
	var into []net.ConditionID
	for _, name := range names {
		c, ok := p.n.Target(t, name)
		if !ok {
			return nil, fmt.Errorf("task %q has no flow to %q", p.n.TaskName(t), name)
		}
		into = append(into, c)
	}
	return into, nil
}

func (p *player) start(t net.TaskID) {
	for _, c := range p.n.Consumes(nil, t, p.marking) {
		p.marking[c]--
	}
	p.busy.Add(int(t))
}

// complete fires the region of a task, and puts its tokens out. Members are asked whether they are enabled while the
// task is still busy, and before any of them loses a token.
func (p *player) complete(t net.TaskID, into []net.ConditionID) {
	tasks, conditions := p.n.Region(t)
	var lost []net.ConditionID
	for _, u := range tasks {
		switch {
		case u == t:
		case p.busy.Has(int(u)):
			p.busy.Remove(int(u))
		case p.n.Enabled(u, p.marking, p.busy).Enabled:
			lost = append(lost, p.n.PrivateInputs(u)...)
		}
	}
	for _, c := range append(lost, conditions...) {
		p.marking[c] = 0
	}
	p.busy.Remove(int(t))
	for _, c := range into {
		p.marking[c]++
	}
}

// settle runs routing tasks until none is enabled.
func (p *player) settle() {
	for again := true; again; {
		again = false
		for t := range net.TaskID(p.n.NumTasks()) {
			if p.n.Task(t).Kind == net.Routing && !p.over() && p.n.Enabled(t, p.marking, p.busy).Enabled {
				p.start(t)
				p.complete(t, p.n.Outputs(t))
				again = true
			}
		}
	}
}

// marked lists the marking as a scenario shows it.
func (p *player) marked() []string {
	var lines []string
	for c, tokens := range p.marking {
		if tokens > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", p.n.ConditionName(net.ConditionID(c)), tokens))
		}
	}
	return or(lines, "(empty)")
}

// active lists the tasks that are enabled or started, as a scenario shows them.
func (p *player) active() []string {
	var lines []string
	for t := range net.TaskID(p.n.NumTasks()) {
		if !p.over() && (p.busy.Has(int(t)) || p.n.Enabled(t, p.marking, p.busy).Enabled) {
			lines = append(lines, p.n.TaskName(t))
		}
	}
	return or(lines, "(none)")
}
