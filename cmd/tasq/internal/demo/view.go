package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tasq-dev/tasq/internal/printable"
)

// caseTable is what a view shows of a case.
type caseTable interface {
	head(now time.Time) string
	// rows are the lines of the table; each begins with its sign, see [sign]. frame is the frame of the animation.
	rows(now time.Time, frame int) []string
}

// view shows the progress of a case. On a terminal it draws a table in place; otherwise it prints each event.
type view struct {
	out   io.Writer
	live  bool
	color bool
	drawn int // the lines of the table above the cursor
	frame int
}

func newView(out io.Writer, live, plain bool) view {
	return view{out: out, live: live, color: live && !plain}
}

// print shows an event.
func (v *view) print(s caseTable, lines []string, now time.Time) {
	if v.live {
		v.draw(s, now)
		return
	}
	for _, line := range lines {
		fmt.Fprintln(v.out, printable.Line(line))
	}
}

// mark prints a remark between the events.
func (v *view) mark(remark string) {
	if !v.live {
		fmt.Fprintf(v.out, "          -- %s --\n", remark)
	}
}

// draw replaces the table that was drawn before.
func (v *view) draw(s caseTable, now time.Time) {
	if !v.live {
		return
	}
	width, height := v.size()
	v.frame++
	rows := s.rows(now, v.frame)
	if most := max(height-3, 1); len(rows) > most {
		rows = rows[len(rows)-most:] // lines that have scrolled away cannot be overwritten
	}
	lines := append([]string{s.head(now)}, rows...)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + v.paint(cut(printable.Line(line), width-1)) + "\n")
	}
	b.WriteString("\x1b[J")
	v.drawn = len(lines)
	io.WriteString(v.out, b.String())
}

// erase removes the table; the next text is printed in its place, and the next table below that.
func (v *view) erase() {
	if v.live && v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\r\x1b[J", v.drawn)
	}
	v.drawn = 0
}

// finish leaves the table on the screen; the next text is printed below it, and the next table below that.
func (v *view) finish() { v.drawn = 0 }

func (v *view) size() (width, height int) {
	if f, ok := v.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 20 && h > 4 {
			return w, h
		}
	}
	return 80, 24
}

// The signs of rows, which determine their colors.
const (
	signDone    = "+"
	signFailed  = "x"
	signWaiting = "."
)

// spinner is the sign of work in progress.
func spinner(frame int) string { return string(`|/-\`[frame%4]) }

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
