package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The definitions that the histories run on: an article is drafted and then reviewed; an issue holds articles as child
// cases.
var (
	article = net.MustCompile(&net.Definition{
		Name:       "article",
		Conditions: []net.Condition{{Name: "begin", Role: net.Start}, {Name: "done", Role: net.End}},
		Tasks:      []net.Task{{Name: "draft", Join: net.Xor}, {Name: "review", Split: net.Xor}},
		Flows: []net.Flow{{From: "begin", To: "draft"}, {From: "draft", To: "review"}, {From: "review", To: "draft"},
			{From: "review", To: "done"}},
	})
	issue = net.MustCompile(&net.Definition{
		Name:       "issue",
		Conditions: []net.Condition{{Name: "open", Role: net.Start}, {Name: "closed", Role: net.End}, {Name: "wörter"}},
		Tasks: []net.Task{
			{Name: "articles", Kind: net.Composite, Of: []string{"article"}},
			{Name: "route", Kind: net.Routing, Join: net.Xor, Split: net.Or,
				Cancels: []string{"print", "articles->print"}},
			{Name: "print", Join: net.Or},
		},
		Flows: []net.Flow{{From: "open", To: "articles"}, {From: "articles", To: "print"},
			{From: "articles", To: "wörter"}, {From: "wörter", To: "route"}, {From: "route", To: "print"},
			{From: "print", To: "closed"}},
	})
)

// Definitions are what every world registers.
func Definitions() []*store.Definition {
	return []*store.Definition{
		{Name: "article", Version: "1", Fingerprint: "fp-article", Net: article.Definition(),
			Document: json.RawMessage(`{"name":"article"}`), Code: true, Created: epoch},
		{Name: "issue", Fingerprint: "fp-issue", Net: issue.Definition(), Created: epoch.Add(time.Second)},
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)

func netOf(workflow string) *net.Net {
	if workflow == "issue" {
		return issue
	}
	return article
}

// Batch is one transaction of a store.
type Batch struct {
	*World
	Tx      store.Tx
	entries []*store.Entry
	removed []workitem.CaseID
	failed  error           // of Append: the database is not there
	Key     string          // idempotency key of the next command
	Answer  json.RawMessage // what its caller got
}

// do runs one command: it loads the tree if need be, applies the events that make returns one after the other, and
// appends.
func (b *Batch) do(root workitem.CaseID, command string, events ...state.Change) *store.Entry {
	b.T.Helper()
	tree := b.tree(root)
	tree.Begin()
	for _, e := range events {
		require.NoError(b.T, tree.Apply(e))
	}
	entry := &store.Entry{Root: root, At: b.clock, Command: command, By: actorOf(command), Key: b.Key, Answer: b.Answer,
		Changes: events}
	b.Key, b.Answer = "", nil
	if b.failed = cmp.Or(b.failed, b.Tx.Append(context.Background(), entry, tree)); !errors.Is(b.failed, store.ErrUnavailable) {
		require.NoError(b.T, b.failed)
	}
	b.entries = append(b.entries, entry)
	return entry
}

// actorOf is who asks for what, so that a history has several actors, and what no one asked for.
func actorOf(command string) string {
	switch {
	case strings.HasPrefix(command, "case ") || command == "start issue":
		return "ann"
	case strings.HasPrefix(command, "job "):
		return ""
	}
	return "tester"
}

func (b *Batch) tree(root workitem.CaseID) *state.Tree {
	b.T.Helper()
	if t := b.trees[root]; t != nil {
		return t
	}
	t, err := b.Tx.Load(context.Background(), root)
	require.NoError(b.T, err)
	b.trees[root] = t
	return t
}

// Start opens a root case of the article workflow: its first item, and the job that does it.
func (b *Batch) Start(input string) workitem.CaseID {
	b.T.Helper()
	now := b.Now()
	id := b.ids.NewCaseID(now)
	t := state.NewTree()
	t.Root = id
	b.trees[id] = t
	c := &state.Case{ID: id, Root: id, Number: 1}
	if n := len(input); n%2 == 0 {
		c.Options, c.Priority, c.Predecessor = json.RawMessage(`{"asked": ["for", 1]}`), n, workitem.CaseID{byte(n)}
	}
	if n := len(b.trees) + len(input); n%3 != 0 {
		c.Key, c.Labels = "C-\u00fc "+strconv.Itoa(n%5), map[string]string{"customer": "ada", "size": strconv.Itoa(n % 3)}
	}
	b.do(id, "start article", b.openArticle(c, input)...)
	return id
}

func (b *Batch) openArticle(c *state.Case, input string) []state.Change {
	c.Workflow, c.Version, c.Fingerprint, c.Net = "article", "1", "fp-article", article
	c.State, c.Input, c.Created = state.CaseStarted, json.RawMessage(input), b.clock
	return append([]state.Change{&state.CaseOpened{Case: c}}, b.enable(c.ID, c.Root, "draft", 1, input)...)
}

// enable enables a task of an article, with one item and the job that does it.
func (b *Batch) enable(id, root workitem.CaseID, task string, gen int, input string) []state.Change {
	t, _ := article.TaskByName(task)
	it := &workitem.Item{ID: b.ids.NewID(b.clock), Case: id, Task: task, Generation: gen, Number: 1,
		State: workitem.Initialized, Attempt: 1, Input: json.RawMessage(input), Queue: "editors", Priority: gen,
		Created: b.clock}
	job := &state.Job{ID: b.ids.NewJobID(b.clock), Case: id, Root: root, Task: task, Generation: gen, Item: it.ID,
		Kind: state.JobRun, Queue: "editors", State: state.JobPending, Due: b.clock, Created: b.clock}
	return []state.Change{&state.TaskMoved{Case: id, Task: t, To: state.TaskEnabled, Generation: gen},
		&state.ItemOpened{Item: it}, &state.JobOpened{Job: job}}
}

// live finds the item and the job of a case that are under way.
func (b *Batch) live(root, id workitem.CaseID) (*state.Case, *workitem.Item, *state.Job) {
	b.T.Helper()
	c := b.tree(root).Case(id)
	require.NotNil(b.T, c, "case %s", id)
	items := c.Items.Slice()
	i := slices.IndexFunc(items, func(it *workitem.Item) bool { return it.State.Live() })
	require.GreaterOrEqual(b.T, i, 0, "case %s has no live item", id)
	for j := range c.Jobs.All() {
		if j.Item == items[i].ID {
			return c, items[i], j
		}
	}
	return c, items[i], nil
}

// Claim starts the live item of a case, and its job.
func (b *Batch) Claim(root, id workitem.CaseID) {
	b.T.Helper()
	now := b.Now()
	c, it, j := b.live(root, id)
	t, _ := article.TaskByName(it.Task)
	events := []state.Change{
		&state.JobMoved{Case: id, Job: j.ID, To: state.JobRunning, Due: j.Due, Attempt: 1, Fence: j.Fence + 1,
			Owner: "worker/1", Lease: now.Add(time.Minute), At: now},
	}
	if c.Tasks[t].State == state.TaskEnabled {
		events = append(events, &state.TaskMoved{Case: id, Task: t, To: state.TaskStarted, Generation: it.Generation,
			Consumed: article.Consumes(nil, t, c.Marking)})
	}
	if !c.Begun {
		events = append(events, &state.CaseBegun{Case: id})
	}
	b.do(root, "job claim", append(events,
		&state.ItemMoved{Case: id, Item: it.ID, Action: workitem.Start, To: workitem.Started, By: "worker/1",
			At: now})...)
}

// Complete completes the started item of a case. A draft is reviewed next; a review ends the case, or with again has
// another draft made.
func (b *Batch) Complete(root, id workitem.CaseID, output string, again bool) {
	b.T.Helper()
	now := b.Now()
	c, it, j := b.live(root, id)
	t, _ := article.TaskByName(it.Task)
	next := "review"
	if it.Task == "review" {
		next = "draft"
	}
	events := append(b.endSteps(c),
		&state.JobMoved{Case: id, Job: j.ID, To: state.JobDone, Due: j.Due, Attempt: j.Attempt, Fence: j.Fence,
			At: now},
		&state.ItemMoved{Case: id, Item: it.ID, Action: workitem.Complete, To: workitem.Completed,
			Output: json.RawMessage(output), By: "worker/1", At: now},
		&state.TaskMoved{Case: id, Task: t, To: state.TaskCompleted, Generation: it.Generation})
	target := next
	if it.Task == "review" && !again {
		target = "done"
	}
	into, ok := article.Target(t, target)
	require.True(b.T, ok)
	events = append(events, &state.Produced{Case: id, Task: t, Into: []net.ConditionID{into}})
	if target == "done" {
		end := &state.CaseEnded{Case: id, State: state.CaseCompleted, Output: json.RawMessage(output), At: now}
		if id == root {
			end.KeepUntil, end.FreesKey = now.Add(time.Hour), c.Key == freed
		}
		events = append(events, end)
	} else {
		nt, _ := article.TaskByName(next)
		events = append(events, b.enable(id, root, next, c.Tasks[nt].Generation+1, output)...)
	}
	b.do(root, "item complete", events...)
}

// Fail fails the started item of a case and has it tried again: a fresh item with a job that is due later.
func (b *Batch) Fail(root, id workitem.CaseID, f *workitem.Failure) {
	b.T.Helper()
	now := b.Now()
	c, it, j := b.live(root, id)
	again := &workitem.Item{ID: b.ids.NewID(now), Case: id, Task: it.Task, Generation: it.Generation,
		Number: it.Number + 1, State: workitem.Initialized, Attempt: it.Attempt + 1, Predecessor: it.ID,
		Input: it.Input, Queue: it.Queue, Created: now, Due: now.Add(time.Hour), Retry: it.Retry}
	if again.Attempt%3 == 0 { // as after a repair
		again.Retry = json.RawMessage(fmt.Sprintf(`{"attempts":%d,"before":%d}`, again.Attempt, it.Attempt))
	}
	job := &state.Job{ID: b.ids.NewJobID(now), Case: id, Root: root, Task: it.Task, Generation: it.Generation,
		Item: again.ID, Kind: state.JobRun, State: state.JobPending, Due: again.Due, Created: now}
	b.do(root, "item fail", append(b.endSteps(c),
		&state.JobMoved{Case: id, Job: j.ID, To: state.JobDone, Due: j.Due, Attempt: j.Attempt, Fence: j.Fence,
			Failure: f, At: now},
		&state.ItemMoved{Case: id, Item: it.ID, Action: workitem.Fail, To: workitem.Failed, Failure: f, By: "worker/1",
			At: now},
		&state.ItemOpened{Item: again}, &state.JobOpened{Job: job},
		&state.RetryChanged{Case: id, Item: again.ID, Retry: json.RawMessage(fmt.Sprintf(`{"initial":%d}`, again.Number))},
		&state.Noted{Case: id, Task: -1, Code: state.NoteIncident, Text: "a \"failure\" was\nnoted"})...)
}

// Cancel cancels a case with all that is live in it.
func (b *Batch) Cancel(root, id workitem.CaseID, reason *workitem.Failure) {
	b.T.Helper()
	b.stop(root, id, "case cancel", state.CaseCanceled, reason)
}

// FailCase fails a case, and cancels all that is live in it.
func (b *Batch) FailCase(root, id workitem.CaseID, f *workitem.Failure) {
	b.T.Helper()
	b.stop(root, id, "case fail", state.CaseFailed, f)
}

// ResumeCase has a failed case continue with another draft.
func (b *Batch) ResumeCase(root, id workitem.CaseID) {
	b.T.Helper()
	draft, _ := article.TaskByName("draft")
	again := &state.CaseResumed{Case: id, At: b.Now()}
	b.do(root, "case retry", append([]state.Change{again}, b.enable(id, root, "draft", b.tree(root).Case(id).Tasks[draft].Generation+1, `"again"`)...)...)
}

func (b *Batch) stop(root, id workitem.CaseID, command string, as state.CaseState, reason *workitem.Failure) {
	b.T.Helper()
	now := b.Now()
	c := b.tree(root).Case(id)
	events := b.endSteps(c)
	for j := range c.Jobs.All() {
		events = append(events, &state.JobMoved{Case: id, Job: j.ID, To: state.JobCanceled, Due: j.Due,
			Attempt: j.Attempt, Fence: j.Fence, At: now})
	}
	for it := range c.Items.All() {
		if it.State.Live() {
			events = append(events, &state.ItemMoved{Case: id, Item: it.ID, Action: workitem.Cancel,
				To: workitem.Canceled, Failure: reason, At: now})
		}
	}
	b.do(root, command, append(events, &state.CaseEnded{Case: id, State: as, Failure: reason, At: now})...)
}

// SuspendCase has nothing of a case begin.
func (b *Batch) SuspendCase(root, id workitem.CaseID, reason string) {
	b.T.Helper()
	b.do(root, "case suspend", &state.CaseSuspended{Case: id, Suspension: state.Suspension{At: b.Now(), By: "ann", Reason: reason}})
}

// ContinueCase ends the suspension of a case.
func (b *Batch) ContinueCase(root, id workitem.CaseID) {
	b.T.Helper()
	b.do(root, "case resume", &state.CaseContinued{Case: id, At: b.Now()})
}

// Remove forgets a root case that has ended.
func (b *Batch) Remove(root workitem.CaseID) {
	b.T.Helper()
	b.tree(root)
	b.do(root, "case remove", &state.CaseRemoved{Case: root})
	delete(b.trees, root)
	b.removed = append(b.removed, root)
}

// StartIssue opens a root case with two child cases, and a job of the case's own.
func (b *Batch) StartIssue() (root workitem.CaseID, children []workitem.CaseID) {
	b.T.Helper()
	return b.startIssue(state.Case{})
}

// startIssue is StartIssue with the business key and the labels of a case.
func (b *Batch) startIssue(of state.Case) (root workitem.CaseID, children []workitem.CaseID) {
	b.T.Helper()
	now := b.Now()
	root = b.ids.NewCaseID(now)
	t := state.NewTree()
	t.Root = root
	b.trees[root] = t
	articles, _ := issue.TaskByName("articles")
	events := []state.Change{
		&state.CaseOpened{Case: &state.Case{ID: root, Root: root, Number: 1, Workflow: "issue", Fingerprint: "fp-issue",
			Net: issue, State: state.CaseStarted, Created: now, Key: of.Key, Labels: of.Labels}},
		&state.TaskMoved{Case: root, Task: articles, To: state.TaskEnabled, Generation: 1},
		&state.JobOpened{Job: &state.Job{ID: b.ids.NewJobID(now), Case: root, Root: root, Kind: state.JobCall,
			Name: "clean up", Input: json.RawMessage(`[1, 2]`), Detached: true, State: state.JobPending,
			Due: now.AddDate(100, 0, 0), Created: now}},
	}
	for i := range 2 {
		child := &state.Case{ID: b.ids.NewCaseID(now), Root: root, Parent: root, ParentTask: "articles", Generation: 1,
			Number: i + 1}
		children = append(children, child.ID)
		events = append(events, b.openArticle(child, `{"n":1}`)...)
	}
	b.do(root, "start issue", events...)
	return root, children
}
