// Package net implements YAWL-style Petri nets: their definition, and the rules that decide what can happen next.
//
// A net has conditions (places that hold tokens) and tasks (transitions). The join of a task decides which tokens it waits
// for, its split where tokens go when it completes:
//
//	and-join   a token in every input           and-split  a token into every output
//	xor-join   a token in some input, takes one xor-split  a token into exactly one output
//	or-join    a token in some input, and no    or-split   a token into one output or more
//	           further input can still get one
//
// An enabled task has not taken its tokens: another task that shares an input may take them first (a deferred
// choice), and the task is then withdrawn. A task that starts takes its tokens, and is busy until it completes; a
// busy task is never enabled again before that. A task may have a cancellation region: conditions that it empties and
// tasks that it cancels when it completes.
//
// A [Definition] describes a net with names. [Definition.Check] lists all its problems, and [Compile] converts it to a [Net]
// with small integers, which all other functions use:
//
//	n, err := net.Compile(definition)
//	enabled := n.Enabled(task, marking, busy).Enabled // whether the task can start
//	why := n.Explain(task, marking, busy)             // what it still waits for
//
// [DOT] and [Mermaid] draw a net. A [Net] has no state: a [Marking] and the set of busy tasks are arguments, so every
// result is a function of the arguments. The package does no I/O, and does not know work items and cases. Package net/verify
// decides whether a net is sound.
package net

import (
	"slices"
	"sync/atomic"
)

// TaskID is the number of a task: its place in the definition.
type TaskID int32

// ConditionID is the number of a condition: explicit ones in the order of their declaration, then implicit ones in the
// order of their flows.
type ConditionID int32

// Net is a compiled, well-formed definition. It is immutable and safe for concurrent use.
type Net struct {
	def        *Definition
	conditions []condition
	tasks      []task
	start, end ConditionID
	taskIndex  map[string]TaskID
	condIndex  map[string]ConditionID
	joins      orJoins
	watches    watches
}

type condition struct {
	name      string
	implicit  bool
	consumers []TaskID // in flow order
	producers []TaskID
	namedBy   []TaskID // tasks with it in their regions
}

type task struct {
	inputs      []ConditionID // in flow order
	outputs     []ConditionID // in flow order
	region      []ConditionID // conditions that it empties, in the order written
	regionTasks []TaskID      // tasks that it cancels, in the order written
	private     []ConditionID // inputs that feed no other task
	namedBy     []TaskID      // tasks with it in their regions
}

// Compile checks a definition and converts it to a net. The error is an *Error with every problem, except a
// RoutingCycle: such a net can be compiled, and its user decides whether to accept it. The definition must not be
// changed afterwards.
func Compile(d *Definition) (*Net, error) {
	problems := slices.DeleteFunc(d.Check(), func(p Problem) bool { return p.Code == RoutingCycle })
	if len(problems) > 0 {
		return nil, &Error{Workflow: d.Name, Problems: problems}
	}
	n := &Net{
		def:       d,
		tasks:     make([]task, len(d.Tasks)),
		taskIndex: make(map[string]TaskID, len(d.Tasks)),
		condIndex: make(map[string]ConditionID, len(d.Conditions)),
	}
	for _, c := range d.Conditions {
		id := n.addCondition(c.Name, false)
		switch c.Role {
		case Start:
			n.start = id
		case End:
			n.end = id
		}
	}
	for i, t := range d.Tasks {
		n.taskIndex[t.Name] = TaskID(i)
	}
	for _, f := range d.Flows {
		n.addFlow(f)
	}
	for i := range n.tasks {
		n.addRegion(TaskID(i), d.Tasks[i].Cancels)
		for _, c := range n.tasks[i].inputs {
			if len(n.conditions[c].consumers) == 1 {
				n.tasks[i].private = append(n.tasks[i].private, c)
			}
		}
	}
	n.joins.known = make([]atomic.Pointer[orJoin], len(n.tasks))
	return n, nil
}

// MustCompile is like [Compile] but panics if the definition has a problem. It is for nets written in source code.
func MustCompile(d *Definition) *Net {
	n, err := Compile(d)
	if err != nil {
		panic(err)
	}
	return n
}

func (n *Net) addCondition(name string, implicit bool) ConditionID {
	id := ConditionID(len(n.conditions))
	n.conditions = append(n.conditions, condition{name: name, implicit: implicit})
	n.condIndex[name] = id
	return id
}

// addFlow joins two elements; a flow that was already there changes nothing.
func (n *Net) addFlow(f Flow) {
	from, fromTask := n.taskIndex[f.From]
	to, toTask := n.taskIndex[f.To]
	switch {
	case fromTask && toTask:
		name := ImplicitName(f.From, f.To)
		if _, ok := n.condIndex[name]; ok {
			return
		}
		c := n.addCondition(name, true)
		n.link(from, c)
		n.feed(c, to)
	case fromTask:
		n.link(from, n.condIndex[f.To])
	default:
		n.feed(n.condIndex[f.From], to)
	}
}

// link adds an output, unless it is there. It looks in the shorter list: a hub has tens of thousands of flows.
func (n *Net) link(t TaskID, c ConditionID) {
	from, to := &n.tasks[t].outputs, &n.conditions[c].producers
	if !joined(*from, *to, t, c) {
		*from, *to = append(*from, c), append(*to, t)
	}
}

// feed adds an input, unless it is there.
func (n *Net) feed(c ConditionID, t TaskID) {
	from, to := &n.tasks[t].inputs, &n.conditions[c].consumers
	if !joined(*from, *to, t, c) {
		*from, *to = append(*from, c), append(*to, t)
	}
}

func joined(conditions []ConditionID, tasks []TaskID, t TaskID, c ConditionID) bool {
	if len(conditions) < len(tasks) {
		return slices.Contains(conditions, c)
	}
	return slices.Contains(tasks, t)
}

func (n *Net) addRegion(t TaskID, members []string) {
	for _, name := range members {
		if m, ok := n.taskIndex[name]; ok {
			n.tasks[t].regionTasks = append(n.tasks[t].regionTasks, m)
			n.tasks[m].namedBy = append(n.tasks[m].namedBy, t)
		} else {
			c := n.condIndex[name]
			n.tasks[t].region = append(n.tasks[t].region, c)
			n.conditions[c].namedBy = append(n.conditions[c].namedBy, t)
		}
	}
}

// Definition returns what the net was compiled from. It must not be changed.
func (n *Net) Definition() *Definition { return n.def }

// Name returns the name of the workflow.
func (n *Net) Name() string { return n.def.Name }

// NumTasks counts the tasks; a [TaskID] is below it.
func (n *Net) NumTasks() int { return len(n.tasks) }

// NumConditions counts the conditions, implicit ones included; a [ConditionID] is below it.
func (n *Net) NumConditions() int { return len(n.conditions) }

// Start is the condition that holds the first token.
func (n *Net) Start() ConditionID { return n.start }

// End is the condition whose first token completes the case.
func (n *Net) End() ConditionID { return n.end }

// Task returns the task as it was written.
func (n *Net) Task(t TaskID) *Task { return &n.def.Tasks[t] }

// TaskName returns the name of a task.
func (n *Net) TaskName(t TaskID) string { return n.def.Tasks[t].Name }

// TaskNames returns the names of all tasks, in the order of their numbers.
func (n *Net) TaskNames() []string {
	names := make([]string, len(n.def.Tasks))
	for t := range names {
		names[t] = n.def.Tasks[t].Name
	}
	return names
}

// ConditionName returns the name of a condition; an implicit one is called "A->B".
func (n *Net) ConditionName(c ConditionID) string { return n.conditions[c].name }

// Implicit reports whether a condition was made by a flow from task to task.
func (n *Net) Implicit(c ConditionID) bool { return n.conditions[c].implicit }

// TaskByName finds a task.
func (n *Net) TaskByName(name string) (TaskID, bool) {
	t, ok := n.taskIndex[name]
	return t, ok
}

// ConditionByName finds a condition; an implicit one is called "A->B".
func (n *Net) ConditionByName(name string) (ConditionID, bool) {
	c, ok := n.condIndex[name]
	return c, ok
}

// Inputs lists the conditions that a task consumes from, in flow order. It must not be changed.
func (n *Net) Inputs(t TaskID) []ConditionID { return n.tasks[t].inputs }

// Outputs lists the conditions that a task produces into, in flow order. It must not be changed.
func (n *Net) Outputs(t TaskID) []ConditionID { return n.tasks[t].outputs }

// PrivateInputs lists the inputs of a task that feed no other task.
func (n *Net) PrivateInputs(t TaskID) []ConditionID { return n.tasks[t].private }

// Consumers lists the tasks that a condition feeds, in flow order. It must not be changed.
func (n *Net) Consumers(c ConditionID) []TaskID { return n.conditions[c].consumers }

// Producers lists the tasks that feed a condition. It must not be changed.
func (n *Net) Producers(c ConditionID) []TaskID { return n.conditions[c].producers }

// Region returns the cancellation region of a task: the tasks that it cancels and the conditions that it empties.
func (n *Net) Region(t TaskID) (tasks []TaskID, conditions []ConditionID) {
	return n.tasks[t].regionTasks, n.tasks[t].region
}

// Target finds the output of a task that a route may name: the output condition itself, or the implicit condition
// before a task.
func (n *Net) Target(t TaskID, name string) (ConditionID, bool) {
	if _, ok := n.taskIndex[name]; ok {
		name = ImplicitName(n.TaskName(t), name)
	}
	c, ok := n.condIndex[name]
	if !ok || !slices.Contains(n.tasks[t].outputs, c) {
		return 0, false
	}
	return c, true
}
