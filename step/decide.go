package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// choice is what is recorded of a decision between branches, as the result of its step; in the details of the
// failure, if the branch that was chosen had failed.
type choice struct {
	Branch   int      `json:"branch"`             // the index of the one that was chosen
	Path     string   `json:"path"`               // of that one, for errors
	Canceled []int    `json:"canceled,omitempty"` // of the others, those that had not returned
	Dropped  []string `json:"dropped,omitempty"`  // the steps of the others, which may be left over, and are not begun
}

// verdict is why a branch no longer continues. It is made of what is recorded, so that its error is the same in every
// run.
type verdict struct{ by, chosen string } // the name of the choice, and the path of the branch that was chosen

func (ch choice) verdict(by string) *verdict { return &verdict{by, ch.Path} }

// of is the error of a branch that was not chosen. [All] and [Map] choose the branch that fails first.
func (v *verdict) of(b *branch) error {
	return fmt.Errorf("branch %s was chosen by %q, and branch %s was not: %w", v.chosen, v.by, b.path, ErrCanceled)
}

func choiceOf(s *workitem.Step, n int) (choice, error) {
	raw := s.Result
	if s.State == workitem.StepFailed && s.Failure != nil {
		raw = s.Failure.Details
	}
	var ch choice
	err := json.Unmarshal(raw, &ch)
	if err == nil && (ch.Branch < 0 || ch.Branch >= n) {
		err = fmt.Errorf("there is no branch %d", ch.Branch)
	}
	if err != nil {
		return ch, mistakef(ErrChanged, "step %q: its choice can't be read: %v", s.Name, err)
	}
	return ch, nil
}

// rule says when branches can be decided between, and which are in question then.
type rule struct {
	word    string
	ready   func(*join) bool
	matches func(*branch) bool
}

var (
	ruleAll = rule{"all", func(j *join) bool { return j.failed > 0 || j.left == 0 },
		func(b *branch) bool { return b.known && b.err != nil }}
	ruleAny = rule{"any", func(j *join) bool { return j.done > 0 || j.left == 0 },
		func(b *branch) bool { return b.known && b.err == nil }}
	ruleRace = rule{"race", func(j *join) bool { return j.failed+j.done > 0 },
		func(b *branch) bool { return b.known }}
)

// All waits until every branch has returned. As soon as one fails, All returns its error and cancels the others: their
// contexts end, and their waits are dropped. Branch.Wait returns the results.
//
// Which error was first is recorded (as the step "(all 1)", where 1 is the number of the call in its branch), so that
// the function returns the same error when it runs again.
func All(ctx context.Context, branches ...AnyBranch) error {
	at := here()
	s, err := currentRun(ctx, title{word: "step.All"})
	if err != nil {
		return err
	}
	_, err = decide(ctx, at, s.group("all"), ruleAll, branches)
	return err
}

// Any waits until one branch has succeeded, and returns its index. The others are canceled, as in All. The choice
// is recorded under the name, so that the other branches are not continued when the job runs again. If all
// branches fail, the error joins theirs, and the index is -1.
func Any(ctx context.Context, name string, branches ...AnyBranch) (int, error) {
	at := here()
	return decide(ctx, at, name, ruleAny, branches)
}

// Race waits until one branch has returned, and returns its index and its error. The others are canceled, as in All.
// The choice is recorded under the name, so that the other branches are not continued when the job runs again.
//
//	answer := step.Go(ctx, func(ctx context.Context) (Answer, error) { return step.Await[Answer](ctx, "answer") })
//	nudge := step.Go(ctx, func(ctx context.Context) (bool, error) { return true, step.Sleep(ctx, "nudge", time.Hour) })
//	first, err := step.Race(ctx, "answered?", answer, nudge)
//
// If several have ended while the job was suspended, the one that ended first is chosen. The index is -1 if the error
// is not that of a branch.
func Race(ctx context.Context, name string, branches ...AnyBranch) (int, error) {
	at := here()
	return decide(ctx, at, name, ruleRace, branches)
}

// group names the next call of a function that has no name of its own.
func (s *scope) group(word string) string {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	b := s.branch
	b.groups++
	if b.path == "" {
		return fmt.Sprintf("(%s %d)", word, b.groups)
	}
	return fmt.Sprintf("(%s %d of branch %s)", word, b.groups, b.path)
}

func decide(ctx context.Context, at uintptr, name string, by rule, branches []AnyBranch) (int, error) {
	what := title{name: name}
	s, err := currentRun(ctx, what)
	if err != nil {
		return -1, err
	}
	bs, err := branchesOf(s, what, branches)
	if err != nil {
		return -1, err
	}
	if len(bs) == 0 && by.word != ruleAll.word {
		return -1, s.run.misuse("%v, at %s: there is no branch to choose", what, place(at))
	}
	c, err := begin(ctx, at, by.ask(name, len(bs)), nil, nil)
	if err != nil {
		return -1, err
	}
	defer c.end()
	i, err := c.decide(by, bs)
	if err != nil {
		return -1, c.wrap(err)
	}
	return i, by.result(i, bs)
}

func (by rule) ask(name string, n int) workitem.Step {
	return workitem.Step{Name: name, Kind: workitem.StepChoice, Input: fmt.Appendf(nil, `{"%s":%d}`, by.word, n)}
}

// result is the error of the branch that was chosen. That none was means of All that none failed, of Any that each did.
func (by rule) result(i int, bs []*branch) error {
	switch {
	case i >= 0:
		bs[i].run.mu.Lock()
		defer bs[i].run.mu.Unlock()
		return bs[i].err
	case by.word == ruleAll.word:
		return nil
	}
	bs[0].run.mu.Lock()
	defer bs[0].run.mu.Unlock()
	errs := make([]error, len(bs))
	for i, b := range bs {
		errs[i] = b.err
	}
	return errors.Join(errs...)
}

// decide returns the index of the branch that is chosen, once it has returned; -1 if none is.
func (c *call) decide(by rule, bs []*branch) (int, error) {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &join{by: c.branch, ready: by.ready}
	for _, b := range bs {
		j.add(b)
	}
	if s := c.final(); s != nil {
		return c.choseBefore(s, bs)
	}
	if err := j.wait(c.ctx); err != nil {
		return -1, err
	}
	i := first(by, bs)
	if by.open(i, bs) { // what needs no record may have been passed before, with history behind it: it must not wait
		if err := c.waitSettled(); err != nil {
			return -1, err
		}
		i = first(by, bs)
	}
	for _, b := range bs {
		if i < 0 || b == bs[i] {
			c.learnFrom(b)
		}
	}
	if !by.open(i, bs) {
		return i, nil
	}
	return i, c.choose(i, bs)
}

// open reports whether the next run might choose otherwise, so that the choice is to be recorded. It isn't where all
// succeeded, or all failed, and one failed alone.
func (by rule) open(i int, bs []*branch) bool {
	if i < 0 {
		return false
	}
	return by.word != ruleAll.word ||
		slices.ContainsFunc(bs, func(b *branch) bool { return b != bs[i] && !(b.known && b.err == nil) })
}

// first returns the index of the branch that fits and knows the earliest end; -1 if none fits.
func first(by rule, bs []*branch) int {
	found := -1
	for i, b := range bs {
		if by.matches(b) && (found < 0 || b.stamp.Before(bs[found].stamp)) {
			found = i
		}
	}
	return found
}

// choose records a choice, and cancels the other branches, in one transaction. The lock is held, but not in between.
func (c *call) choose(i int, bs []*branch) error {
	r := c.run
	ch := choice{Branch: i, Path: bs[i].path}
	for k, b := range bs {
		if b == bs[i] {
			continue
		}
		ch.Dropped = append(ch.Dropped, b.allNames()...)
		if !b.known {
			ch.Canceled = append(ch.Canceled, k)
			r.drop(b, ch.verdict(c.ask.Name))
		}
	}
	return c.recordChoice(ch, bs[i].err)
}

// recordChoice records a choice, and that the steps of those who were not chosen wait no longer. The lock is held, but
// not in between.
func (c *call) recordChoice(ch choice, failed error) error {
	steps := c.run.abandon(ch.verdict(c.ask.Name), ch.Dropped)
	s := *c.ask
	raw, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	s.State, s.Result = workitem.StepDone, raw
	if failed != nil { // to be decided again in the next attempt of the job, like all that failed
		f := *workitem.FailureOf(failed)
		f.Details = raw
		s.State, s.Result, s.Failure = workitem.StepFailed, nil, &f
	}
	return c.recordLocked(append(steps, &s)...)
}

// abandon marks the steps of branches that were not chosen, and returns the records that end those that wait. The
// lock is held.
func (r *Run) abandon(why *verdict, names []string) []*workitem.Step {
	if r.out == nil {
		r.out = make(map[string]*verdict)
	}
	var steps []*workitem.Step
	for _, name := range names {
		r.out[name] = why
		e := r.entries[name]
		if e == nil || e.drop {
			continue
		}
		e.drop = true
		r.markMet(e)
		r.followed(e)
		if s := e.step; s != nil && s.State == workitem.StepWaiting && !s.ID.IsZero() {
			steps = append(steps, canceled(s))
		}
	}
	return steps
}

// choseBefore follows a choice of an earlier run. The others do nothing new from now on, and the chosen one is waited
// for: it returns again what it returned before. The lock is held, but not in between.
func (c *call) choseBefore(s *workitem.Step, bs []*branch) (int, error) {
	r := c.run
	ch, err := choiceOf(s, len(bs))
	if err != nil {
		return -1, r.keepMistake(err)
	}
	for k, b := range bs {
		switch {
		case b == bs[ch.Branch]:
		case slices.Contains(ch.Canceled, k):
			r.drop(b, ch.verdict(s.Name))
		default:
			r.replayOnly(b, ch.verdict(s.Name))
		}
	}
	r.pending = append(r.pending, r.abandon(ch.verdict(s.Name), ch.Dropped)...)
	r.followed(c.entry)
	if err := c.follow(bs[ch.Branch]); err != nil {
		return -1, err
	}
	if s.State == workitem.StepFailed && bs[ch.Branch].err == nil {
		return -1, errorOf(s) // only code that changed comes here
	}
	return ch.Branch, nil
}

// replayOnly lets a branch that had returned when another one was chosen read its history again, and do nothing beyond.
// The lock is held.
func (r *Run) replayOnly(b *branch, why *verdict) {
	b.closed, b.notChosen = true, why
	for _, kid := range b.children {
		r.replayOnly(kid, why)
	}
}
