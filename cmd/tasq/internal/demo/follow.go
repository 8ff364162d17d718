package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// question is what the person is being asked; the zero value is nothing.
type question struct {
	item workitem.ID
	note bool // the draft is rejected, and the reason is wanted
}

// redraw is how often the drawing on a terminal moves.
const redraw = 100 * time.Millisecond

// follow shows a case from its beginning, which may have been in an earlier run, has it reviewed, and returns when it
// has ended.
func (d *demo) follow(ctx context.Context, id workitem.CaseID, resumed bool) (*story, error) {
	c, err := d.engine.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, watched := watch(ctx, d.engine, id)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	s := &story{caseStory: caseStory{id: id}, recipe: d.recipe}
	fmt.Fprintln(d.out)
	for !s.state.Final() {
		select {
		case entry, open := <-entries:
			if !open {
				return s, errors.Join(ctx.Err(), <-watched)
			}
			d.view.tell(s, s.tell(entry), d.clock.Now())
			if entry.Seq == c.LastSeq && resumed {
				d.view.mark("so far an earlier run; now this one goes on")
			}
			if entry.Seq >= c.LastSeq { // before that, a review may be one that was answered long ago
				err = d.review(ctx, s)
			}
		case line, open := <-d.listening():
			err = d.answered(ctx, s, line, open)
		case <-tick.C:
			if d.asked == (question{}) {
				d.view.draw(s, d.clock.Now())
			}
		case <-ctx.Done():
			return s, ctx.Err()
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// watch reads the journal of a case. At the end the channel of entries is closed, and the other one has the reason.
func watch(ctx context.Context, e *engine.Engine, id workitem.CaseID) (<-chan *store.Entry, <-chan error) {
	entries, watched := make(chan *store.Entry), make(chan error, 1)
	go func() {
		defer close(entries)
		for entry, err := range e.Watch(ctx, id, 0) {
			if err != nil {
				watched <- err
				return
			}
			select {
			case entries <- entry:
			case <-ctx.Done():
			}
		}
		watched <- fmt.Errorf("case %s: %w", id, engine.ErrClosed)
	}()
	return entries, watched
}

// review has the open review answered, if there is one: by a person, or at once.
func (d *demo) review(ctx context.Context, s *story) error {
	it := s.review()
	switch {
	case it == nil:
		d.asked = question{} // another process may have answered
		return nil
	case !d.Ask:
		return d.decide(ctx, it, airetry.Verdict{Approved: true}, "demo")
	case d.asked.item == it.ID:
		return nil
	}
	if d.answers == nil {
		d.listen()
	}
	d.asked = question{item: it.ID}
	d.view.draw(s, d.clock.Now())
	d.view.leave()
	fmt.Fprintf(d.out, "\n%s\n\nYou are the editor. Approve this draft? [y/n] ", wrap(s.text(), 78))
	return nil
}

// listening is where a person's lines come from while one is wanted; nil otherwise, so that what was typed ahead waits.
func (d *demo) listening() <-chan string {
	if d.asked == (question{}) {
		return nil
	}
	return d.answers
}

// listen reads the person's lines.
func (d *demo) listen() {
	d.answers = make(chan string)
	go func() {
		defer close(d.answers)
		if d.In == nil {
			return
		}
		for lines := bufio.NewScanner(d.In); lines.Scan(); {
			d.answers <- lines.Text()
		}
	}()
}

// answered takes a line of the person.
func (d *demo) answered(ctx context.Context, s *story, line string, open bool) error {
	if !open {
		fmt.Fprintln(d.out)
		return errUnanswered
	}
	it := s.review()
	if it == nil || d.asked.item != it.ID {
		return nil // it was answered elsewhere
	}
	v, word := airetry.Verdict{}, strings.ToLower(strings.TrimSpace(line))
	switch {
	case d.asked.note:
		v.Note = strings.TrimSpace(line)
		if v.Note == "" {
			v.Note = "Please write it once more."
		}
	case word == "y" || word == "yes":
		v.Approved = true
	case word == "n" || word == "no":
		d.asked.note = true
		fmt.Fprint(d.out, "What should the model do better? ")
		return nil
	default:
		fmt.Fprint(d.out, "Please answer y or n: ")
		return nil
	}
	d.asked = question{}
	fmt.Fprintln(d.out)
	return d.decide(ctx, it, v, "you")
}

// decide starts and completes a review in one transaction. Another process may have been faster, with tasq item complete;
// then that counts.
func (d *demo) decide(ctx context.Context, it *workitem.Item, v airetry.Verdict, by string) error {
	err := d.engine.Update(ctx, func(tx *engine.Tx) error {
		if it.State == workitem.Initialized {
			if err := d.recipe.Review.Start(ctx, tx, it.ID, workflow.By(by)); err != nil {
				return err
			}
		}
		return d.recipe.Review.Complete(ctx, tx, it.ID, v, workflow.By(by))
	})
	if _, late := errors.AsType[*workitem.TransitionError](err); late {
		return nil
	}
	return err
}

// conclude prints the table of a case that has ended.
func (d *demo) conclude(s *story) {
	d.view.draw(s, d.clock.Now())
	d.view.leave()
	fmt.Fprintln(d.out)
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "work item\tattempt\tstate\tfailure\twaited\ttook")
	for _, it := range s.items {
		code := "-"
		if it.Failure != nil {
			code = it.Failure.Code
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", it.Label(), it.Attempt, it.State, printable.Line(code), round(waitOf(it)), took(it))
	}
	t.Flush()
	if text := s.text(); text != "" && d.answers == nil { // a person has read it already
		fmt.Fprintf(d.out, "\n%s\n", wrap(text, 78))
	}
}

func took(it *workitem.Item) string {
	if it.Started.IsZero() || it.Ended.IsZero() {
		return "-"
	}
	return round(it.Ended.Sub(it.Started)).String()
}

// wrap breaks a text, which may be of others, into lines.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(printable.Lines(text)) {
		n := len([]rune(word))
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
