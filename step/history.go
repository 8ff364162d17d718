package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/workitem"
)

// maxName is the longest name of a step, in bytes.
const maxName = 200

// entry is what a run knows of one step.
type entry struct {
	step     *workitem.Step // as recorded; nil while nothing is
	place    uintptr        // where the function asked for it; 0 if it has not
	old      bool           // recorded before this run
	met      bool           // the function has come to it, or need not
	drop     bool           // it belongs to a branch that was not chosen
	followed bool           // a choice: it is one that no branch has to wait for
	due      int            // the attempt after which the journal said that the next one is due
	room     bool           // its limits may have room: it is to ask
	waiter   *branch
}

// ended reports whether there is something to continue with: a final state, or another attempt that is due.
func (e *entry) ended(now time.Time) bool {
	s := e.step
	switch {
	case s == nil:
		return false
	case s.State.Final():
		return true
	case s.Limited():
		return e.room
	}
	return s.Kind == workitem.StepDo && (e.due == s.Attempt || !s.Due.After(now))
}

// load reads the journal, once, when the function first asks for a step.
func (r *Run) load() {
	r.once.Do(func() {
		r.journal.Watch(r.stepEnded) // first, so that nothing that ends meanwhile is missed
		steps := r.journal.Steps()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range steps {
			if !r.forgotten(s) {
				r.remember(s)
			}
		}
		for _, e := range r.order {
			r.followEarly(e.step)
		}
		for _, s := range r.early {
			r.note(s)
		}
		r.early, r.loaded = nil, true
	})
}

// forgotten reports whether a step is to be done again: one of another attempt that did not succeed.
func (r *Run) forgotten(s *workitem.Step) bool {
	switch s.State {
	case workitem.StepDone:
		return false
	case workitem.StepWaiting:
		return s.Copied
	}
	return !r.sameAttempt(s)
}

func (r *Run) enter(name string, e *entry) {
	if r.entries == nil {
		r.entries = make(map[string]*entry)
	}
	r.entries[name] = e
}

func (r *Run) remember(s *workitem.Step) {
	e := &entry{step: s, old: true, room: true, met: s.State == workitem.StepCanceled, followed: s.State == workitem.StepCanceled}
	r.enter(s.Name, e)
	r.order = append(r.order, e)
	if !e.met {
		r.count(s, 1)
		if s.Kind == workitem.StepChoice {
			r.choices++
		}
	}
}

// count counts a step that the function has still to come to.
func (r *Run) count(s *workitem.Step, by int) {
	r.unmet += by
	if r.sameAttempt(s) {
		r.owed += by
	}
}

// followEarly has the steps of those who were not chosen stay out before the function comes to the choice. In another
// attempt of the job, where what had failed is done again, the function may go another way, and not come to it.
func (r *Run) followEarly(s *workitem.Step) {
	if s.Kind != workitem.StepChoice || !r.sameAttempt(s) {
		return
	}
	if ch, err := choiceOf(s, math.MaxInt); err == nil {
		r.pending = append(r.pending, r.abandon(ch.verdict(s.Name), ch.Dropped)...)
	}
}

// sameAttempt reports whether a step was recorded by the attempt of the job that continues now.
func (r *Run) sameAttempt(s *workitem.Step) bool { return !s.Copied && s.Run == r.info.Attempt }

// stepEnded is called by the journal with a waiting step that has ended.
func (r *Run) stepEnded(s *workitem.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.loaded {
		r.early = append(r.early, s)
		return
	}
	r.note(s)
	r.turns.moves++
	if r.idle() { // it was of no use; the job can't be left in memory for that
		r.work.Go(r.suspend)
	}
}

// note takes in the end of a step that waited. The lock is held.
func (r *Run) note(s *workitem.Step) {
	e := r.entries[s.Name]
	if e == nil {
		return
	}
	if !s.State.Final() {
		e.due = s.Attempt
	}
	r.keep([]*workitem.Step{s})
}

// keep takes in steps as the journal has stored them. The lock is held.
func (r *Run) keep(stored []*workitem.Step) {
	for _, s := range stored {
		e := r.entries[s.Name]
		if e == nil || e.step != nil && e.step.ID == s.ID && (e.step.State.Final() || e.step.Attempt > s.Attempt) {
			continue // what came after was reported to it, before Record returned
		}
		e.step = s
		if e.drop && s.State == workitem.StepWaiting {
			r.pending = append(r.pending, canceled(s))
		}
		if e.waiter != nil && e.ended(time.Time{}) {
			r.wakeUp(e.waiter)
		}
	}
}

// noteTime notes a time that the function knows of. The lock is held.
func (r *Run) noteTime(t time.Time) {
	if t.After(r.latest) {
		r.latest = t
	}
}

// canceled is the record that ends a step that no branch waits for any more.
func canceled(s *workitem.Step) *workitem.Step {
	c := *s
	c.State, c.Due = workitem.StepCanceled, time.Time{}
	if s.Limited() {
		c.Result = nil
	}
	return &c
}

// meet finds the entry of a step that the function has come to, and compares it with what was recorded. The lock is
// held.
func (r *Run) meet(c *call) (*entry, error) {
	e := r.entries[c.ask.Name]
	switch {
	case e == nil:
		e = &entry{}
		r.enter(c.ask.Name, e)
	case e.place != 0:
		return nil, r.keepMistake(mistakef(ErrDuplicate, "step %q: its name is used twice in one run, at %s and at %s; "+
			"give each step a name of its own, in a loop with the number or the id of what it is about",
			c.ask.Name, place(e.place), place(c.place)))
	case e.old:
		if err := c.compare(e.step); err != nil {
			return nil, r.keepMistake(err)
		}
	}
	e.place = c.place
	if e.old && e.step.State.Final() {
		r.echoes(c.branch, true) // before it counts as met
	}
	if e.old {
		c.branch.lines = nil // logged as the step was recorded
	}
	if e.old && e.drop {
		c.branch.closed = true // it is one of those that were not chosen
	}
	c.branch.names = append(c.branch.names, c.ask.Name)
	r.markMet(e)
	return e, nil
}

// markMet counts an entry of the history off, once.
func (r *Run) markMet(e *entry) {
	if !e.old || e.met {
		return
	}
	e.met = true
	r.count(e.step, -1)
	r.admit()
}

// followed counts a recorded choice off, once: those who were not chosen can do nothing any more.
func (r *Run) followed(e *entry) {
	if e.old && e.step.Kind == workitem.StepChoice && !e.followed {
		e.followed = true
		r.choices--
		r.admit()
	}
}

// keepMistake keeps a mistake, so that a function which ignores it does not complete its job. The lock is held.
func (r *Run) keepMistake(err error) error {
	if r.wrong == nil {
		r.wrong = err
	}
	return err
}

// compare finds what the code asks otherwise than it was recorded.
func (c *call) compare(s *workitem.Step) error {
	var was, is string
	switch {
	case s.Kind != c.ask.Kind || s.Target != c.ask.Target || s.Topic != c.ask.Topic:
		was, is = "as "+what(s), "as "+what(c.ask)
	case !c.opts.loose && !sameJSON(s.Input, c.ask.Input):
		was, is = "with the input "+show(s.Input), "with "+show(c.ask.Input)
	default:
		return nil
	}
	hint := "let it ask what it asked before, give the new one another name, or use step.Version to have both"
	return mistakef(ErrChanged, "step %q: it was recorded %s, and is now called %s, at %s; %s",
		s.Name, was, is, place(c.place), hint)
}

// what names the kind of a step, and what it is about.
func what(s *workitem.Step) string {
	switch {
	case s.Kind == workitem.StepEvent && s.Topic:
		return fmt.Sprintf("a wait for the topic %q", s.Target)
	case s.Kind == workitem.StepEvent:
		return fmt.Sprintf("a wait for the event %q", s.Target)
	case s.Kind == workitem.StepCase:
		return fmt.Sprintf("a case of the workflow %q", s.Target)
	case s.Kind == workitem.StepToken:
		return fmt.Sprintf("a token for the event %q", s.Target)
	}
	words := map[workitem.StepKind]string{
		workitem.StepDo: "the call of a function", workitem.StepTx: "a transaction", workitem.StepSleep: "a sleep",
		workitem.StepChoice: "a choice of branches", workitem.StepValue: "a value",
	}
	if w, ok := words[s.Kind]; ok {
		return w
	}
	return string(s.Kind)
}

// sameJSON compares by meaning: a database may have changed the spacing, and other code the order of the fields.
func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || len(a) > 0 && len(b) > 0 && bytes.Equal(canonical(a), canonical(b))
}

// canonical sorts the fields of objects, and leaves numbers as they are written.
func canonical(raw json.RawMessage) []byte {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// show shortens JSON for an error.
func show(raw json.RawMessage) string {
	const most = 200
	switch {
	case len(raw) == 0:
		return "nothing"
	case len(raw) > most:
		return fmt.Sprintf("%s... (%d bytes)", bytes.ToValidUTF8(raw[:most], nil), len(raw))
	}
	return string(raw)
}

// leftOver says which steps were recorded that the function did not come to. The lock is held.
func (r *Run) leftOver() error {
	const most = 3
	var names []string
	count := 0
	for _, e := range r.order {
		if e.met || !r.sameAttempt(e.step) {
			continue
		}
		if count++; count <= most {
			names = append(names, fmt.Sprintf("%q (%s, %v)", e.step.Name, what(e.step), e.step.State))
		}
	}
	if count == 0 {
		return nil
	}
	if count > most {
		names = append(names, fmt.Sprintf("and %d more", count-most))
	}
	return mistakef(ErrHistory, "the function returned without coming to what was recorded: %s; "+
		"let it come to them, or use step.Version to end old jobs as they began", strings.Join(names, ", "))
}

// checkName refuses what can't name a step.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name is %d bytes long, and the limit is %d; it begins with %.40q", len(name), maxName, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name isn't text: %.64q", name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("a NUL is in the name: %.64q", name)
	}
	return nil
}

// here returns the place that called the function of this package which calls here.
func here() uintptr {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return pc[0]
}

// place writes a place as "order.go:44".
func place(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
}
