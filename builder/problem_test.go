package builder_test

import (
	"cmp"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Each function below is a definition with something wrong. A comment says on which line which problem is reported:
//
//	// want CODE SUBJECT     the problem stands at this line
//	// want+ CODE SUBJECT    ... and names a line marked "party" as the place of the other party
//
// Several are separated by semicolons. A problem without a comment fails the test, as does a comment without a problem.

type anyWork = builder.Work[any, any]

func build[C any](b *builder.Builder[C]) error {
	_, err := b.Build()
	return err
}

func yes(any) bool { return true }

var truth = builder.From(func(context.Context, *activities.Activation) (bool, error) { return true, nil })

func badNames() error {
	b := builder.New[any]("my workflow")                              // want bad-name my workflow
	a := builder.Task(b, "2nd", anyWork{})                            // want bad-name 2nd
	c := b.Condition("")                                              // want bad-name
	builder.Job(b, "a.b", nothing, builder.JobOptions{})              // want bad-name a.b
	d := builder.Task(b, "ok", anyWork{Policy: workitem.NewPolicy("", // want bad-name ok
		func(workitem.Outcome) (workitem.Verdict, error) { return 0, nil })})
	e := builder.Task(b, "late", anyWork{ // want bad-name late
		Timers: []activities.Timer{activities.Escalate("", 0, escalate)},
	})
	b.Path(b.Start(), a, c, d, e, b.End())
	return build(b)
}

func nothing(context.Context, any) error                          { return nil }
func escalate(context.Context, *activities.Item) error            { return nil }
func number(context.Context, *activities.Activation) (int, error) { return 0, nil }
func late(context.Context, *activities.Activation) error          { return nil }

func badHandles() error {
	other := builder.New[string]("other")
	theirs := builder.Task(other, "theirs", builder.Work[string, string]{Input: builder.CaseInput(other)}) // party
	b := builder.New[any]("w")
	var none *builder.TaskRef[any, any]
	b.Path(b.Start(), none)                              // want nil-handle w
	b.Path(b.Start(), nil)                               // want nil-handle w
	builder.Flow(b, b.Start(), theirs).If(truth)         // want+ foreign-handle theirs
	b.Path(b.Start())                                    // want short-path w
	a := builder.Task(b, "a", builder.Work[string, any]{ // want+ foreign-handle a
		Input: builder.Output(theirs),
	})
	b.Path(b.Start(), a, b.End())
	b.Cancels(a, theirs, nil, none)    // want+ foreign-handle theirs; want nil-handle a
	b.Cancels(nil, a)                  // want nil-handle w
	b.Result(builder.CaseInput(other)) // want foreign-handle w
	return build(b)
}

func badKeep() error {
	b := builder.New[any]("w", builder.Keep(-5)) // want negative-duration w
	b.Path(b.Start(), builder.Task(b, "a", anyWork{}), b.End())
	return build(b)
}

func badFunctions() error {
	b := builder.New[any]("w")
	b.OnFailed(nil)                                             // want nil-function w
	builder.Job[any, any](b, "send", nil, builder.JobOptions{}) // want nil-function send
	a := builder.Task(b, "a", anyWork{                          // want nil-function a
		Split:  builder.Xor,
		Timers: []activities.Timer{{Name: "t"}},
	})
	d := b.Dynamic("d", builder.Choice{}) // want nil-function d; want missing-workflow d
	b.Path(b.Start(), a, d, b.End())
	builder.Flow(b, a, d).When(nil)                        // want nil-function a->d
	builder.Flow(b, a, b.End()).If(builder.Source[bool]{}) // want nil-function a->end
	b.Result(builder.Source[any]{})                        // want nil-function w
	b.Result(nil)                                          // want nil-function w
	return build(b)
}

func badGates() error {
	b := builder.New[any]("w")
	a := builder.Task(b, "a", anyWork{})         // want+ missing-split a
	x := builder.Task(b, "x", anyWork{Split: 9}) // want bad-rule x
	y := b.Routing("y", builder.Routing{Join: builder.Xor})
	z := builder.Task(b, "z", anyWork{}) // want+ missing-join z
	b.Path(b.Start(), a, x, z, b.End())
	b.Path(a, y, z) // party
	b.Path(x, y)
	return build(b)
}

func badRoutes() error {
	b := builder.New[any]("w")
	all := func(context.Context, *activities.Activation) ([]string, error) { return nil, nil }
	none := builder.Task(b, "none", anyWork{Split: builder.Or})              // want missing-route none
	both := builder.Task(b, "both", anyWork{Split: builder.Xor, Route: all}) // want ambiguous-route both
	auto := builder.Task(b, "auto", anyWork{                                 // want missing-route auto
		Split: builder.Xor, Auto: true, RouteByCaller: true,
	})
	some := builder.Task(b, "some", anyWork{Split: builder.Xor})           // party
	and := builder.Task(b, "and", anyWork{Split: builder.And, Route: all}) // want stray-route and
	one := builder.Task(b, "one", anyWork{Split: builder.Xor})             // party
	join := b.Routing("join", builder.Routing{Join: builder.Or})
	b.Path(b.Start(), none, both, auto, some, and, one, join, b.End())
	for _, n := range []builder.Node{none, both, auto, and} {
		b.Path(n, join)
	}
	builder.Flow(b, both, join).When(yes)
	builder.Flow(b, b.Start(), none).If(truth) // want stray-route start->none
	builder.Flow(b, one, join).Otherwise()     // want+ stray-route one->join
	builder.Flow(b, some, and).Otherwise()     // party
	builder.Flow(b, some, join).Otherwise()    // want+ ambiguous-default some->join
	more := builder.Task(b, "more", anyWork{}) // want no-flow-out more; want no-path-to-end more
	builder.Flow(b, some, more)                // want+ missing-route some->more
	builder.Flow(b, some, and).When(yes)       // want+ ambiguous-flow some->and
	return build(b)
}

func badConditions() error {
	b := builder.New[any]("w")
	gate := b.Routing("gate", builder.Routing{Split: builder.Xor}) // party
	a := builder.Task(b, "a", anyWork{Split: builder.Xor})         // party
	join := b.Routing("join", builder.Routing{Join: builder.Xor})
	b.Path(b.Start(), gate, a, join, b.End())
	builder.Flow(b, gate, a).When(func(builder.None) bool { return true })            // want+ stray-route gate->a
	builder.Flow(b, gate, join).WithoutOutput()                                       // want+ stray-route gate->join
	builder.Flow(b, a, join).WithoutOutput()                                          // party
	builder.Flow(b, a, b.End()).WithoutOutput()                                       // want+ ambiguous-default a->end
	builder.Flow(b, a, b.End()).If(builder.Map[any, bool](builder.CaseInput(b), nil)) // want nil-function a->end; want ambiguous-flow a->end
	return build(b)
}

type needy struct {
	X string `json:"x" validate:"required"`
}

func badInputs() error {
	b := builder.New[needy]("w")
	items := func(context.Context, *activities.Activation) ([]needy, error) { return nil, nil }
	a := builder.Task(b, "a", builder.Work[needy, needy]{}) // want missing-input a
	c := builder.Task(b, "c", builder.Work[needy, any]{     // want ambiguous-input c
		Input: builder.CaseInput(b),
		Items: items,
	})
	d := builder.Task(b, "d", builder.Work[any, needy]{Auto: true})                 // want missing-output d
	e := builder.Task(b, "e", builder.Work[needy, needy]{Input: builder.Output(a)}) // party
	f := builder.Task(b, "f", builder.Work[needy, any]{Input: builder.Output(e), Join: builder.Xor})
	g := builder.Task(b, "g", builder.Work[needy, needy]{ // want+ bad-source g
		Input: builder.Output(e),
	})
	h := builder.Task(b, "h", builder.Work[needy, any]{Input: fromCase}) // want bad-source h
	b.Path(b.Start(), a, g, c, d, e, f, h, b.End())
	b.Result(builder.From(number)) // want bad-source w; party
	b.Result(builder.CaseInput(b)) // want+ duplicate-result w
	return build(b)
}

var fromCase = builder.FromCase(func(*activities.Case) (needy, error) { return needy{}, nil })

func badTypes() error {
	b := builder.New[chan int]("w")                      // want bad-type w
	a := builder.Task(b, "a", builder.Work[any, struct { // want bad-type a
		X int `validate:"no-such-rule"`
	}]{})
	c := builder.Task(b, "c", builder.Work[error, any]{}) // want bad-type c
	b.Path(b.Start(), a, c, b.End())
	return build(b)
}

func badTimes() error {
	b := builder.New[any]("w")
	run := func(context.Context, any) (any, error) { return nil, nil }
	a := builder.Task(b, "a", anyWork{Timeout: -1, RunTimeout: -1}) // want negative-duration a; want negative-duration a
	c := builder.Task(b, "c", anyWork{RunTimeout: time.Second})     // want conflict c
	d := builder.Task(b, "d", anyWork{Auto: true, Run: run})        // want conflict d
	e := builder.Task(b, "e", anyWork{                              // want duplicate-timer e
		Timeout: 1,
		Timers:  []activities.Timer{activities.Timeout(2)},
	})
	f := builder.Task(b, "f", anyWork{ // want negative-duration f
		Timers: []activities.Timer{{Name: "t", After: -1, Task: late}},
	})
	b.Path(a, c, d, e, f, b.End())
	zero := builder.Task(b, "zero", anyWork{OnWorkItemStateChanged: activities.Retry(retry.Policy{})})         // want bad-retry zero
	slow := builder.Task(b, "slow", anyWork{OnWorkItemStateChanged: activities.Resume(retry.Constant(3, -1))}) // want bad-retry slow
	many := builder.Task(b, "many", anyWork{OnWorkItemStateChanged: activities.All(                            // want bad-retry many
		nil, func(context.Context, *activities.Change) error { panic("it is not called") },
		activities.Retry(retry.Policy{Attempts: 2, Base: 0.5}))})
	once := builder.Task(b, "once", anyWork{OnWorkItemStateChanged: activities.All(activities.Retry(retry.Constant(1, 0)),
		func(context.Context, *activities.Change) error { panic("it is not called") })})
	b.Path(b.Start(), zero, slow, many, once, a)
	builder.Job(b, "job", nothing, builder.JobOptions{Retry: retry.Constant(-1, -1)}) // want bad-retry job; party
	builder.Job(b, "job", nothing, builder.JobOptions{})                              // want+ duplicate-name job
	return build(b)
}

func badComposites() error {
	cb := builder.New[needy]("child")
	cb.Path(cb.Start(), cb.Routing("r", builder.Routing{}), cb.End())
	child := cb.MustBuild()
	same := builder.New[any]("w")
	same.Path(same.Start(), same.Routing("r", builder.Routing{}), same.End())
	b := builder.New[any]("w")
	var none *builder.Workflow[any]
	cases := func(context.Context, *activities.Activation) ([]activities.NewCase, error) { return nil, nil }
	k := builder.Composite(b, "k", none, builder.Cases[any]{})                                // want missing-workflow k
	l := builder.Composite(b, "l", child, builder.Cases[needy]{})                             // want missing-input l
	m := b.Dynamic("m", builder.Choice{Of: []builder.Definition{child, child}, Cases: cases}) // want duplicate-workflow m
	n := b.Dynamic("n", builder.Choice{                                                       // want missing-workflow n
		Of:    []builder.Definition{none, nil, child},
		Cases: cases,
	})
	o := builder.Composite(b, "o", child, builder.Cases[needy]{ // want conflict o
		Items:  func(context.Context, *activities.Activation) ([]needy, error) { return nil, nil },
		Timers: []activities.Timer{activities.Timeout(1)},
	})
	p := builder.Composite(b, "p", same.MustBuild(), builder.Cases[any]{}) // want recursive-composite p
	b.Path(b.Start(), k, l, m, n, o, p, b.End())
	return build(b)
}

func badRegions() error {
	b := builder.New[any]("w")
	a := builder.Task(b, "a", anyWork{})
	c := builder.Task(b, "c", anyWork{})
	b.Path(b.Start(), a, c)
	end := builder.Flow(b, c, b.End()) // party
	b.Cancels(b.Start(), a)            // want bad-region start
	b.Cancels(c)                       // want bad-region c
	b.Cancels(c, end)                  // want+ bad-region c->end
	b.Cancels(c, builder.Flow(b, a, c), a)
	return build(b)
}

func badNet() error {
	b := builder.New[any]("w")
	a := builder.Task(b, "a", anyWork{}) // party
	c := b.Condition("a")                // want+ duplicate-name a; want no-flow-in a; want unreachable a
	p, q := b.Condition("p"), b.Condition("q")
	b.Path(b.Start(), a, p)
	builder.Flow(b, p, q)                                   // want condition-to-condition p->q
	b.Path(c, builder.Task(b, "after", anyWork{}), b.End()) // want unreachable after
	b.Path(q, builder.Task(b, "last", anyWork{}), b.End())
	return build(b)
}

func badAfterwards() error {
	b := builder.New[any]("w")
	r := b.Routing("r", builder.Routing{})
	b.Path(b.Start(), r, b.End())
	b.MustBuild()
	b.Path(b.Start(), r)                    // want already-built w
	b.OnStarted(nil)                        // want already-built w; want nil-function w
	b.Cancels(r, r)                         // want already-built w
	b.Result(builder.CaseInput(b))          // want already-built w
	builder.Flow(b, r, b.End()).Otherwise() // want already-built w; want already-built w; want stray-route r->end
	return build(b)
}

func TestProblems(t *testing.T) {
	wants := wanted(t)
	for name, bad := range map[string]func() error{
		"badNames": badNames, "badKeep": badKeep, "badHandles": badHandles, "badFunctions": badFunctions, "badGates": badGates,
		"badRoutes": badRoutes, "badConditions": badConditions, "badInputs": badInputs, "badTypes": badTypes, "badTimes": badTimes,
		"badComposites": badComposites, "badRegions": badRegions, "badNet": badNet, "badAfterwards": badAfterwards,
	} {
		t.Run(name, func(t *testing.T) {
			var refused *builder.Error
			require.ErrorAs(t, bad(), &refused)
			w := wants[name]
			require.ElementsMatch(t, w.problems, found(refused.Problems, w.parties), refused.Error())
			require.True(t, slices.IsSortedFunc(refused.Problems, byLine), refused.Error())
		})
	}
}

func byLine(a, b net.Problem) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) }

// found writes problems as the comments do.
func found(problems []net.Problem, parties []int) []string {
	var lines []string
	for _, p := range problems {
		want := "want"
		if slices.Contains(parties, p.Other.Line) {
			want = "want+"
		}
		line := fmt.Sprintf("%d: %s %s %s", p.Pos.Line, want, p.Code, p.Subject)
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

type expectation struct {
	problems []string
	parties  []int
}

var want = regexp.MustCompile(`^want\+? [a-z-]+`)

// wanted reads the comments of this file, by function.
func wanted(t *testing.T) map[string]expectation {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "problem_test.go", nil, parser.ParseComments)
	require.NoError(t, err)
	wants := make(map[string]expectation)
	for name, obj := range file.Scope.Objects {
		var w expectation
		for _, group := range file.Comments {
			decl, ok := obj.Decl.(interface {
				Pos() token.Pos
				End() token.Pos
			})
			if !ok || group.Pos() < decl.Pos() || group.End() > decl.End() {
				continue
			}
			line := fset.Position(group.Pos()).Line
			for part := range strings.SplitSeq(strings.TrimSpace(strings.TrimPrefix(group.List[0].Text, "//")), ";") {
				if part = strings.TrimSpace(part); part == "party" {
					w.parties = append(w.parties, line)
				} else if want.MatchString(part) {
					w.problems = append(w.problems, fmt.Sprintf("%d: %s", line, part))
				}
			}
		}
		wants[name] = w
	}
	return wants
}

var place = regexp.MustCompile(`problem_test.go:\d+`)

func TestAnErrorListsAllProblems(t *testing.T) {
	err := badGates()
	require.Equal(t, `w: 3 problems
f:N: missing-split: task "a" has 2 flows (a->x, a->y) and no Split; give it And, Xor or Or (f:N)
f:N: bad-rule: the Split of task "x" is rule(9); use And, Xor or Or
f:N: missing-join: task "z" has 2 flows (x->z, y->z) and no Join; give it And, Xor or Or (f:N)`,
		place.ReplaceAllString(err.Error(), "f:N"))
	one := build(builder.New[any]("-"))
	require.ErrorContains(t, one, `bad-name: "-" cannot name a workflow`)
}

// The problems of an action speak of what was written, and not of the task that it is made of.
func TestProblemsOfAFunction(t *testing.T) {
	run := func(context.Context, string) (int, error) { return 1, nil }
	_, err := builder.Func("a", run, builder.AttemptTimeout(-time.Second))
	require.ErrorContains(t, err, `negative-duration: the AttemptTimeout of function "a" is -1s; give zero or more`)
	require.NotContains(t, err.Error(), "RunTimeout")
}

// What a flow would have connected is not reported beside the handle that is missing.
func TestAMissingNodeIsTheOnlyProblem(t *testing.T) {
	other := builder.New[any]("other")
	theirs := builder.Task(other, "theirs", anyWork{})
	for name, path := range map[string]func(b *builder.Builder[any], own builder.Node){
		"nil-handle":     func(b *builder.Builder[any], own builder.Node) { b.Path(b.Start(), own, nil, b.End()) },
		"foreign-handle": func(b *builder.Builder[any], own builder.Node) { b.Path(b.Start(), own, theirs, b.End()) },
		"short-path":     func(b *builder.Builder[any], own builder.Node) { b.Path(b.Start(), own); b.Path(b.End()) },
	} {
		b := builder.New[any]("w")
		path(b, builder.Task(b, "own", anyWork{}))
		var found *builder.Error
		require.ErrorAs(t, build(b), &found)
		require.Len(t, found.Problems, 1, "%v", found)
		require.Equal(t, name, string(found.Problems[0].Code))
	}
}
