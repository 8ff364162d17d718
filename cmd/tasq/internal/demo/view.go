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

// tale is what a view shows of a case.
type tale interface {
	head(now time.Time) string
	// rows are the lines of the table, each with its sign first, see [sign]. The frame says how far the wheel has turned.
	rows(now time.Time, frame int) []string
}

// view shows how a case goes on. On a terminal it draws a table in place; elsewhere it prints each event.
type view struct {
	out   io.Writer
	live  bool
	color bool
	drawn int // lines of the table that stand above the cursor
	frame int
}

func newView(out io.Writer, live, plain bool) view {
	return view{out: out, live: live, color: live && !plain}
}

// tell shows what has just happened.
func (v *view) tell(s tale, lines []string, now time.Time) {
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

// draw puts the table instead of the one drawn before.
func (v *view) draw(s tale, now time.Time) {
	if !v.live {
		return
	}
	width, height := v.size()
	v.frame++
	rows := s.rows(now, v.frame)
	if most := max(height-3, 1); len(rows) > most {
		rows = rows[len(rows)-most:] // what scrolled away could not be overwritten
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

// erase takes the drawing away: what is printed next stands in its place, and the next table below that.
func (v *view) erase() {
	if v.live && v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\r\x1b[J", v.drawn)
	}
	v.drawn = 0
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

// The signs of rows, by which they are colored.
const (
	signDone    = "+"
	signFailed  = "x"
	signWaiting = "."
)

// wheel is the sign of what is worked on.
func wheel(frame int) string { return string(`|/-\`[frame%4]) }

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
