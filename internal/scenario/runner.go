package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Mismatch is a command whose output was not the expected one.
type Mismatch struct {
	Command *Command
	Diff    string // unified, expected against printed
	Why     string // the explanation of a printed code; "" if there is none
}

// Result is the result of a scenario file.
type Result struct {
	Outputs    [][]string // what each command printed
	Mismatches []Mismatch
	Broken     error // the errors of the integrity check; nil if there are none
}

// Run executes a scenario file on a store, usually a new one in memory, with a virtual clock. The error is not about
// mismatches, but about a store that could not be used.
func Run(ctx context.Context, f *File, o store.Opener) (*Result, error) {
	r, err := newRunner(ctx, o)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	for _, c := range f.Commands {
		output, why := r.command(ctx, c)
		result.Outputs = append(result.Outputs, output)
		if diff := Diff(c.Expected, output); diff != "" {
			result.Mismatches = append(result.Mismatches, Mismatch{Command: c, Diff: diff, Why: why})
		}
	}
	result.Broken = r.close(ctx)
	return result, nil
}

// runner is the state of Run.
type runner struct {
	opener   store.Opener
	clock    *virtual.Clock
	engine   *engine.Engine
	known    map[string]*workflow.Definition // by name, the last one defined
	versions []engine.Workflow               // all definitions so far
	roots    map[string]workitem.CaseID      // by the name from start
	last     string                          // the name of the case that was started last
}

func newRunner(ctx context.Context, o store.Opener) (*runner, error) {
	r := &runner{
		opener: o, clock: virtual.NewClock(), known: make(map[string]*workflow.Definition),
		roots: make(map[string]workitem.CaseID),
	}
	return r, r.open(ctx)
}

// close runs the integrity check and closes the engine.
func (r *runner) close(ctx context.Context) error {
	return errors.Join(integrity.Check(ctx, r.engine), r.engine.Close())
}

// open opens the engine with all definitions. If that fails, the closed engine stays, and refuses the commands that
// follow.
func (r *runner) open(ctx context.Context) error {
	e, err := engine.Config{
		Clock: r.clock, Logger: slog.New(slog.DiscardHandler),
		CallbackTimeout: time.Hour, // no output may depend on the speed of the machine
	}.Open(ctx, r.opener, r.versions...)
	if err == nil {
		r.engine = e
	}
	return err
}

// command executes a command, and returns the lines that it prints, and the explanation of the code among them.
func (r *runner) command(ctx context.Context, c *Command) (lines []string, why string) {
	action, err := c.Action()
	if err == nil {
		lines, err = r.do(ctx, c, action)
	}
	if err == nil {
		err = r.engine.Drain(ctx)
	}
	var problems problems
	switch {
	case errors.As(err, &problems):
		return problems.codes(), err.Error()
	case err != nil:
		return failure(err), err.Error()
	case len(lines) == 0:
		return []string{"ok"}, ""
	}
	return lines, ""
}

func (r *runner) do(ctx context.Context, c *Command, a Action) ([]string, error) {
	switch a.Verb {
	case VerbDefine:
		return nil, r.define(ctx, c)
	case VerbCheck:
		return r.check(a)
	case VerbStart:
		return nil, r.start(ctx, a)
	case VerbItemNew:
		return nil, r.newItem(ctx, a)
	case VerbItemStart, VerbItemComplete, VerbItemFail, VerbItemCancel, VerbItemReset:
		return nil, r.act(ctx, a)
	case VerbItemRetry, VerbItemSkip, VerbItemGiveUp:
		return nil, r.repair(ctx, a)
	case VerbDo:
		return nil, r.startAndComplete(ctx, a)
	case VerbCaseCancel, VerbCaseSuspend, VerbCaseResume, VerbCaseMove, VerbCaseForce:
		return nil, r.onCase(ctx, a)
	case VerbAdvance:
		return nil, r.clock.Advance(ctx, r.engine, a.Duration)
	case VerbCrash:
		if err := r.engine.Kill(); err != nil {
			return nil, err
		}
		return nil, r.open(ctx)
	case VerbShow:
		return r.show(ctx, a)
	}
	return nil, fmt.Errorf("%w: %v", errSyntax, c.Words)
}

var (
	errSyntax  = errors.New("not a command")
	errNoItems = errors.New("no items can be added")
)

// define adds workflows. An engine is opened with its definitions, so it is replaced by a new one.
func (r *runner) define(ctx context.Context, c *Command) error {
	parsed, err := c.Workflows()
	if err != nil {
		return err
	}
	defs, refused, err := Compile(parsed, r.known)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return problems(refused)
	}
	if err := r.engine.Close(); err != nil {
		return err
	}
	r.adopt(defs)
	return r.open(ctx)
}

// adopt makes definitions the current ones of their names. A definition that equals an earlier one replaces that.
// Composite tasks of all definitions use the current ones from now on.
func (r *runner) adopt(defs []*workflow.Definition) {
	for _, d := range defs {
		same := r.takeOut(d.Fingerprint)
		if same == nil {
			if same = d; r.known[d.Name] != nil {
				d.Version = fmt.Sprint(len(r.versions) + 1)
			}
		}
		r.versions = append(r.versions, same) // a start uses the last one of its name
		r.known[d.Name] = same
	}
	for _, v := range r.versions {
		d := v.Untyped()
		for t := range d.Tasks {
			for name := range d.Tasks[t].Of {
				d.Tasks[t].Of[name] = r.known[name]
			}
		}
	}
}

// takeOut removes the version with a fingerprint, and returns it; nil if there is none.
func (r *runner) takeOut(fingerprint string) *workflow.Definition {
	i := slices.IndexFunc(r.versions, func(w engine.Workflow) bool { return w.Untyped().Fingerprint == fingerprint })
	if i < 0 {
		return nil
	}
	d := r.versions[i].Untyped()
	r.versions = slices.Delete(r.versions, i, i+1)
	return d
}

// problems are the reasons for which definitions were refused.
type problems []net.Problem

// Error returns them as text, one per line.
func (p problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// codes returns the lines that define prints, without duplicates.
func (p problems) codes() []string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = string(p[i].Code) + " " + p[i].Subject
	}
	return slices.Compact(lines)
}

func (r *runner) start(ctx context.Context, a Action) error {
	d := r.known[a.Workflow]
	if d == nil {
		return undefined(a.Workflow)
	}
	if _, taken := r.roots[a.Name]; taken {
		return syntaxf("a case was already started as %q; name this one with \"start %s as NAME\"", a.Name, a.Workflow)
	}
	started, err := r.engine.Do(ctx, workflow.Start(d.Name, nil))
	if err != nil {
		return err
	}
	r.roots[a.Name], r.last = started.Case, a.Name
	return nil
}

func undefined(name string) error {
	return fmt.Errorf("no workflow %q was defined: %w", name, engine.ErrNotFound)
}

// verbs are the actions of the verbs.
var verbs = map[Verb]workitem.Action{
	VerbItemStart: workitem.Start, VerbItemComplete: workitem.Complete, VerbItemFail: workitem.Fail,
	VerbItemCancel: workitem.Cancel, VerbItemReset: workitem.Reset,
}

// act executes an action on a work item.
func (r *runner) act(ctx context.Context, a Action) error {
	id, err := r.item(ctx, a)
	if err != nil {
		return err
	}
	c := workflow.Act(id, verbs[a.Verb], nil)
	c.Route = a.To
	return r.send(ctx, c)
}

// onCase cancels, suspends, resumes or moves a case.
func (r *runner) onCase(ctx context.Context, a Action) error {
	id, err := r.caseAt(ctx, a.Case)
	switch {
	case err != nil:
		return err
	case a.Verb == VerbCaseMove:
		return r.send(ctx, workflow.Move(id, a.From, a.Target))
	case a.Verb == VerbCaseForce:
		return r.send(ctx, workflow.Move(id, a.From, a.Target, workflow.Force()))
	case a.Verb == VerbCaseSuspend:
		return r.send(ctx, workflow.Suspend(id))
	case a.Verb == VerbCaseResume:
		return r.send(ctx, workflow.Resume(id, nil))
	}
	return r.send(ctx, workflow.Cancel(id, nil))
}

// repair retries an item, skips it, or gives it up.
func (r *runner) repair(ctx context.Context, a Action) error {
	id, err := r.item(ctx, a)
	if err != nil {
		return err
	}
	c := workflow.Retry(id, nil)
	switch a.Verb {
	case VerbItemSkip:
		c = workflow.Skip(id, nil)
		c.Route = a.To
	case VerbItemGiveUp:
		c = workflow.GiveUp(id)
	}
	return r.send(ctx, c)
}

// send executes a command without a result.
func (r *runner) send(ctx context.Context, c workflow.Command) error {
	_, err := r.engine.Do(ctx, c)
	return err
}

// startAndComplete starts and completes an item in one transaction.
func (r *runner) startAndComplete(ctx context.Context, a Action) error {
	id, err := r.item(ctx, a)
	if err != nil {
		return err
	}
	return r.engine.Update(ctx, func(tx *engine.Tx) error {
		if _, err := tx.Do(ctx, workflow.Act(id, workitem.Start, nil)); err != nil {
			return err
		}
		complete := workflow.Act(id, workitem.Complete, nil)
		complete.Route = a.To
		_, err := tx.Do(ctx, complete)
		return err
	})
}

func (r *runner) newItem(ctx context.Context, a Action) error {
	_, c, err := r.view(ctx, a.Case)
	if err != nil {
		return err
	}
	if t, ok := c.Net.TaskByName(a.Task); ok && c.Net.Task(t).Kind != net.Atomic {
		return fmt.Errorf("task %q of workflow %s is a %s and has no work items of its own: %w",
			a.Task, c.Workflow, kindWords[c.Net.Task(t).Kind], errNoItems)
	}
	return r.send(ctx, workflow.AddItem(c.ID, a.Task, nil))
}

// failure returns the line that a command with this error prints.
func failure(err error) []string {
	var syntax *SyntaxError
	var transition *workitem.TransitionError
	switch {
	case errors.As(err, &syntax), errors.Is(err, errSyntax):
		return []string{"error: " + CodeSyntax}
	case errors.As(err, &transition):
		return []string{"error: illegal-transition"}
	case errors.Is(err, workflow.ErrNotFailed):
		return []string{"error: not-failed"}
	case errors.Is(err, workflow.ErrSuspended):
		return []string{"error: suspended"}
	case errors.Is(err, workflow.ErrDeadEnd):
		return []string{"error: dead-end"}
	case errors.Is(err, engine.ErrInactive), errors.Is(err, errNoItems):
		return []string{"error: not-active"}
	case errors.Is(err, engine.ErrBadRoute):
		return []string{"error: bad-route"}
	case errors.Is(err, errAmbiguous):
		return []string{"error: ambiguous"}
	case errors.Is(err, engine.ErrNotFound):
		return []string{"error: not-found"}
	case errors.Is(err, engine.ErrRunaway):
		return []string{"error: runaway"}
	}
	return []string{"error: internal: " + strings.ReplaceAll(err.Error(), "\n", " ")}
}

// left returns the time until a job is due, in the form of Go.
func left(due, now time.Time) string { return "+" + max(0, due.Sub(now)).String() }
