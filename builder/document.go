package builder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Note describes code of a definition in words, where it is known what the code does: "retry: 4 attempts,
// exponential 1s x2". Notes are part of the document, and therefore of the fingerprint.
type Note struct {
	Task string // "" for the workflow
	Text string
}

// Seal sets the Document, Fingerprint and Code of a definition. [Builder.Build] calls it; use Seal for definitions
// that are made in another way, such as parsed from text. Workflows of composite tasks that are not sealed yet are
// sealed first. The definition must not be changed afterwards.
//
// The document is JSON with its keys in a fixed order and without positions, so that a definition has the same
// fingerprint wherever it stands in its file. It is an error if Tasks and Net do not fit together, or if a composite
// task runs its own workflow. Where the notes say all that the code does, so that any program can run the definition,
// set Code to false afterwards.
func Seal(d *workflow.Definition, notes ...Note) error { return seal(d, notes, nil) }

func seal(d *workflow.Definition, notes []Note, above []*workflow.Definition) error {
	switch {
	case d == nil || d.Net == nil:
		return fmt.Errorf("seal a definition: it has no net")
	case len(d.Tasks) != d.Net.NumTasks():
		return fmt.Errorf("seal %s: it has %d tasks, and its net has %d", d.Name, len(d.Tasks), d.Net.NumTasks())
	case slices.Contains(above, d):
		return fmt.Errorf("seal %s: a composite task within it runs %s again", above[0].Name, d.Name)
	}
	for i := range d.Tasks {
		for _, name := range sortedKeys(d.Tasks[i].Of) {
			if child := d.Tasks[i].Of[name]; child == nil || child.Fingerprint == "" {
				if err := seal(child, nil, append(above, d)); err != nil {
					return fmt.Errorf("workflow %s of task %s: %w", name, d.Net.TaskName(net.TaskID(i)), err)
				}
			}
		}
	}
	doc := documentOf(d, notes)
	data, err := canonical(doc)
	if err != nil {
		return fmt.Errorf("seal %s: %w", d.Name, err)
	}
	sum := sha256.Sum256(data)
	d.Document, d.Fingerprint, d.Code = data, hex.EncodeToString(sum[:16]), doc.holdsCode()
	return nil
}

func canonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "a->b" is to be read
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// document is the form of Definition.Document. What is absent has its zero value.
type document struct {
	Name       string              `json:"name"`
	Version    string              `json:"version,omitempty"`
	Conditions []documentCondition `json:"conditions"`
	Tasks      []documentTask      `json:"tasks"`
	Flows      []documentFlow      `json:"flows"`
	Jobs       []documentJob       `json:"jobs,omitempty"`
	Handlers   []string            `json:"handlers,omitempty"` // of a case's end; one that is a job, too, is called later
	Topics     []string            `json:"topics,omitempty"`
	Notes      []string            `json:"notes,omitempty"`
	Code       []string            `json:"code,omitempty"` // which functions there are
	Allows     []net.Code          `json:"allows,omitempty"`
	Silences   []net.Code          `json:"silences,omitempty"`
}

type documentCondition struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"`
}

type documentTask struct {
	Name       string                  `json:"name"`
	Kind       string                  `json:"kind,omitempty"`
	Join       string                  `json:"join"`
	Split      string                  `json:"split"`
	Cancels    []string                `json:"cancels,omitempty"`
	Workflows  []documentChild         `json:"workflows,omitempty"`
	Queue      string                  `json:"queue,omitempty"`
	Priority   int                     `json:"priority,omitempty"`
	Policy     string                  `json:"policy"`
	Auto       bool                    `json:"auto,omitempty"`
	RunTimeout string                  `json:"runTimeout,omitempty"`
	Hours      schedule.Window         `json:"hours,omitzero"`
	Batch      *workflow.BatchDocument `json:"batch,omitempty"`
	Timers     []documentTimer         `json:"timers,omitempty"`
	Notes      []string                `json:"notes,omitempty"`
	Code       []string                `json:"code,omitempty"`
}

type documentChild struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}

type documentTimer struct {
	Name  string `json:"name"`
	After string `json:"after"`
	Of    string `json:"of"`
	Does  string `json:"does,omitempty"`
}

type documentFlow struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type documentJob struct {
	Name  string          `json:"name"`
	Queue string          `json:"queue,omitempty"`
	Retry string          `json:"retry"`
	Hours schedule.Window `json:"hours,omitzero"`
}

func documentOf(d *workflow.Definition, notes []Note) *document {
	nd := d.Net.Definition()
	doc := &document{
		Name: d.Name, Version: d.Version, Notes: notesOf(notes, ""), Code: caseCode(d), Topics: d.Topics,
		Allows: d.Verification.Allowed, Silences: d.Verification.Silenced,
	}
	for _, c := range nd.Conditions {
		doc.Conditions = append(doc.Conditions, documentCondition{c.Name, [...]string{"", "start", "end"}[c.Role]})
	}
	for i := range nd.Tasks {
		doc.Tasks = append(doc.Tasks, documentTaskOf(&nd.Tasks[i], &d.Tasks[i], notes))
	}
	for _, f := range nd.Flows {
		doc.Flows = append(doc.Flows, documentFlow{f.From, f.To})
	}
	if len(d.Handlers) > 0 {
		doc.Handlers = sortedKeys(d.Handlers)
	}
	for _, name := range sortedKeys(d.Calls) {
		call := d.Calls[name]
		doc.Jobs = append(doc.Jobs, documentJob{name, call.Queue, call.Retry.String(), call.Hours})
	}
	return doc
}

func documentTaskOf(t *net.Task, spec *workflow.Task, notes []Note) documentTask {
	dt := documentTask{
		Name: t.Name, Kind: [...]string{"", "routing", "composite"}[t.Kind], Join: t.Join.String(), Split: t.Split.String(),
		Cancels: t.Cancels, Queue: spec.Queue, Priority: spec.Priority, Policy: spec.Policy.Name(), Auto: spec.Auto,
		Hours: spec.Hours, Notes: notesOf(notes, t.Name), Code: taskCode(spec),
	}
	for _, name := range sortedKeys(spec.Of) {
		dt.Workflows = append(dt.Workflows, documentChild{name, spec.Of[name].Fingerprint})
	}
	if spec.RunTimeout != 0 {
		dt.RunTimeout = spec.RunTimeout.String()
	}
	if b := spec.Batch; b != nil {
		dt.Batch = &workflow.BatchDocument{Most: b.Most, Wait: b.Wait.String(), Keys: b.Key != nil}
	}
	for _, timer := range spec.Timers {
		of := "item"
		if timer.Task != nil {
			of = "task"
		}
		does := ""
		if timer.Does != workitem.NoAction {
			does = timer.Does.String()
		}
		dt.Timers = append(dt.Timers, documentTimer{timer.Name, timer.After.String(), of, does})
	}
	return dt
}

func notesOf(notes []Note, task string) []string {
	var texts []string
	for _, n := range notes {
		if n.Task == task {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// holdsCode reports whether the definition is more than its document says. Timers, policies and jobs are code too.
func (doc *document) holdsCode() bool {
	if len(doc.Code)+len(doc.Jobs)+len(doc.Handlers) > 0 {
		return true
	}
	return slices.ContainsFunc(doc.Tasks, func(t documentTask) bool { return len(t.Code)+len(t.Timers) > 0 })
}

// code lists the names of those functions that are there.
type code []string

func (c *code) add(name string, there bool) {
	if there {
		*c = append(*c, name)
	}
}

func caseCode(d *workflow.Definition) []string {
	var c code
	h := &d.Hooks
	c.add("accept", d.Accept != nil)
	c.add("output", d.Output != nil)
	c.add("identity", d.Identity != nil)
	c.add("deadLetter", d.DeadLetter != nil)
	c.add("onInitialized", h.OnInitialized != nil)
	c.add("onStarted", h.OnStarted != nil)
	c.add("onCompleted", h.OnCompleted != nil)
	c.add("onFailed", h.OnFailed != nil)
	c.add("onCanceled", h.OnCanceled != nil)
	return c
}

func taskCode(t *workflow.Task) []string {
	var c code
	c.add("inputs", t.Inputs != nil)
	c.add("route", t.Route != nil)
	c.add("cases", t.Cases != nil)
	c.add("accept", t.Accept != nil)
	c.add("run", t.HasWorker())
	c.add("deadLetter", t.DeadLetter != nil)
	for a := workitem.Initialize; a <= workitem.Reset; a++ {
		c.add(a.String(), t.Actions[a] != nil)
	}
	h, i := &t.Hooks, &t.ItemHooks
	c.add("onEnabled", h.OnEnabled != nil)
	c.add("onStarted", h.OnStarted != nil)
	c.add("onCompleted", h.OnCompleted != nil)
	c.add("onFailed", h.OnFailed != nil)
	c.add("onCanceled", h.OnCanceled != nil)
	c.add("onDisabled", h.OnDisabled != nil)
	c.add("onWorkItemStateChanged", h.OnWorkItemStateChanged != nil)
	c.add("item onInitialized", i.OnInitialized != nil)
	c.add("item onStarted", i.OnStarted != nil)
	c.add("item onCompleted", i.OnCompleted != nil)
	c.add("item onFailed", i.OnFailed != nil)
	c.add("item onCanceled", i.OnCanceled != nil)
	c.add("item onReset", i.OnReset != nil)
	return c
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
