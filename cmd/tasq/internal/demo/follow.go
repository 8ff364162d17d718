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

// question is the current question to the reviewer; the zero value is none.
type question struct {
	item workitem.ID
	note bool // the draft is rejected, and the next line is the reason
}

// redraw is the interval of the animation on a terminal.
const redraw = 100 * time.Millisecond

// follow shows a case from its beginning, also if that was in an earlier run, handles its reviews, and returns when the
// case has ended.
func (d *demo) follow(ctx context.Context, id workitem.CaseID, resumed bool) (*articleState, error) {
	c, err := d.engine.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, watched := watch(ctx, d.engine, id)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	s := &articleState{caseState: caseState{id: id}, recipe: d.recipe}
	fmt.Fprintln(d.out)
	for !s.state.Final() {
		select {
		case entry, open := <-entries:
			if !open {
				return s, errors.Join(ctx.Err(), <-watched)
			}
			d.view.print(s, s.describe(entry), d.clock.Now())
			if entry.Seq == c.LastSeq && resumed {
				d.view.mark("so far an earlier run; now this one goes on")
			}
			if entry.Seq >= c.LastSeq { // earlier entries may have a review that was completed since
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

// watch reads the journal of a case. At its end the channel of entries is closed, and the channel of errors has the
// reason.
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

// review handles the open review, if there is one: it asks the reviewer, or approves the draft at once.
func (d *demo) review(ctx context.Context, s *articleState) error {
	it := s.review()
	switch {
	case it == nil:
		d.asked = question{} // another process may have completed it
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
	d.view.finish()
	fmt.Fprintf(d.out, "\n%s\n\nYou are the editor. Approve this draft? [y/n] ", wrap(s.text(), 78))
	return nil
}

// listening returns the channel of the reviewer's lines while a question is open, and nil otherwise, so that lines
// which are typed ahead stay in it.
func (d *demo) listening() <-chan string {
	if d.asked == (question{}) {
		return nil
	}
	return d.answers
}

// listen reads the reviewer's lines.
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

// answered handles a line of the reviewer.
func (d *demo) answered(ctx context.Context, s *articleState, line string, open bool) error {
	if !open {
		fmt.Fprintln(d.out)
		return errUnanswered
	}
	it := s.review()
	if it == nil || d.asked.item != it.ID {
		return nil // another process has completed it
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

// decide starts and completes a review in one transaction. If another process has completed it already, with tasq item
// complete, that result stays.
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
func (d *demo) conclude(s *articleState) {
	d.view.draw(s, d.clock.Now())
	d.view.finish()
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
	if text := s.text(); text != "" && d.answers == nil { // the reviewer has read it already
		fmt.Fprintf(d.out, "\n%s\n", wrap(text, 78))
	}
}

func took(it *workitem.Item) string {
	if it.Started.IsZero() || it.Ended.IsZero() {
		return "-"
	}
	return round(it.Ended.Sub(it.Started)).String()
}

// wrap breaks a text into lines, also one of a model.
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
