package net

func (l *netLowering) place(p int32) Element {
	if i := int(p) - len(l.n.conditions); i >= 0 {
		return l.task(int32(l.busyTasks[i]))
	}
	return l.condition(ConditionID(p))
}

// condition is an explicit condition, or the flow that made an implicit one.
func (l *netLowering) condition(c ConditionID) Element {
	e := Element{Name: l.n.ConditionName(c)}
	if !l.n.Implicit(c) {
		e.Pos = l.n.def.Conditions[c].Pos
		return e
	}
	if l.flows == nil {
		l.flows = make(map[string]Pos, len(l.n.def.Flows))
		for _, f := range l.n.def.Flows {
			if name := ImplicitName(f.From, f.To); l.flows[name].IsZero() {
				l.flows[name] = f.Pos
			}
		}
	}
	e.Pos = l.flows[e.Name]
	return e
}

func (l *netLowering) busy(p int32) bool { return int(p) >= len(l.n.conditions) }

func (l *netLowering) task(t int32) Element {
	at := l.n.Task(TaskID(t))
	return Element{Name: at.Name, Pos: at.Pos}
}

func (l *netLowering) tasks() int { return len(l.n.tasks) }

func (l *netLowering) step(m *gameMove) Step {
	what := l.moves[m.label]
	at := &l.n.tasks[what.task]
	s := Step{Task: l.n.TaskName(what.task), Moment: what.moment, Routing: l.n.def.Tasks[what.task].Kind == Routing}
	if what.input >= 0 {
		s.Input = l.n.ConditionName(at.inputs[what.input])
	}
	if what.output >= 0 {
		s.Outputs = []string{l.target(at.outputs[what.output])}
	}
	for i, c := range at.outputs {
		if i < 64 && what.chosen>>i&1 != 0 {
			s.Outputs = append(s.Outputs, l.target(c))
		}
	}
	return s
}

// target is what a flow to the condition was written as: the condition, or the task behind an implicit one.
func (l *netLowering) target(c ConditionID) string {
	if l.n.Implicit(c) {
		return l.n.TaskName(l.n.Consumers(c)[0])
	}
	return l.n.ConditionName(c)
}

// weak: a region or an or-join may leave a task without a chance that was never meant to have one in this context.
func (l *netLowering) weak() bool { return l.regions || l.orJoins }

func (l *netLowering) words() words { return words{run: "case", task: "task"} }
