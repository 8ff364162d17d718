package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// caseState has the state of the case that all demos show.
type caseState struct {
	id      workitem.CaseID
	begun   time.Time
	state   state.CaseState
	failure *workitem.Failure
}

// head returns the first line of the table.
func (s *caseState) head(now time.Time) string {
	elapsed := time.Duration(0)
	if !s.begun.IsZero() {
		elapsed = now.Sub(s.begun)
	}
	return fmt.Sprintf("case %s  %6.1fs", s.id, elapsed.Seconds())
}

// at prefixes a line with the time of its entry.
func (s *caseState) at(e *store.Entry, line string) string {
	return fmt.Sprintf("%7.2fs  %s", e.At.Sub(s.begun).Seconds(), line)
}

// articleState has the state of a case and its work items, as read from the journal.
type articleState struct {
	caseState
	recipe *airetry.Recipe
	items  []*workitem.Item // copies, in the order of their creation
}

// describe applies the changes of one command, and returns a line of text for each that a user wants to see.
func (s *articleState) describe(e *store.Entry) (lines []string) {
	for _, event := range e.Changes {
		if line := s.event(e, event); line != "" {
			lines = append(lines, s.at(e, line))
		}
	}
	return lines
}

func (s *articleState) event(entry *store.Entry, event state.Change) string {
	switch e := event.(type) {
	case *state.CaseOpened:
		s.begun, s.state = entry.At, state.CaseStarted
		return fmt.Sprintf("case %s begins: %s", s.id, s.promptOf(e.Case.Input))
	case *state.CaseEnded:
		s.state, s.failure = e.State, e.Failure
		return s.ended()
	case *state.ItemOpened:
		it := *e.Item
		s.items = append(s.items, &it)
		return s.opened(&it)
	case *state.ItemMoved:
		return s.moved(e)
	case *state.JobMoved:
		if e.To == state.JobPending && e.Crashes > 0 {
			return died
		}
	}
	return ""
}

// died reports whether a process was killed while it ran a job.
const died = "the process died in the middle of this attempt; it is made again, and not counted"

func (s *articleState) promptOf(input json.RawMessage) string {
	var p airetry.Prompt
	if err := json.Unmarshal(input, &p); err != nil {
		return string(input)
	}
	return brief(p.Text, 60)
}

func (s *caseState) ended() string {
	line := "the case has " + s.state.String()
	if s.state == state.CaseCanceled {
		line = "the case was canceled"
	}
	if s.failure != nil {
		line += ": " + s.failure.Code
	}
	return line
}

// outcome returns the error of a case that failed or was canceled. A cancellation may have no reason.
func (s *caseState) outcome() error {
	kind := ErrFailed
	switch s.state {
	case state.CaseCompleted:
		return nil
	case state.CaseCanceled:
		kind = ErrCanceled
	}
	if s.failure == nil {
		return fmt.Errorf("%w: case %s", kind, s.id)
	}
	return fmt.Errorf("%w: case %s: %s", kind, s.id, s.failure)
}

func (s *articleState) opened(it *workitem.Item) string {
	switch {
	case it.Task == s.recipe.Review.Name():
		return fmt.Sprintf("%s waits for a person, in queue %q", it.Label(), it.Queue)
	case it.Predecessor.IsZero():
		return "" // it is started by the same command
	}
	line := fmt.Sprintf("%s is the next attempt, due in %s", it.Label(), round(waitOf(it)))
	if before := s.find(it.Predecessor); before != nil && before.Failure != nil && before.Failure.After > 0 {
		line += ", as the server asked"
	}
	return line
}

func (s *articleState) moved(e *state.ItemMoved) string {
	it := s.find(e.Item)
	if it == nil {
		return ""
	}
	it.State, it.Output, it.Failure, it.By = e.To, e.Output, e.Failure, e.By
	switch {
	case e.To == workitem.Started:
		it.Started = e.At
	case e.To.Final():
		it.Ended = e.At
	}
	if it.Task == s.recipe.Review.Name() {
		return s.reviewed(it)
	}
	switch e.To {
	case workitem.Started:
		return fmt.Sprintf("%s asks the model: attempt %d", it.Label(), it.Attempt)
	case workitem.Completed:
		return fmt.Sprintf("%s has a draft: %s", it.Label(), brief(s.draft(it), 60))
	case workitem.Failed:
		return fmt.Sprintf("%s failed: %s", it.Label(), it.Failure.Code)
	}
	return fmt.Sprintf("%s is %s", it.Label(), e.To)
}

func (s *articleState) reviewed(it *workitem.Item) string {
	by := ""
	if it.By != "" {
		by = " by " + it.By
	}
	if it.State != workitem.Completed {
		return fmt.Sprintf("%s is %s%s", it.Label(), it.State, by)
	}
	return fmt.Sprintf("%s%s: %s", it.Label(), by, s.verdict(it))
}

// verdict describes the result of a review.
func (s *articleState) verdict(it *workitem.Item) string {
	v, err := s.recipe.Review.OutputOf(it)
	switch {
	case err != nil:
		return it.State.String()
	case v.Approved:
		return "approved"
	}
	return "rejected: " + brief(v.Note, 40)
}

// draft returns the text of a completed item; "" if it has none.
func (s *articleState) draft(it *workitem.Item) string {
	d, err := s.recipe.Generate.OutputOf(it)
	if err != nil {
		return ""
	}
	return d.Text
}

// text returns the latest draft.
func (s *articleState) text() string {
	for i := len(s.items) - 1; i >= 0; i-- {
		if it := s.items[i]; it.Task == s.recipe.Generate.Name() && it.State == workitem.Completed {
			return s.draft(it)
		}
	}
	return ""
}

// review returns the open review; nil if there is none.
func (s *articleState) review() *workitem.Item {
	for _, it := range s.items {
		if it.Task == s.recipe.Review.Name() && it.State.Live() {
			return it
		}
	}
	return nil
}

func (s *articleState) find(id workitem.ID) *workitem.Item {
	for _, it := range s.items {
		if it.ID == id {
			return it
		}
	}
	return nil
}

// rows implements caseTable: a line for each work item.
func (s *articleState) rows(now time.Time, frame int) []string {
	rows := make([]string, len(s.items))
	for i, it := range s.items {
		rows[i] = fmt.Sprintf("%s %-14s attempt %d  %-12s %s",
			signOf(it, now, frame), it.Label(), it.Attempt, status(it, now), s.remark(it))
	}
	return rows
}

func signOf(it *workitem.Item, now time.Time, frame int) string {
	switch {
	case it.State == workitem.Completed:
		return signDone
	case it.State.Final():
		return signFailed
	case it.State == workitem.Initialized && it.Due.After(now):
		return signWaiting
	}
	return spinner(frame)
}

func status(it *workitem.Item, now time.Time) string {
	if left := it.Due.Sub(now); it.State == workitem.Initialized && left > 0 && !it.Due.IsZero() {
		return fmt.Sprintf("in %.1fs", left.Seconds())
	}
	return it.State.String()
}

func (s *articleState) remark(it *workitem.Item) string {
	switch {
	case it.Failure != nil:
		return it.Failure.Code
	case it.Task == s.recipe.Review.Name() && it.State.Live():
		return "waits for an editor"
	case it.Task == s.recipe.Review.Name():
		return s.verdict(it)
	case it.Task == s.recipe.Generate.Name() && it.State == workitem.Completed:
		return brief(s.draft(it), 40)
	}
	return ""
}

// waitOf returns the backoff before an attempt.
func waitOf(it *workitem.Item) time.Duration {
	if it.Due.IsZero() {
		return 0
	}
	return it.Due.Sub(it.Created)
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}

// span formats a duration: "24h" and not "23h59m59.98s"; "0s" if it is negative.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	}
	text := round(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// brief returns the beginning of a text, on one line.
func brief(text string, most int) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most-3]) + "..."
}

// inputOf is a case that the typed readers of callbacks can read.
func inputOf(c *state.Case) activities.CaseInfo { return activities.CaseInfo{ID: c.ID, Input: c.Input} }
