package builder_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// sample is a workflow with some of everything. Each field of it can be changed alone.
type sample struct {
	name, version, task, queue, condition, job, jobQueue, child string
	priority                                                    int
	join, split                                                 builder.Rule
	auto, swap, otherwise, byCaller, route, region, result      bool
	policy                                                      workitem.Policy
	timer, timerOf                                              string
	timeout, runTimeout                                         time.Duration
	retry                                                       retry.Policy
	input, items, caseHook                                      bool
	hooks                                                       func(*builder.Work[any, any])
	allow, silence                                              net.Code
}

func (s sample) build() (*workflow.Definition, error) {
	cb := builder.New[any]("child", builder.Version(s.child))
	cb.Path(cb.Start(), cb.Routing("r", builder.Routing{}), cb.End())
	b := builder.New[any](text(s.name, "w"), builder.Version(s.version),
		builder.AllowUnsound(verify.ImproperCompletion, verify.DeadTask, s.allow), builder.Silence(s.silence))
	w := builder.Work[any, any]{
		Queue: s.queue, Priority: s.priority, Join: rule(s.join, builder.Xor), Split: rule(s.split, builder.Xor),
		Auto: s.auto, Policy: s.policy, Timeout: s.timeout, RunTimeout: s.runTimeout, RouteByCaller: s.byCaller,
	}
	if s.runTimeout > 0 {
		w.Run = func(context.Context, any) (any, error) { return nil, nil }
	}
	if s.input {
		w.Input = builder.CaseInput(b)
	}
	if s.items {
		w.Items = func(context.Context, *activities.Activation) ([]any, error) { return nil, nil }
	}
	if s.route {
		w.Route = func(context.Context, *activities.Activation) ([]string, error) { return nil, nil }
	}
	if s.timer != "" {
		w.Timers = append(w.Timers, activities.Escalate(s.timer, time.Hour, escalate))
	}
	if s.timerOf != "" {
		w.Timers = append(w.Timers, activities.TimeoutTask(time.Hour))
	}
	if s.hooks != nil {
		s.hooks(&w)
	}
	a := builder.Task(b, text(s.task, "a"), w)
	c := builder.Composite(b, "c", cb.MustBuild(), builder.Cases[any]{Join: builder.Xor})
	p := b.Condition(text(s.condition, "p"))
	b.Path(b.Start(), b.Routing("first", builder.Routing{}), p, a)
	flows := []builder.Node{b.End(), c}
	if s.swap {
		flows[0], flows[1] = flows[1], flows[0]
	}
	b.Path(a, flows[0])
	b.Path(a, flows[1])
	b.Path(c, p)
	if !s.route && !s.byCaller && s.split != builder.And {
		builder.Flow(b, a, b.End()).When(yes)
		if s.otherwise {
			builder.Flow(b, a, c).Otherwise()
		} else {
			builder.Flow(b, a, c).When(yes)
		}
	}
	if s.region {
		b.Cancels(a, c)
	}
	if s.result {
		b.Result(builder.CaseInput(b))
	}
	if s.caseHook {
		b.OnFailed(func(context.Context, *activities.Case) error { return nil })
	}
	if s.job != "" {
		builder.Job(b, s.job, nothing, builder.JobOptions{Queue: s.jobQueue, Retry: s.retry})
	}
	built, err := b.Build()
	if err != nil {
		return nil, err
	}
	return built.Definition, nil
}

func text(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func rule(r, otherwise builder.Rule) builder.Rule {
	if r == 0 {
		return otherwise
	}
	return r
}

type work = builder.Work[any, any]

// Everything that a definition says has a part in its fingerprint, and nothing else has.
func TestEveryChangeChangesTheFingerprint(t *testing.T) {
	on := func(context.Context, *activities.Activation) error { return nil }
	item := func(context.Context, *activities.Item) error { return nil }
	why := func(context.Context, *activities.Item, *workitem.Failure) error { return nil }
	payload := func(context.Context, *activities.Item, any) error { return nil }
	variants := []sample{
		{}, {name: "v"}, {version: "2"}, {task: "z"}, {queue: "q"}, {condition: "q"}, {job: "j"}, {job: "k"},
		{job: "j", jobQueue: "q"}, {job: "j", retry: retry.Constant(2, 1)}, {job: "j", retry: retry.Constant(3, 1)},
		{child: "2"}, {priority: 1}, {join: builder.Or}, {join: builder.And}, {split: builder.Or}, {split: builder.And},
		{auto: true}, {swap: true}, {otherwise: true}, {byCaller: true}, {route: true}, {region: true}, {result: true},
		{policy: workitem.Quorum(1)}, {policy: workitem.Quorum(2)}, {timer: "t"}, {timer: "u"}, {timerOf: "t"}, {timeout: 1},
		{timeout: 2}, {runTimeout: 1}, {runTimeout: 2}, {input: true}, {items: true}, {caseHook: true},
		{hooks: func(w *work) { w.Initialize = payload }}, {hooks: func(w *work) { w.Start = item }},
		{hooks: func(w *work) { w.Complete = payload }}, {hooks: func(w *work) { w.Fail = why }},
		{hooks: func(w *work) { w.Cancel = why }}, {hooks: func(w *work) { w.Reset = item }},
		{hooks: func(w *work) { w.OnEnabled = on }}, {hooks: func(w *work) { w.OnStarted = on }},
		{hooks: func(w *work) { w.OnCompleted = on }}, {hooks: func(w *work) { w.OnFailed = on }},
		{hooks: func(w *work) { w.OnCanceled = on }}, {hooks: func(w *work) { w.OnDisabled = on }},
		{hooks: func(w *work) { w.OnWorkItemStateChanged = activities.Retry(retry.Constant(2, 0)) }},
		{hooks: func(w *work) { w.Item.OnInitialized = item }}, {hooks: func(w *work) { w.Item.OnStarted = item }},
		{hooks: func(w *work) { w.Item.OnCompleted = item }}, {hooks: func(w *work) { w.Item.OnFailed = item }},
		{hooks: func(w *work) { w.Item.OnCanceled = item }}, {hooks: func(w *work) { w.Item.OnReset = item }},
		{allow: verify.NoOptionToComplete}, {allow: verify.Unbounded}, {silence: verify.XorJoinTwice}, {silence: verify.Undecided},
	}
	seen := make(map[string]int)
	for i, s := range variants {
		s.allow, s.silence = cmp.Or(s.allow, verify.ImproperCompletion), cmp.Or(s.silence, verify.OrJoinIsAnd)
		d, err := s.build()
		require.NoError(t, err, "variant %d", i)
		again, err := s.build()
		require.NoError(t, err)
		require.Equal(t, string(d.Document), string(again.Document))
		require.Equal(t, d.Fingerprint, again.Fingerprint)
		require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{32}$`), d.Fingerprint)
		require.True(t, json.Valid(d.Document))
		require.True(t, d.Code)
		if other, ok := seen[d.Fingerprint]; ok {
			t.Errorf("variants %d and %d have one fingerprint: %s", other, i, d.Document)
		}
		seen[d.Fingerprint] = i
	}
}

func TestADescriptionMayBeReworded(t *testing.T) {
	one := builder.New[any]("w", builder.Describe("one"))
	two := builder.New[any]("w", builder.Describe("two"))
	for _, b := range []*builder.Builder[any]{one, two} {
		b.Path(b.Start(), b.Routing("r", builder.Routing{}), b.End())
	}
	require.Equal(t, one.MustBuild().Fingerprint, two.MustBuild().Fingerprint)
}

// definition compiles a net as a reader of some text would.
func definition(name string, tasks ...net.Task) *workflow.Definition {
	nd := &net.Definition{Name: name, Tasks: tasks, Conditions: []net.Condition{
		{Name: "begin", Role: net.Start}, {Name: "done", Role: net.End}}}
	for _, task := range tasks {
		nd.Flows = append(nd.Flows, net.Flow{From: "begin", To: task.Name}, net.Flow{From: task.Name, To: "done"})
	}
	return &workflow.Definition{Name: name, Net: net.MustCompile(nd), Tasks: make([]workflow.Task, len(tasks))}
}

func TestSealMakesADocumentOfAnyDefinition(t *testing.T) {
	child := definition("child", net.Task{Name: "b"})
	d := definition("parent", net.Task{Name: "a", Kind: net.Composite, Of: []string{"child"}}, net.Task{Name: "x"})
	d.Tasks[0].Of = map[string]*workflow.Definition{"child": child}
	d.Tasks[1].Queue = "people"
	require.NoError(t, builder.Seal(d, builder.Note{Task: "x", Text: "retry: 4:1s"}, builder.Note{Text: "from a text"}))
	require.False(t, d.Code)
	require.NotEmpty(t, child.Fingerprint)
	require.Equal(t, `{"name":"parent","conditions":[{"name":"begin","role":"start"},{"name":"done","role":"end"}],`+
		`"tasks":[{"name":"a","kind":"composite","join":"and","split":"and","workflows":[{"name":"child","fingerprint":"`+
		child.Fingerprint+`"}],"policy":"default"},{"name":"x","join":"and","split":"and","queue":"people",`+
		`"policy":"default","notes":["retry: 4:1s"]}],"flows":[{"from":"begin","to":"a"},{"from":"a","to":"done"},`+
		`{"from":"begin","to":"x"},`+
		`{"from":"x","to":"done"}],"notes":["from a text"]}`, string(d.Document))
	before := d.Fingerprint
	require.NoError(t, builder.Seal(d))
	require.NotEqual(t, before, d.Fingerprint, "notes count")
}

func TestSealRefusesWhatDoesNotFit(t *testing.T) {
	require.ErrorContains(t, builder.Seal(nil), "it has no net")
	d := definition("w", net.Task{Name: "a"})
	d.Tasks = nil
	require.EqualError(t, builder.Seal(d), "seal w: it has 0 tasks, and its net has 1")

	d = definition("w", net.Task{Name: "a", Kind: net.Composite, Of: []string{"w"}})
	d.Tasks[0].Of = map[string]*workflow.Definition{"w": d}
	require.ErrorContains(t, builder.Seal(d), "seal w: a composite task within it runs w again")
	d.Tasks[0].Of = map[string]*workflow.Definition{"none": nil}
	require.ErrorContains(t, builder.Seal(d), "workflow none of task a: ")
}

func ExampleSeal() {
	d := definition("errand", net.Task{Name: "go"})
	if err := builder.Seal(d); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Fingerprint)
	fmt.Printf("%.45s...\n", d.Document)
	// Output:
	// b0ec99b07dfdc687e74cb20d202be728
	// {"name":"errand","conditions":[{"name":"begin...
}
