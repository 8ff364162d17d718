// Package describe describes the history of a case as text: one sentence for each change in its journal. The command line
// and the pages use it for histories, and for previews of commands.
package describe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Describer describes the events of a case's journal as text. It must get every event of the tree in order, since later
// events refer to items and jobs by id only.
type Describer struct {
	tree  *state.Tree
	top   workitem.CaseID // the case whose history it is; its descendants belong to it
	items map[workitem.ID]*workitem.Item
	jobs  map[workitem.JobID]*state.Job
	steps map[workitem.StepID]*workitem.Step
	mail  map[workitem.MessageID]*state.Message
}

// New returns a Describer of a case, with its descendants, in a tree.
func New(tree *state.Tree, top workitem.CaseID) *Describer {
	return &Describer{tree: tree, top: top,
		items: make(map[workitem.ID]*workitem.Item), jobs: make(map[workitem.JobID]*state.Job),
		steps: make(map[workitem.StepID]*workitem.Step), mail: make(map[workitem.MessageID]*state.Message)}
}

// Tree returns the tree of the case.
func (d *Describer) Tree() *state.Tree { return d.tree }

// AddTree adds the items and jobs that existed before the first change.
func (d *Describer) AddTree(tree *state.Tree) {
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			d.items[it.ID] = it
		}
		for j := range c.Jobs.All() {
			d.jobs[j.ID] = j
		}
	})
}

// AddItem adds an item that existed before the first change.
func (d *Describer) AddItem(it *workitem.Item) { d.items[it.ID] = it }

// AddJob adds a job that existed before the first change. Its state at that time is unknown.
func (d *Describer) AddJob(j *state.Job) {
	then := *j
	then.State = state.JobPending
	d.jobs[j.ID] = &then
}

// path returns the name of a case relative to the case of d: "" for that case, "print.1.2" for its child, and so
// on. It returns false for a case that is neither that case nor a descendant.
func (d *Describer) path(id workitem.CaseID) (string, bool) {
	var steps []string
	for id != d.top {
		c := d.tree.Case(id)
		if c == nil || c.Parent.IsZero() {
			return "", false
		}
		steps = append([]string{c.Label()}, steps...)
		id = c.Parent
	}
	return strings.Join(steps, "/"), true
}

// Describe returns a line for an event; false if it belongs to another case.
func (d *Describer) Describe(e state.Change, at time.Time) (string, bool) {
	id := state.CaseOf(e)
	line := d.words(e, at)
	path, ours := d.path(id)
	if path != "" {
		line = path + ": " + line
	}
	return line, ours
}

func (d *Describer) words(e state.Change, at time.Time) string {
	switch e := e.(type) {
	case *state.CaseOpened:
		return caseOpened(e.Case)
	case *state.CaseBegun:
		return "case begun: its first work has started"
	case *state.CaseEnded:
		return d.caseEnded(e)
	case *state.CaseResumed:
		return "case resumed: it goes on where it failed"
	case *state.TokensMoved:
		return d.tokensMoved(e)
	case *state.CaseSuspended:
		return "case suspended: nothing of it begins" + given(e.Reason)
	case *state.CaseContinued:
		return "case goes on: it is suspended no longer"
	case *state.TaskResumed:
		return fmt.Sprintf("%s started again (activation %d)", d.task(e.Case, e.Task), e.Generation)
	case *state.CaseRemoved:
		return "case removed, with all that it had"
	case *state.TaskMoved:
		return d.taskMoved(e)
	case *state.Produced:
		return fmt.Sprintf("%s put a token into %s", d.task(e.Case, e.Task), d.conditions(e.Case, e.Into))
	case *state.Removed:
		return fmt.Sprintf("%s emptied %s of its cancellation region (%s)", d.task(e.Case, e.Task),
			d.conditions(e.Case, []net.ConditionID{e.From}), printable.Plural(int(e.Tokens), "token"))
	case *state.ItemOpened:
		d.items[e.Item.ID] = e.Item
		return d.itemOpened(e.Item, at)
	case *state.ItemMoved:
		return d.itemMoved(e)
	case *state.RetryChanged:
		return "retry policy of item " + d.item(e.Item) + retried(&workitem.Item{Retry: e.Retry})
	case *state.JobOpened:
		d.jobs[e.Job.ID] = e.Job
		return d.job(e.Job) + " scheduled" + due(e.Job.Due, at)
	case *state.JobMoved:
		return d.jobMoved(e, at)
	case *state.StepOpened:
		d.steps[e.Step.ID] = e.Step
		return d.stepOpened(e.Step, at)
	case *state.StepMoved:
		return d.stepMoved(e, at)
	case *state.MessageSent:
		d.mail[e.Message.ID] = e.Message
		return d.sent(e.Message)
	case *state.MessageTaken:
		return d.taken(e)
	case *state.Noted:
		about := "note"
		if e.Task >= 0 {
			about = "note on " + d.task(e.Case, e.Task)
		}
		return fmt.Sprintf("%s: %s: %s", about, e.Code, e.Text)
	}
	return fmt.Sprintf("%T", e)
}

func (d *Describer) tokensMoved(e *state.TokensMoved) string {
	if len(e.From) == 0 {
		return "tokens put into " + d.conditions(e.Case, e.Into)
	}
	return "tokens moved from " + d.conditions(e.Case, e.From) + " to " + d.conditions(e.Case, e.Into)
}

// given returns the reason as part of a line, if there is one.
func given(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func caseOpened(c *state.Case) string {
	line := "case of " + c.Workflow + " opened" + showing(" with ", c.Input)
	if c.Priority != 0 {
		line += fmt.Sprintf(", priority %d", c.Priority)
	}
	if c.Key != "" {
		line += ", key " + c.Key
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		line += ", " + name + "=" + c.Labels[name]
	}
	if !c.Predecessor.IsZero() {
		line += ", restarts " + c.Predecessor.String()
	}
	return line + showing(", asked: ", c.Options)
}

func (d *Describer) caseEnded(e *state.CaseEnded) string {
	line := "case " + e.State.String() + showing(" with ", e.Output)
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	if len(e.Leftover) > 0 {
		line += "; improper: tokens are left in " + d.conditions(e.Case, e.Leftover)
	}
	if !e.KeepUntil.IsZero() {
		line += "; kept until " + printable.Time(e.KeepUntil)
	}
	return line
}

func (d *Describer) taskMoved(e *state.TaskMoved) string {
	name := d.task(e.Case, e.Task)
	switch e.To {
	case state.TaskEnabled:
		if e.Generation > 1 {
			return fmt.Sprintf("%s enabled (activation %d)", name, e.Generation)
		}
		return name + " enabled"
	case state.TaskStarted:
		if len(e.Consumed) > 0 {
			return name + " started, with a token of " + d.conditions(e.Case, e.Consumed)
		}
	case state.TaskDisabled:
		return name + " withdrawn"
	}
	return name + " " + e.To.String()
}

func (d *Describer) itemOpened(it *workitem.Item, at time.Time) string {
	line := "item " + it.Label() + " created"
	if it.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", it.Attempt)
		if p := d.items[it.Predecessor]; p != nil {
			line += " after " + p.Label()
		}
	}
	if it.Queue != "" {
		line += " in queue " + it.Queue
	}
	if it.Due.After(at) {
		line += due(it.Due, at)
	}
	if own, err := activities.RetryOfItem(it); err == nil && own != nil && own.Attempt(it) == 1 {
		line += ", retry policy" + retried(it)
	}
	return line + showing(" with ", it.Input)
}

// retried describes the retry policy that a repair gave an item.
func retried(it *workitem.Item) string {
	own, err := activities.RetryOfItem(it)
	if err != nil || own == nil {
		return " changed"
	}
	return " changed: " + own.String()
}

func (d *Describer) itemMoved(e *state.ItemMoved) string {
	line := "item " + d.item(e.Item) + " " + e.To.String()
	if e.To == workitem.Initialized {
		line = "item " + d.item(e.Item) + " reset"
	}
	if e.By != "" {
		line += " by " + e.By
	}
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	return line + showing(" with ", e.Output)
}

func (d *Describer) jobMoved(e *state.JobMoved, at time.Time) string {
	known := d.jobs[e.Job]
	line := "job"
	renewed := false
	if known != nil {
		line = d.job(known)
		renewed = known.State == state.JobRunning && e.To == state.JobRunning
		next := *known
		next.State, next.Crashes = e.To, e.Crashes
		d.jobs[e.Job] = &next
	}
	switch e.To {
	case state.JobRunning:
		if renewed && e.Crashes < known.Crashes {
			return line + " has come further: its crashes are forgotten"
		}
		if renewed {
			return line + " goes on: lease renewed by " + e.Owner
		}
		return fmt.Sprintf("%s claimed by %s", line, e.Owner)
	case state.JobWaiting:
		line += " waits" + due(e.Due, at)
	case state.JobPending:
		line += " put back" + due(e.Due, at)
		if e.Crashes > 0 {
			line += fmt.Sprintf(" (%s so far)", printable.Plural(e.Crashes, "crash"))
		}
	default:
		line += " " + e.To.String()
	}
	if e.Failure != nil && e.To != state.JobDone { // the failure of a completed run is that of its item
		line += ": " + e.Failure.String()
	}
	return line
}

// job names a job by its action and its owner: "timer timeout of draft.1.1".
func (d *Describer) job(j *state.Job) string {
	what := j.Kind
	if j.Name != "" {
		what += " " + j.Name
	}
	switch {
	case !j.Item.IsZero():
		return "job " + what + " of " + d.item(j.Item)
	case j.Task != "":
		return "job " + what + " of " + j.Task
	}
	return "job " + what + " of the case"
}

func (d *Describer) item(id workitem.ID) string {
	if it := d.items[id]; it != nil {
		return it.Label()
	}
	return id.String()
}

func (d *Describer) task(id workitem.CaseID, t net.TaskID) string {
	return "task " + d.tree.Case(id).Net.TaskName(t)
}

func (d *Describer) conditions(id workitem.CaseID, list []net.ConditionID) string {
	c := d.tree.Case(id)
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = c.Net.ConditionName(p)
	}
	return strings.Join(names, ", ")
}

// showing adds a payload to a line, cut if it is long.
func showing(before string, payload []byte) string {
	if len(payload) == 0 {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, payload) == nil {
		payload = b.Bytes()
	}
	return before + printable.Brief(payload, 60)
}

func due(due, at time.Time) string {
	if !due.After(at) {
		return ""
	}
	return ", due in " + due.Sub(at).Round(time.Millisecond).String()
}

// CommandText replaces the ids of items in a command by their labels: "item complete 0197…" becomes "item complete
// draft.1.1".
func (d *Describer) CommandText(command string) string {
	fields := strings.Fields(command)
	for i, word := range fields {
		bare := strings.TrimSuffix(word, ",")
		if id, err := workitem.ParseID(bare); err == nil && d.items[id] != nil {
			fields[i] = d.items[id].Label() + strings.TrimPrefix(word, bare)
		}
	}
	return strings.Join(fields, " ")
}
