package scenario

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// player executes a net without work items, so that a witness knows what its commands print. Routing tasks run as soon
// as they are enabled, as in the engine. Where their order matters, the witness has replaced them by ordinary tasks.
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

// step executes one step of a witness. It returns an error if the step is not possible.
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

// into returns the conditions that a split marks: the named ones, or all.
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

// complete executes the region of a task, and produces its tokens. Whether members are enabled is determined while the
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

// settle executes routing tasks until none is enabled.
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

// marked returns the marking in the form of a scenario.
func (p *player) marked() []string {
	var lines []string
	for c, tokens := range p.marking {
		if tokens > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", p.n.ConditionName(net.ConditionID(c)), tokens))
		}
	}
	return or(lines, "(empty)")
}

// active returns the enabled and started tasks in the form of a scenario.
func (p *player) active() []string {
	var lines []string
	for t := range net.TaskID(p.n.NumTasks()) {
		if !p.over() && (p.busy.Has(int(t)) || p.n.Enabled(t, p.marking, p.busy).Enabled) {
			lines = append(lines, p.n.TaskName(t))
		}
	}
	return or(lines, "(none)")
}
