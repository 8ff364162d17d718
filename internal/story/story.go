// Package story describes the history of a case as text: one sentence for each change in its journal. The command line
// and the pages use it for histories, and for previews of commands.
package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Story describes the events of a case's journal as text. It must get every event of the tree in order, since later
// events refer to items and jobs by id only.
type Story struct {
	tree  *state.Tree
	top   workitem.CaseID // the case of the story; its descendants belong to it
	items map[workitem.ID]*workitem.Item
	jobs  map[workitem.JobID]*state.Job
	steps map[workitem.StepID]*workitem.Step
	mail  map[workitem.MessageID]*state.Message
}

// New begins the story of a case, with its descendants, in a tree.
func New(tree *state.Tree, top workitem.CaseID) *Story {
	return &Story{tree: tree, top: top,
		items: make(map[workitem.ID]*workitem.Item), jobs: make(map[workitem.JobID]*state.Job),
		steps: make(map[workitem.StepID]*workitem.Step), mail: make(map[workitem.MessageID]*state.Message)}
}

// Tree returns the tree of the case.
func (s *Story) Tree() *state.Tree { return s.tree }

// Know adds the items and jobs that existed before the first change.
func (s *Story) Know(tree *state.Tree) {
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			s.items[it.ID] = it
		}
		for j := range c.Jobs.All() {
			s.jobs[j.ID] = j
		}
	})
}

// KnowItem adds an item that existed before the first change.
func (s *Story) KnowItem(it *workitem.Item) { s.items[it.ID] = it }

// KnowJob adds a job that existed before the first change. Its state at that time is unknown.
func (s *Story) KnowJob(j *state.Job) {
	then := *j
	then.State = state.JobPending
	s.jobs[j.ID] = &then
}

// path returns the name of a case relative to that of the story: "" for that case, "print.1.2" for its child, and so
// on. It returns false for a case that is not part of the story.
func (s *Story) path(id workitem.CaseID) (string, bool) {
	var steps []string
	for id != s.top {
		c := s.tree.Case(id)
		if c == nil || c.Parent.IsZero() {
			return "", false
		}
		steps = append([]string{c.Label()}, steps...)
		id = c.Parent
	}
	return strings.Join(steps, "/"), true
}

// Describe returns a line for an event; false if it belongs to another case.
func (s *Story) Describe(e state.Change, at time.Time) (string, bool) {
	id := state.CaseOf(e)
	line := s.words(e, at)
	path, ours := s.path(id)
	if path != "" {
		line = path + ": " + line
	}
	return line, ours
}

func (s *Story) words(e state.Change, at time.Time) string {
	switch e := e.(type) {
	case *state.CaseOpened:
		return caseOpened(e.Case)
	case *state.CaseBegun:
		return "case begun: its first work has started"
	case *state.CaseEnded:
		return s.caseEnded(e)
	case *state.CaseResumed:
		return "case resumed: it goes on where it failed"
	case *state.TokensMoved:
		return s.tokensMoved(e)
	case *state.CaseSuspended:
		return "case suspended: nothing of it begins" + given(e.Reason)
	case *state.CaseContinued:
		return "case goes on: it is suspended no longer"
	case *state.TaskResumed:
		return fmt.Sprintf("%s started again (activation %d)", s.task(e.Case, e.Task), e.Generation)
	case *state.CaseRemoved:
		return "case removed, with all that it had"
	case *state.TaskMoved:
		return s.taskMoved(e)
	case *state.Produced:
		return fmt.Sprintf("%s put a token into %s", s.task(e.Case, e.Task), s.conditions(e.Case, e.Into))
	case *state.Removed:
		return fmt.Sprintf("%s emptied %s of its cancellation region (%s)", s.task(e.Case, e.Task),
			s.conditions(e.Case, []net.ConditionID{e.From}), printable.Plural(int(e.Tokens), "token"))
	case *state.ItemOpened:
		s.items[e.Item.ID] = e.Item
		return s.itemOpened(e.Item, at)
	case *state.ItemMoved:
		return s.itemMoved(e)
	case *state.JobOpened:
		s.jobs[e.Job.ID] = e.Job
		return s.job(e.Job) + " scheduled" + due(e.Job.Due, at)
	case *state.JobMoved:
		return s.jobMoved(e, at)
	case *state.StepOpened:
		s.steps[e.Step.ID] = e.Step
		return s.stepOpened(e.Step, at)
	case *state.StepMoved:
		return s.stepMoved(e, at)
	case *state.MessageSent:
		s.mail[e.Message.ID] = e.Message
		return s.sent(e.Message)
	case *state.MessageTaken:
		return s.taken(e)
	case *state.Noted:
		about := "note"
		if e.Task >= 0 {
			about = "note on " + s.task(e.Case, e.Task)
		}
		return fmt.Sprintf("%s: %s: %s", about, e.Code, e.Text)
	}
	return fmt.Sprintf("%T", e)
}

func (s *Story) tokensMoved(e *state.TokensMoved) string {
	if len(e.From) == 0 {
		return "tokens put into " + s.conditions(e.Case, e.Into)
	}
	return "tokens moved from " + s.conditions(e.Case, e.From) + " to " + s.conditions(e.Case, e.Into)
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

func (s *Story) caseEnded(e *state.CaseEnded) string {
	line := "case " + e.State.String() + showing(" with ", e.Output)
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	if len(e.Leftover) > 0 {
		line += "; improper: tokens are left in " + s.conditions(e.Case, e.Leftover)
	}
	if !e.KeepUntil.IsZero() {
		line += "; kept until " + printable.Time(e.KeepUntil)
	}
	return line
}

func (s *Story) taskMoved(e *state.TaskMoved) string {
	name := s.task(e.Case, e.Task)
	switch e.To {
	case state.TaskEnabled:
		if e.Generation > 1 {
			return fmt.Sprintf("%s enabled (activation %d)", name, e.Generation)
		}
		return name + " enabled"
	case state.TaskStarted:
		if len(e.Consumed) > 0 {
			return name + " started, with a token of " + s.conditions(e.Case, e.Consumed)
		}
	case state.TaskDisabled:
		return name + " withdrawn"
	}
	return name + " " + e.To.String()
}

func (s *Story) itemOpened(it *workitem.Item, at time.Time) string {
	line := "item " + it.Label() + " created"
	if it.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", it.Attempt)
		if p := s.items[it.Predecessor]; p != nil {
			line += " after " + p.Label()
		}
	}
	if it.Queue != "" {
		line += " in queue " + it.Queue
	}
	if it.Due.After(at) {
		line += due(it.Due, at)
	}
	return line + showing(" with ", it.Input)
}

func (s *Story) itemMoved(e *state.ItemMoved) string {
	line := "item " + s.item(e.Item) + " " + e.To.String()
	if e.To == workitem.Initialized {
		line = "item " + s.item(e.Item) + " reset"
	}
	if e.By != "" {
		line += " by " + e.By
	}
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	return line + showing(" with ", e.Output)
}

func (s *Story) jobMoved(e *state.JobMoved, at time.Time) string {
	known := s.jobs[e.Job]
	line := "job"
	renewed := false
	if known != nil {
		line = s.job(known)
		renewed = known.State == state.JobRunning && e.To == state.JobRunning
		next := *known
		next.State, next.Crashes = e.To, e.Crashes
		s.jobs[e.Job] = &next
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
func (s *Story) job(j *state.Job) string {
	what := j.Kind
	if j.Name != "" {
		what += " " + j.Name
	}
	switch {
	case !j.Item.IsZero():
		return "job " + what + " of " + s.item(j.Item)
	case j.Task != "":
		return "job " + what + " of " + j.Task
	}
	return "job " + what + " of the case"
}

func (s *Story) item(id workitem.ID) string {
	if it := s.items[id]; it != nil {
		return it.Label()
	}
	return id.String()
}

func (s *Story) task(id workitem.CaseID, t net.TaskID) string {
	return "task " + s.tree.Case(id).Net.TaskName(t)
}

func (s *Story) conditions(id workitem.CaseID, list []net.ConditionID) string {
	c := s.tree.Case(id)
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

// Naming replaces the ids of items in a command by their labels: "item complete 0197…" becomes "item complete
// draft.1.1".
func (s *Story) Naming(command string) string {
	fields := strings.Fields(command)
	for i, word := range fields {
		bare := strings.TrimSuffix(word, ",")
		if id, err := workitem.ParseID(bare); err == nil && s.items[id] != nil {
			fields[i] = s.items[id].Label() + strings.TrimPrefix(word, bare)
		}
	}
	return strings.Join(fields, " ")
}
