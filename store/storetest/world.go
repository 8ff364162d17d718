package storetest

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// World drives a store with small histories made of events, and keeps what the store should hold: a shadow of every
// tree and the newest value of every case, item and job, folded from the same events by [store.Tree.Apply].
type World struct {
	T      testing.TB
	Opener store.Opener
	Store  store.Store

	ids   *workitem.Generator
	clock time.Time
	trees map[workitem.CaseID]*store.Tree // what the engine would hold
	Want  *Model

	Acknowledged []*store.Entry // every entry that this World wrote, also those that were removed since
}

// Model is what a store should hold.
type Model struct {
	Trees   map[workitem.CaseID]*store.Tree
	Roots   []workitem.CaseID // in the order of their creation
	Cases   map[workitem.CaseID]*store.Case
	Items   map[workitem.ID]*workitem.Item
	Jobs    map[workitem.JobID]*store.Job
	Steps   map[workitem.StepID]*workitem.Step
	Mail    map[workitem.MessageID]*store.Message
	Entries []*store.Entry
}

func newModel() *Model {
	return &Model{
		Trees: make(map[workitem.CaseID]*store.Tree), Cases: make(map[workitem.CaseID]*store.Case),
		Items: make(map[workitem.ID]*workitem.Item), Jobs: make(map[workitem.JobID]*store.Job),
		Steps: make(map[workitem.StepID]*workitem.Step), Mail: make(map[workitem.MessageID]*store.Message),
	}
}

// take folds an entry that the store has acknowledged.
func (m *Model) take(t testing.TB, e *store.Entry) {
	tree := m.Trees[e.Root]
	if tree == nil {
		tree = store.NewTree()
		tree.Root = e.Root
		m.Trees[e.Root] = tree
		m.Roots = append(m.Roots, e.Root)
	}
	tree.Begin()
	for _, event := range e.Events {
		require.NoError(t, tree.Apply(event))
	}
	d := tree.End(e.Seq)
	if d.Removed {
		m.remove(tree)
		return
	}
	for _, c := range d.Cases {
		m.Cases[c.ID] = c
	}
	for _, it := range d.Items {
		m.Items[it.ID] = it
	}
	for _, j := range d.Jobs {
		m.Jobs[j.ID] = j
	}
	for _, s := range d.Steps {
		m.Steps[s.ID] = s
	}
	for _, k := range d.Messages {
		m.Mail[k.ID] = k
	}
	m.Entries = append(m.Entries, e)
}

// remove forgets a tree.
func (m *Model) remove(tree *store.Tree) {
	gone := make(map[workitem.CaseID]bool)
	tree.Each(func(c *store.Case) { gone[c.ID] = true })
	maps.DeleteFunc(m.Cases, func(id workitem.CaseID, _ *store.Case) bool { return gone[id] })
	maps.DeleteFunc(m.Items, func(_ workitem.ID, it *workitem.Item) bool { return gone[it.Case] })
	maps.DeleteFunc(m.Jobs, func(_ workitem.JobID, j *store.Job) bool { return gone[j.Case] })
	maps.DeleteFunc(m.Steps, func(_ workitem.StepID, s *workitem.Step) bool { return gone[s.Case] })
	maps.DeleteFunc(m.Mail, func(_ workitem.MessageID, k *store.Message) bool { return gone[k.Case] })
	m.Entries = slices.DeleteFunc(m.Entries, func(e *store.Entry) bool { return e.Root == tree.Root })
	m.Roots = slices.DeleteFunc(m.Roots, func(root workitem.CaseID) bool { return root == tree.Root })
	delete(m.Trees, tree.Root)
}

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
			{Name: "route", Kind: net.Routing, Join: net.Xor, Split: net.Or, Cancels: []string{"print",
				"articles->print"}},
			{Name: "print", Join: net.Or},
		},
		Flows: []net.Flow{{From: "open", To: "articles"}, {From: "articles", To: "print"}, {From: "articles",
			To: "wörter"},
			{From: "wörter", To: "route"}, {From: "route", To: "print"}, {From: "print", To: "closed"}},
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

// NewWorld opens a store, registers the definitions, and closes the store when the test ends.
func NewWorld(t testing.TB, o store.Opener, seed uint64) *World {
	t.Helper()
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	w := &World{T: t, Opener: o, ids: workitem.NewGenerator(rand.NewChaCha8(key)), clock: epoch,
		trees: make(map[workitem.CaseID]*store.Tree), Want: newModel()}
	w.Open()
	t.Cleanup(func() { _ = w.Store.Close() })
	return w
}

// Resume has the model hold what the journal holds, for a database that another process has written.
func (w *World) Resume() {
	w.T.Helper()
	w.Want = newModel()
	w.View(func(ctx context.Context, r store.Reader) {
		entries, err := r.Journal(ctx, store.JournalFilter{Limit: 1 << 20})
		require.NoError(w.T, err)
		for _, e := range entries {
			plain := withoutState(*e)
			w.Want.take(w.T, &plain)
			if e.At.After(w.clock) {
				w.clock = e.At
			}
		}
	})
}

// Open opens the store. What the engine would hold in memory is forgotten.
func (w *World) Open() {
	w.T.Helper()
	s, err := w.Opener.Open(context.Background(), store.Options{Now: func() time.Time { return w.clock }})
	require.NoError(w.T, err)
	w.Store = s
	clear(w.trees)
	require.NoError(w.T, s.Register(context.Background(), Definitions()))
}

// Reopen closes the store in good order and opens it again.
func (w *World) Reopen() {
	w.T.Helper()
	require.NoError(w.T, w.Store.Close())
	w.Open()
}

// Crash leaves the store as a killed process would, and opens it again.
func (w *World) Crash() {
	w.T.Helper()
	k, ok := w.Store.(store.Killer)
	require.True(w.T, ok, "the store cannot be killed")
	require.NoError(w.T, k.Kill())
	w.Open()
}

// Now moves the clock on by a second.
func (w *World) Now() time.Time {
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

// Update runs f, which appends commands, in one transaction of the store.
func (w *World) Update(f func(*Batch)) {
	w.T.Helper()
	require.NoError(w.T, w.TryUpdate(func(b *Batch) error {
		f(b)
		return nil
	}))
}

// TryUpdate is like Update for an f that may fail. The model takes what was acknowledged.
func (w *World) TryUpdate(f func(*Batch) error) error {
	w.T.Helper()
	var b *Batch
	err := w.Store.Update(context.Background(), func(tx store.Tx) error {
		b = &Batch{World: w, Tx: tx}
		return f(b)
	})
	if b == nil {
		return err
	}
	if err != nil {
		for _, e := range b.entries {
			delete(w.trees, e.Root)
		}
		return err
	}
	for _, e := range b.entries {
		w.Want.take(w.T, e)
	}
	w.Acknowledged = append(w.Acknowledged, b.entries...)
	return nil
}

// View runs a query.
func (w *World) View(f func(ctx context.Context, r store.Reader)) {
	w.T.Helper()
	require.NoError(w.T, w.Store.View(context.Background(), func(r store.Reader) error {
		f(context.Background(), r)
		return nil
	}))
}

// Batch is one transaction of a store.
type Batch struct {
	*World
	Tx      store.Tx
	entries []*store.Entry
	removed []workitem.CaseID
	Key     string          // idempotency key of the next command
	Answer  json.RawMessage // what its caller was told
}

// do runs one command: it loads the tree if need be, applies the events that make returns one after the other, and
// appends.
func (b *Batch) do(root workitem.CaseID, command string, events ...store.Event) *store.Entry {
	b.T.Helper()
	tree := b.tree(root)
	tree.Begin()
	for _, e := range events {
		require.NoError(b.T, tree.Apply(e))
	}
	entry := &store.Entry{Root: root, At: b.clock, Command: command, By: "tester", Key: b.Key, Answer: b.Answer,
		Events: events}
	b.Key, b.Answer = "", nil
	require.NoError(b.T, b.Tx.Append(context.Background(), entry, tree))
	b.entries = append(b.entries, entry)
	return entry
}

func (b *Batch) tree(root workitem.CaseID) *store.Tree {
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
	t := store.NewTree()
	t.Root = id
	b.trees[id] = t
	c := &store.Case{ID: id, Root: id, Number: 1}
	if n := len(input); n%2 == 0 {
		c.Options, c.Priority, c.Predecessor = json.RawMessage(`{"asked": ["for", 1]}`), n, workitem.CaseID{byte(n)}
	}
	b.do(id, "start article", b.openArticle(c, input)...)
	return id
}

func (b *Batch) openArticle(c *store.Case, input string) []store.Event {
	c.Workflow, c.Version, c.Fingerprint, c.Net = "article", "1", "fp-article", article
	c.State, c.Input, c.Created = store.CaseStarted, json.RawMessage(input), b.clock
	return append([]store.Event{&store.CaseOpened{Case: c}}, b.enable(c.ID, c.Root, "draft", 1, input)...)
}

// enable enables a task of an article, with one item and the job that does it.
func (b *Batch) enable(id, root workitem.CaseID, task string, gen int, input string) []store.Event {
	t, _ := article.TaskByName(task)
	it := &workitem.Item{ID: b.ids.NewID(b.clock), Case: id, Task: task, Generation: gen, Number: 1,
		State: workitem.Initialized, Attempt: 1, Input: json.RawMessage(input), Queue: "editors", Priority: gen,
		Created: b.clock}
	job := &store.Job{ID: b.ids.NewJobID(b.clock), Case: id, Root: root, Task: task, Generation: gen, Item: it.ID,
		Kind: store.JobRun, Queue: "editors", State: store.JobPending, Due: b.clock, Created: b.clock}
	return []store.Event{&store.TaskMoved{Case: id, Task: t, To: store.TaskEnabled, Generation: gen},
		&store.ItemOpened{Item: it}, &store.JobOpened{Job: job}}
}

// live finds the item and the job of a case that are under way.
func (b *Batch) live(root, id workitem.CaseID) (*store.Case, *workitem.Item, *store.Job) {
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
	events := []store.Event{
		&store.JobMoved{Case: id, Job: j.ID, To: store.JobRunning, Due: j.Due, Attempt: 1, Fence: j.Fence + 1,
			Owner: "worker/1",
			Lease: now.Add(time.Minute), At: now},
	}
	if c.Tasks[t].State == store.TaskEnabled {
		events = append(events, &store.TaskMoved{Case: id, Task: t, To: store.TaskStarted, Generation: it.Generation,
			Consumed: article.Consumes(nil, t, c.Marking)})
	}
	if !c.Begun {
		events = append(events, &store.CaseBegun{Case: id})
	}
	b.do(root, "job claim", append(events,
		&store.ItemMoved{Case: id, Item: it.ID, Action: workitem.Start, To: workitem.Started, By: "worker/1",
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
		&store.JobMoved{Case: id, Job: j.ID, To: store.JobDone, Due: j.Due, Attempt: j.Attempt, Fence: j.Fence,
			At: now},
		&store.ItemMoved{Case: id, Item: it.ID, Action: workitem.Complete, To: workitem.Completed,
			Output: json.RawMessage(output), By: "worker/1", At: now},
		&store.TaskMoved{Case: id, Task: t, To: store.TaskCompleted, Generation: it.Generation})
	target := next
	if it.Task == "review" && !again {
		target = "done"
	}
	into, ok := article.Target(t, target)
	require.True(b.T, ok)
	events = append(events, &store.Produced{Case: id, Task: t, Into: []net.ConditionID{into}})
	if target == "done" {
		end := &store.CaseEnded{Case: id, State: store.CaseCompleted, Output: json.RawMessage(output), At: now}
		if id == root {
			end.KeepUntil = now.Add(time.Hour)
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
		Number: it.Number + 1,
		State:  workitem.Initialized, Attempt: it.Attempt + 1, Predecessor: it.ID, Input: it.Input, Queue: it.Queue,
		Created: now, Due: now.Add(time.Hour)}
	job := &store.Job{ID: b.ids.NewJobID(now), Case: id, Root: root, Task: it.Task, Generation: it.Generation,
		Item: again.ID,
		Kind: store.JobRun, State: store.JobPending, Due: again.Due, Created: now}
	b.do(root, "item fail", append(b.endSteps(c),
		&store.JobMoved{Case: id, Job: j.ID, To: store.JobDone, Due: j.Due, Attempt: j.Attempt, Fence: j.Fence,
			Failure: f, At: now},
		&store.ItemMoved{Case: id, Item: it.ID, Action: workitem.Fail, To: workitem.Failed, Failure: f, By: "worker/1",
			At: now},
		&store.ItemOpened{Item: again}, &store.JobOpened{Job: job},
		&store.Noted{Case: id, Task: -1, Code: store.NoteIncident, Text: "a \"failure\" was\nnoted"})...)
}

// Cancel cancels a case with all that is live in it.
func (b *Batch) Cancel(root, id workitem.CaseID, reason *workitem.Failure) {
	b.T.Helper()
	now := b.Now()
	c := b.tree(root).Case(id)
	events := b.endSteps(c)
	for j := range c.Jobs.All() {
		events = append(events, &store.JobMoved{Case: id, Job: j.ID, To: store.JobCanceled, Due: j.Due,
			Attempt: j.Attempt,
			Fence:   j.Fence, At: now})
	}
	for it := range c.Items.All() {
		if it.State.Live() {
			events = append(events, &store.ItemMoved{Case: id, Item: it.ID, Action: workitem.Cancel,
				To:      workitem.Canceled,
				Failure: reason, At: now})
		}
	}
	b.do(root, "case cancel", append(events, &store.CaseEnded{Case: id, State: store.CaseCanceled, Failure: reason,
		At: now})...)
}

// Remove forgets a root case that has ended.
func (b *Batch) Remove(root workitem.CaseID) {
	b.T.Helper()
	b.tree(root)
	b.do(root, "case remove", &store.CaseRemoved{Case: root})
	delete(b.trees, root)
	b.removed = append(b.removed, root)
}

// StartIssue opens a root case with two child cases, and a job of the case's own.
func (b *Batch) StartIssue() (root workitem.CaseID, children []workitem.CaseID) {
	b.T.Helper()
	now := b.Now()
	root = b.ids.NewCaseID(now)
	t := store.NewTree()
	t.Root = root
	b.trees[root] = t
	articles, _ := issue.TaskByName("articles")
	events := []store.Event{
		&store.CaseOpened{Case: &store.Case{ID: root, Root: root, Number: 1, Workflow: "issue", Fingerprint: "fp-issue",
			Net: issue, State: store.CaseStarted, Created: now}},
		&store.TaskMoved{Case: root, Task: articles, To: store.TaskEnabled, Generation: 1},
		&store.JobOpened{Job: &store.Job{ID: b.ids.NewJobID(now), Case: root, Root: root, Kind: store.JobCall,
			Name:  "clean up",
			Input: json.RawMessage(`[1, 2]`), Detached: true, State: store.JobPending, Due: now.AddDate(100, 0, 0),
			Created: now}},
	}
	for i := range 2 {
		child := &store.Case{ID: b.ids.NewCaseID(now), Root: root, Parent: root, ParentTask: "articles", Generation: 1,
			Number: i + 1}
		children = append(children, child.ID)
		events = append(events, b.openArticle(child, `{"n":1}`)...)
	}
	b.do(root, "start issue", events...)
	return root, children
}

// Random does one step of a random history, and reports what it did.
func (b *Batch) Random(rng *rand.Rand) {
	b.T.Helper()
	var live [][2]workitem.CaseID
	var ended workitem.CaseID
	for _, root := range b.known() {
		if b.tree(root).Ended() && !pending(b.tree(root)) {
			ended = root
		}
		b.tree(root).Each(func(c *store.Case) {
			if c.Workflow == "article" && c.State == store.CaseStarted {
				live = append(live, [2]workitem.CaseID{root, c.ID})
			}
		})
	}
	if n := rng.IntN(10); n < 2 || len(live) == 0 {
		b.Start(`{"n":` + string('0'+rune(n)) + `}`)
		return
	} else if n == 2 {
		b.StartIssue()
		return
	} else if n == 3 && !ended.IsZero() {
		b.Remove(ended)
		return
	}
	at := live[rng.IntN(len(live))]
	_, it, _ := b.live(at[0], at[1])
	switch {
	case it.State == workitem.Started && rng.IntN(2) == 0:
		b.randomStep(at[0], at[1], rng)
	case rng.IntN(20) == 0:
		b.Cancel(at[0], at[1], &workitem.Failure{Code: "stopped"})
	case it.State == workitem.Initialized:
		b.Claim(at[0], at[1])
	case rng.IntN(4) == 0:
		b.Fail(at[0], at[1], &workitem.Failure{Code: "io", Message: "connection lost", Retryable: true,
			After: time.Second})
	default:
		b.Complete(at[0], at[1], `{"text":"…"}`, rng.IntN(3) == 0)
	}
}

// known lists the root cases that are under way, those of this batch among them, in the order of their creation.
func (b *Batch) known() []workitem.CaseID {
	roots := slices.Clone(b.Want.Roots)
	for _, e := range b.entries {
		if !slices.Contains(roots, e.Root) {
			roots = append(roots, e.Root)
		}
	}
	roots = slices.DeleteFunc(roots, func(root workitem.CaseID) bool { return slices.Contains(b.removed, root) })
	if len(roots) > 8 {
		roots = roots[len(roots)-8:]
	}
	return roots
}

// pending reports whether a tree has a job that is still to be done.
func pending(tree *store.Tree) bool {
	found := false
	tree.Each(func(c *store.Case) { found = found || c.Jobs.Len() > 0 })
	return found
}

func netOf(workflow string) *net.Net {
	if workflow == "issue" {
		return issue
	}
	return article
}
