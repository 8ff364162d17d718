package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tasq-dev/tasq/workitem"
)

// view shows how a case goes on. On a terminal it draws the table of work items in place; elsewhere it prints each
// event.
type view struct {
	out   io.Writer
	live  bool
	color bool
	drawn int // lines of the table that stand above the cursor
	frame int
}

func newView(out io.Writer, o Options) view {
	return view{out: out, live: o.Terminal, color: o.Terminal && !o.Plain}
}

// tell shows what has just happened.
func (v *view) tell(s *story, lines []string, now time.Time) {
	if v.live {
		v.draw(s, now)
		return
	}
	for _, line := range lines {
		fmt.Fprintln(v.out, line)
	}
}

// mark prints a remark between the events.
func (v *view) mark(remark string) {
	if !v.live {
		fmt.Fprintf(v.out, "          -- %s --\n", remark)
	}
}

// draw puts the table in the place of the one drawn before.
func (v *view) draw(s *story, now time.Time) {
	if !v.live {
		return
	}
	width, height := v.size()
	v.frame++
	rows := v.rows(s, now)
	if most := max(height-3, 1); len(rows) > most {
		rows = rows[len(rows)-most:] // what scrolled away could not be overwritten
	}
	lines := append([]string{fmt.Sprintf("case %s  %6.1fs", s.id, elapsed(s, now).Seconds())}, rows...)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + v.paint(cut(line, width-1)) + "\n")
	}
	b.WriteString("\x1b[J")
	v.drawn = len(lines)
	io.WriteString(v.out, b.String())
}

// leave ends the drawing in place: what is printed next stands below, and the next table below that.
func (v *view) leave() { v.drawn = 0 }

func (v *view) size() (width, height int) {
	if f, ok := v.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 20 && h > 4 {
			return w, h
		}
	}
	return 80, 24
}

func (v *view) rows(s *story, now time.Time) []string {
	rows := make([]string, len(s.items))
	for i, it := range s.items {
		rows[i] = fmt.Sprintf("%s %-14s attempt %d  %-12s %s",
			v.sign(it, now), it.Label(), it.Attempt, status(it, now), remark(s, it))
	}
	return rows
}

// sign is a wheel that turns while the item is worked on.
func (v *view) sign(it *workitem.Item, now time.Time) string {
	switch {
	case it.State == workitem.Completed:
		return "+"
	case it.State.Final():
		return "x"
	case it.State == workitem.Initialized && it.Due.After(now):
		return "."
	}
	return string(`|/-\`[v.frame%4])
}

func status(it *workitem.Item, now time.Time) string {
	if left := it.Due.Sub(now); it.State == workitem.Initialized && left > 0 && !it.Due.IsZero() {
		return fmt.Sprintf("in %.1fs", left.Seconds())
	}
	return it.State.String()
}

func remark(s *story, it *workitem.Item) string {
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

// paint colors a line of the table by its sign.
func (v *view) paint(line string) string {
	if !v.color || line == "" {
		return line
	}
	switch line[0] {
	case '+':
		return "\x1b[32m" + line + "\x1b[0m"
	case 'x':
		return "\x1b[31m" + line + "\x1b[0m"
	case '.', '|', '/', '-', '\\':
		return "\x1b[33m" + line + "\x1b[0m"
	}
	return line
}

func cut(line string, most int) string {
	if r := []rune(line); len(r) > most {
		return string(r[:most])
	}
	return line
}

// elapsed is how long the case has lasted.
func elapsed(s *story, now time.Time) time.Duration {
	if s.begun.IsZero() {
		return 0
	}
	return now.Sub(s.begun)
}
