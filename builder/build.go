package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// Build checks the definition, verifies its net, and returns the workflow. The error is an [*Error] with every problem.
// An unsound net is a problem, see [UnsoundError] and [AllowUnsound]; a net whose soundness is not decided within 200
// ms is a warning, see [Workflow.Warnings]. The net is verified only if there are no other problems.
//
// Once built, a workflow cannot change: Build then returns the same one again, or an error if something was declared
// since.
func (b *Builder[C]) Build() (*Workflow[C], error) {
	d := b.draft()
	if b.built != nil && len(d.found) == 0 {
		return b.built, nil
	}
	def, err := d.build()
	if err != nil {
		return nil, err
	}
	d.def = def
	b.built = &Workflow[C]{Definition: def, Description: d.description}
	return b.built, nil
}

// MustBuild is like [Builder.Build] but panics if the definition has a problem. It is for workflows that are
// variables of a package, and for tests.
func (b *Builder[C]) MustBuild() *Workflow[C] {
	w, err := b.Build()
	if err != nil {
		panic(err)
	}
	return w
}

func (d *draft) build() (*workflow.Definition, error) {
	nd := d.net()
	found := slices.Concat(d.found, d.checkGates(), d.checkSources(), d.checkHandlers(), d.connected(d.named(nd.Check())),
		net.CheckAll(d.family(nd)))
	if len(found) > 0 {
		return nil, &Error{Workflow: d.name, Pos: d.pos, Problems: sorted(found)}
	}
	n, err := net.Compile(nd)
	if err != nil {
		return nil, err
	}
	verified, err := d.verify(n)
	if err != nil {
		return nil, err
	}
	def := &workflow.Definition{
		Name: d.name, Version: d.version, Net: n, Topics: d.topics, Accept: d.accept, AcceptIsPlain: d.plain, InputType: d.in, Hooks: d.hooks, Calls: d.calls(),
		Output: d.output(), PlainOutput: d.plainOutput(), Verification: verified,
	}
	def.Holds = d.holdsOf(n)
	d.handlersOf(def)
	def.Sweep, def.Keep = d.sweep, d.keep
	def.Identity, def.UniqueKey = d.identityOf(), d.uniqueKey
	var notes []Note
	if def.DeadLetter = d.deadLetter; def.DeadLetter != nil {
		notes = append(notes, Note{Text: "dead letter: " + def.DeadLetter.Name})
	}
	for _, i := range d.identity {
		notes = append(notes, Note{Text: "identity: " + i.String()})
	}
	if d.uniqueKey {
		notes = append(notes, Note{Text: "the business key is unique"})
	}
	for _, t := range d.tasks() {
		spec := t.task
		spec.Route = d.router(t)
		def.Tasks = append(def.Tasks, spec)
		for _, text := range append(slices.Clone(t.notes), d.routeNotes(t)...) {
			notes = append(notes, Note{Task: t.name, Text: text})
		}
	}
	if d.result != nil {
		notes = append(notes, Note{Text: "result: " + d.result.String()})
	}
	if d.sweep {
		notes = append(notes, Note{Text: "keep: " + d.keep.String()})
	}
	if err := Seal(def, notes...); err != nil {
		return nil, err
	}
	return def, nil
}

// net writes the declarations down as a net.
func (d *draft) net() *net.Definition {
	nd := &net.Definition{Name: d.name, Pos: d.pos}
	for _, n := range d.nodes {
		if n.kind.condition() {
			role := map[kind]net.Role{startNode: net.Start, endNode: net.End}[n.kind]
			nd.Conditions = append(nd.Conditions, net.Condition{Name: n.unique, Role: role, Pos: n.pos})
			continue
		}
		nd.Tasks = append(nd.Tasks, net.Task{
			Name: n.unique, Kind: n.netKind(), Join: n.join.rule(), Split: n.split.rule(), Cancels: d.regionOf(n),
			Of: workflowsOf(n), Pos: n.pos,
		})
	}
	for _, f := range d.flows {
		nd.Flows = append(nd.Flows, net.Flow{From: f.from.unique, To: f.to.unique, Pos: f.pos})
	}
	return nd
}

// connected leaves out what follows from a flow that could not be declared: elements that it would have connected.
func (d *draft) connected(found []net.Problem) []net.Problem {
	return slices.DeleteFunc(found, func(p net.Problem) bool {
		return d.lacksFlow && (p.Code == net.NoFlowIn || p.Code == net.NoFlowOut || p.Code == net.Unreachable || p.Code == net.NoPathToEnd)
	})
}

// named gives elements of one name their own names back, which the net needed apart.
func (d *draft) named(found []net.Problem) []net.Problem {
	for _, n := range d.nodes {
		for i := range found {
			if n.unique != n.name {
				found[i].Subject = strings.ReplaceAll(found[i].Subject, n.unique, n.name)
				found[i].Text = strings.ReplaceAll(found[i].Text, n.unique, n.name)
			}
		}
	}
	return found
}

// family lists the workflow and, once for each name, those that its composite tasks run, at any depth.
func (d *draft) family(own *net.Definition) []*net.Definition {
	all := []*net.Definition{own}
	var add func(of []*workflow.Definition)
	add = func(of []*workflow.Definition) {
		for _, child := range of {
			same := func(nd *net.Definition) bool { return nd.Name == child.Name }
			if slices.ContainsFunc(all, same) {
				continue
			}
			all = append(all, child.Net.Definition())
			for i := range child.Tasks {
				for _, name := range sortedKeys(child.Tasks[i].Of) {
					add([]*workflow.Definition{child.Tasks[i].Of[name]})
				}
			}
		}
	}
	for _, n := range d.nodes {
		add(n.of)
	}
	return all
}

func (d *draft) tasks() []*node {
	var tasks []*node
	for _, n := range d.nodes {
		if !n.kind.condition() {
			tasks = append(tasks, n)
		}
	}
	return tasks
}

func (d *draft) regionOf(n *node) []string {
	var region []string
	for _, c := range d.cancels {
		for _, name := range c.members {
			if c.owner == n && !slices.Contains(region, name) {
				region = append(region, name)
			}
		}
	}
	return region
}

func (d *draft) calls() map[string]*workflow.Call {
	if len(d.jobs) == 0 {
		return nil
	}
	calls := make(map[string]*workflow.Call, len(d.jobs))
	for _, j := range d.jobs {
		calls[j.name] = j.call
	}
	return calls
}

func (d *draft) output() func(*activities.Case) (json.RawMessage, error) {
	if d.result == nil {
		return nil
	}
	read := d.result.read
	return func(c *activities.Case) (json.RawMessage, error) { return read(context.Background(), nil, c) }
}

// plainOutput is output without code of the user's; nil if it is that.
func (d *draft) plainOutput() func(activities.CaseInfo) (json.RawMessage, error) {
	if d.result == nil {
		return nil
	}
	return d.result.plain
}

// checkSources finds sources that can have no value where they are read.
func (d *draft) checkSources() []net.Problem {
	var c problems
	for _, u := range d.sources {
		switch {
		case u.where == inCase:
			c.problem(BadSource, u.by.name, u.pos, "the input of task %q is FromCase, which only a result can be; use From",
				u.by.name)
		case u.of != nil && u.d == d && !d.path(u.of, u.by):
			c.problem(BadSource, u.by.name, u.pos, "the input of task %q is the output of %q, which can never have "+
				"completed before: no path leads from %q to %q", u.by.name, u.of.name, u.of.name, u.by.name)
			c.other(u.of.pos)
		}
		c.checkOwner(d, u.sourceOf, fmt.Sprintf("the input of task %q", u.by.name), u.by.name)
	}
	if r := d.result; r != nil {
		if r.where == inTask {
			c.problem(BadSource, d.name, r.pos, "the result of workflow %q is From, which only the input of a task can be; "+
				"use FromCase", d.name)
		}
		c.checkOwner(d, *r, fmt.Sprintf("the result of workflow %q", d.name), d.name)
	}
	return c.found
}

// checkOwner finds the source of another workflow, which may even have the same name.
func (p *problems) checkOwner(d *draft, s sourceOf, what, subject string) {
	if s.d == nil || s.d == d {
		return
	}
	other, which := s.d.pos, "input of a case"
	if s.of != nil {
		other, which = s.of.pos, s.String()
	}
	p.problem(ForeignHandle, subject, s.pos, "%s is the %s of workflow %q, and not of its own workflow",
		what, which, s.d.name)
	p.other(other)
}

// path reports whether flows lead from one node to another, or back to itself.
func (d *draft) path(from, to *node) bool {
	seen := make(map[*node]bool)
	for todo := []*node{from}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, f := range d.flows {
			if f.from != n || seen[f.to] {
				continue
			}
			if f.to == to {
				return true
			}
			seen[f.to] = true
			todo = append(todo, f.to)
		}
	}
	return false
}
