package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The cases of a tree are explained one after the other, a parent before its children. Each contributes, in this order:
//
//	holds   the slots of limits that it holds
//	items   live work items for people: those that no job runs or wakes
//	jobs    a wait for each job, or one for each of the steps that a suspended job waits for
//	joins   tasks that have some of their tokens
//
// A join waits for something else in this list. So a case in which there are only joins, with its child cases, is stuck:
// nothing that is listed can bring another token.

// Explain returns what a case waits for. The case must be in the tree.
func Explain(in Input) *Answer {
	c := in.Tree.Case(in.Case)
	x := &explainer{in: in, answer: &Answer{
		Case: c.ID, Workflow: c.Workflow, Version: c.Version, State: c.State, Word: c.State.String(), Failure: c.Failure,
		Since: c.Created, At: in.Now, Waits: []Wait{},
	}}
	if c.State.Final() {
		x.answer.Since = c.Ended
	}
	x.answer.Suspended = x.suspension(c)
	if tick, ok := workflow.TickOf(activities.CaseInfo{Options: c.Options}); ok {
		x.answer.Tick = &tick
	}
	for t := range c.Tasks {
		x.answer.Tasks = append(x.answer.Tasks, taskOf(c, net.TaskID(t)))
		if c.State == state.CaseFailed && c.Tasks[t].Resumable() {
			x.answer.Lost = append(x.answer.Lost, c.Net.TaskName(net.TaskID(t)))
		}
	}
	x.walk(c, "")
	return x.answer
}

// explainer collects the waits of one answer.
type explainer struct {
	in     Input
	answer *Answer
	acting int // the number of waits other than joins, which wait for something else
	alike  map[Alike]int
}

// full reports whether the answer has MaxWaits waits; further ones are only counted.
func (x *explainer) full() bool { return len(x.answer.Waits) >= MaxWaits }

// walk collects the waits of a case, and then those of its live child cases.
func (x *explainer) walk(c *state.Case, path string) {
	v := &visit{explainer: x, c: c, path: path, steps: make(map[workitem.JobID][]*workitem.Step)}
	for s := range c.Steps.All() {
		v.steps[s.Job] = append(v.steps[s.Job], s)
	}
	before := x.acting
	v.holds()
	v.items()
	v.jobs()
	if !c.State.Final() && !x.full() {
		v.joins()
	}
	for _, id := range c.Children {
		if child := x.in.Tree.Case(id); child != nil && !child.State.Final() {
			x.walk(child, strings.TrimPrefix(path+"/"+child.Label(), "/"))
		}
	}
	if x.acting == before && !c.State.Final() {
		w := v.wait(Stuck)
		w.Since, w.Name = c.Created, tokens(c)
		w.Task, w.composite = vacant(c)
		x.add(w)
	}
}

// add adds a wait with its text.
func (x *explainer) add(w Wait) {
	if w.Kind != Join {
		x.acting++
	}
	if s := x.suspension(x.in.Tree.Case(w.Case)); s != nil && begins(&w) {
		w.Suspended, w.Blocked, w.Ahead = s, Suspended, 0
	}
	if x.alike == nil {
		x.alike = make(map[Alike]int)
	}
	// The first MaxWaits are kept, whatever they are. Of those after them, the first of each kind and task are: the one
	// incident among a hundred thousand items must not be lost.
	like := w.alike()
	if x.alike[like]++; x.full() && x.alike[like] > MaxAlike {
		x.answer.More++
		return
	}
	x.hide(&w)
	w.Overdue = !w.Until.IsZero() && w.Until.Before(x.in.Now)
	w.Text, w.Commands = text(&w, x.in.Now), commands(&w)
	x.answer.Waits = append(x.answer.Waits, w)
}

// hide masks the keys of a wait by Here.Shown, before its text is made of them. The key of a limit is kept unmasked
// beside it (Limit.key): with that, a search finds the limits that are set to 0.
func (x *explainer) hide(w *Wait) {
	if w.Kind == Turn {
		w.Name = x.in.shown("key", w.Workflow, w.Name)
	}
	w.Limits, w.Needs = x.hideLimits(w.Limits), x.hideLimits(w.Needs)
}

// hideLimits works on copies: the lists belong to the caller of Explain.
func (x *explainer) hideLimits(list []Limit) []Limit {
	list = slices.Clone(list)
	for i := range list {
		l := &list[i]
		l.key, l.Key = l.Key, x.in.shown("limit", l.Limit, l.Key)
		l.Any = slices.Clone(l.Any)
		for k, key := range l.Any {
			l.Any[k] = x.in.shown("limit", l.Limit, key)
		}
	}
	return list
}

// suspension returns the suspension of a case, or of one above it; nil if there is none.
func (x *explainer) suspension(c *state.Case) *Suspension {
	if c.State.Final() {
		return nil
	}
	at, s := x.in.Tree.SuspendedBy(c)
	if s == nil {
		return nil
	}
	return &Suspension{Case: at.ID, Since: s.At, By: s.By, Reason: s.Reason}
}

// begins reports whether a wait is for work that has not started, which a suspension prevents.
func begins(w *Wait) bool {
	switch w.Kind {
	case Person:
		return w.State == workitem.Initialized.String()
	case Worker, Retry, Delay, Timer, Turn:
		return true
	}
	return false
}

// visit is the explanation of one case of the tree.
type visit struct {
	*explainer
	c     *state.Case
	path  string
	steps map[workitem.JobID][]*workitem.Step // the waiting steps
}

// wait returns a wait of the case, without what it is for.
func (v *visit) wait(kind Kind) Wait {
	return Wait{Kind: kind, Case: v.c.ID, Path: v.path, Workflow: v.c.Workflow, Version: v.c.Version}
}

// ofItem returns a wait about an item. The failure is that of the attempt before, which explains why there is this one.
func (v *visit) ofItem(kind Kind, it *workitem.Item) Wait {
	w := v.wait(kind)
	w.Task, w.Item, w.Label, w.State, w.Queue, w.Attempt = it.Task, it.ID, it.Label(), it.State.String(), it.Queue, it.Attempt
	w.Retry, _ = activities.RetryOfItem(it) // the integrity check reports one that cannot be read
	w.Attempts = v.attemptsOf(it, w.Retry)
	if p := v.c.Item(it.Predecessor); p != nil {
		w.Failure = p.Failure
	}
	return w
}

// ofJob returns a wait about a job: one about its item if it has one.
func (v *visit) ofJob(kind Kind, j *state.Job) Wait {
	w := v.wait(kind)
	if it := v.c.Item(j.Item); it != nil {
		w = v.ofItem(kind, it)
		w.Failure = cmp.Or(j.Failure, w.Failure) // a job has its own if the process refused to begin it
	} else {
		w.State, w.Attempt, w.Failure = j.State.String(), j.Attempt+1, j.Failure
		w.Attempts = v.attempts("", j.Name)
	}
	w.Task, w.Job, w.Work, w.Name, w.Queue = j.Task, j.ID, j.Kind, j.Name, j.Queue
	return w
}

// items collects the items for people: those without a job.
func (v *visit) items() {
	for it := range v.c.Items.All() {
		if !it.State.Live() || v.hasJob(it) {
			continue
		}
		w := v.ofItem(Person, it)
		w.Since, w.By = it.Created, ""
		if it.State == workitem.Started {
			w.Since, w.By = it.Started, it.By
		} else if !v.full() {
			w.Ahead = itemsAhead(v.in.Open[it.Queue], it)
		}
		if w.Ahead > 0 {
			w.Blocked = Behind
		}
		v.unloaded(&w)
		v.add(w)
	}
}

// hasJob reports whether an item has a job: one that runs it or wakes it, or the incident of a job that was given up.
func (v *visit) hasJob(it *workitem.Item) bool {
	for _, j := range v.c.Jobs.Of(it.ID) {
		if j.Kind == state.JobRun || j.Kind == state.JobWake || givenUp(j) {
			return true
		}
	}
	return false
}

// givenUp reports whether a job is the incident of the run of a work item.
func givenUp(j *state.Job) bool {
	about, err := state.SubjectOf(j)
	return j.Kind == state.JobIncident && err == nil && about.Job != nil && about.Job.Kind == state.JobRun
}

// missing returns the case whose definition a job of the case needs and no engine has, as far as it is known here; nil if there
// is none. elsewhere reports whether another engine has what is missing here.
func (v *visit) missing() (c *state.Case, elsewhere bool) {
	for c := range v.in.Tree.Chain(v.c) {
		missing, other := v.in.lacks(c.Fingerprint)
		if missing {
			return c, false
		}
		elsewhere = elsewhere || other
	}
	return nil, elsewhere
}

// unloaded blocks a wait if no engine has a definition that it needs.
func (v *visit) unloaded(w *Wait) bool {
	c, _ := v.missing()
	starts := startsOf(v.c)
	switch {
	case c != nil && c != v.c:
		w.Missing = &Missing{Case: c.ID, Workflow: c.Workflow, Version: c.Version}
	case c != nil:
	case v.in.lacksNamed(starts):
		w.Missing = &Missing{Workflow: starts}
	default:
		return false
	}
	w.Blocked = NotLoaded
	return true
}

// attemptsOf returns the maximum number of attempts of an item, with those before the repair that gave it its own policy; 0 if it is
// not known.
func (v *visit) attemptsOf(it *workitem.Item, own *activities.ItemRetry) int {
	n := v.attempts(it.Task, "")
	switch {
	case own == nil:
		return n
	case own.Attempts != nil:
		return own.Before + *own.Attempts
	case n == 0:
		return 0
	}
	return own.Before + n
}

// attempts returns the maximum number of attempts of an item or of a function call; 0 if it is not known.
func (v *visit) attempts(task, call string) int {
	if v.in.Definition == nil {
		return 0
	}
	d := v.in.Definition(v.c.Fingerprint)
	if d == nil {
		return 0
	}
	if f := d.Calls[call]; f != nil {
		return f.Retry.Attempts
	}
	if t, ok := v.c.Net.TaskByName(task); ok && int(t) < len(d.Tasks) {
		info := activities.CaseInfo{ID: v.c.ID, Workflow: v.c.Workflow, Options: v.c.Options}
		if p, err := workflow.RetryOf(info, d.Tasks[t].Retry); err == nil {
			return p.Attempts
		}
	}
	return 0
}

// joins collects the tasks that have some of their tokens, but are not enabled. Tasks without any token are left out: every
// task that the case has not reached would be one.
func (v *visit) joins() {
	for t := range v.c.Tasks {
		if v.c.Tasks[t].State.Active() {
			continue
		}
		e := v.c.Net.Explain(net.TaskID(t), v.c.Marking, v.c.Busy())
		if e.Enabled || len(e.Marked) == 0 {
			continue
		}
		w := v.wait(Join)
		found := tokensOf(e)
		w.Task, w.Tokens, w.Name = e.Task, &found, inputs(v.c, e)
		v.add(w)
	}
}

// taskOf returns the state of a task. The text of an active task, or of a case that has ended, replaces that of its
// join, which describes a next activation and would read as if the present one were missing tokens.
func taskOf(c *state.Case, t net.TaskID) Task {
	e := c.Net.Explain(t, c.Marking, c.Busy())
	task := Task{Task: e.Task, State: c.Tasks[t].State.String(), Generation: c.Tasks[t].Generation, Tokens: tokensOf(e),
		Text: inputs(c, e)}
	switch {
	case c.State.Final():
		task.Text = "the case is " + c.State.String()
	case c.Tasks[t].State.Active():
		task.Text = "it is under way"
	}
	return task
}

// inputs says what the inputs of a task lack, and how a person decides an or-join that its search does not.
func inputs(c *state.Case, e net.Explanation) string {
	text := e.String()
	if !e.Undecided || len(e.Empty) == 0 {
		return text
	}
	first, runs, several := strings.Cut(text, "\n")
	first += fmt.Sprintf(": its search ran out of its budget; it is decided anew when the case goes on, or by a person who moves a token, as with tasq case move %s FROM %s",
		c.ID, printable.Arguments(e.Empty[0]))
	if several {
		return first + "\n" + runs
	}
	return first
}

func tokensOf(e net.Explanation) Tokens {
	found := Tokens{Join: e.Join.String(), Marked: e.Marked, Empty: e.Empty, Undecided: e.Undecided}
	for _, w := range e.Waits {
		found.Runs = append(found.Runs, Run(w))
	}
	return found
}

// vacant returns the first enabled task of a case in which nothing is in progress: such a task has no work items or child cases, as
// when its Items returned none. It returns "" if no task is enabled.
func vacant(c *state.Case) (task string, composite bool) {
	for t := range c.Tasks {
		if id := net.TaskID(t); c.Tasks[t].State == state.TaskEnabled {
			return c.Net.TaskName(id), c.Net.Task(id).Kind == net.Composite
		}
	}
	return "", false
}

// empty says that a task is enabled without work, and how a task that is not composite can get some.
func empty(task string, composite bool) string {
	if composite {
		return fmt.Sprintf("composite task %s is enabled and has no child cases, so it cannot start", task)
	}
	return fmt.Sprintf("task %s is enabled and has no work items, so it cannot start (workflow.AddItem adds one)", task)
}

// tokens returns the marked conditions of a case.
func tokens(c *state.Case) string {
	var names []string
	for p, n := range c.Marking {
		if n > 0 {
			names = append(names, c.Net.ConditionName(net.ConditionID(p)))
		}
	}
	return strings.Join(names, ", ")
}
