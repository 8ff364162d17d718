package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workitem"
)

// table prints rows with aligned columns. Rows are kept until flush, which may be called several times: the columns
// never become narrower.
type table struct {
	w     io.Writer
	paint bool
	head  []string
	width []int
	rows  [][]string
	begun bool
}

func (a *app) table(head ...string) *table {
	t := &table{w: a.Out, paint: a.paint, head: head, width: make([]int, len(head))}
	t.measure(head)
	return t
}

func (t *table) measure(row []string) {
	for i, cell := range row {
		t.width[i] = max(t.width[i], utf8.RuneCountInString(cell))
	}
}

// add takes a row of as many cells as the head has. What a terminal would take for a command is made harmless.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable.Line(cell)
	}
	t.measure(cells)
	t.rows = append(t.rows, cells)
}

func (t *table) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	var b strings.Builder
	if !t.begun {
		t.begun = true
		t.line(&b, t.head, func(_ int, cell string) string { return cell })
	}
	for _, row := range t.rows {
		t.line(&b, row, t.colored)
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t *table) line(b *strings.Builder, row []string, color func(int, string) string) {
	last := len(row) - 1
	for last > 0 && row[last] == "" {
		last--
	}
	for i, cell := range row[:last+1] {
		b.WriteString(color(i, cell))
		if i < last {
			b.WriteString(strings.Repeat(" ", t.width[i]-utf8.RuneCountInString(cell)+2))
		}
	}
	b.WriteByte('\n')
}

// colors of states, for a terminal.
var colors = map[string]string{
	"started": "33", "running": "33", "completed": "32", "done": "32", "failed": "31", "canceled": "90",
}

func (t *table) colored(i int, cell string) string {
	if color := colors[cell]; t.paint && color != "" && t.head[i] == "STATE" {
		return "\x1b[" + color + "m" + cell + "\x1b[0m"
	}
	return cell
}

// failed writes a failure for a table.
func failed(f *workitem.Failure) string {
	const most = 100
	return brief([]byte(f.String()), most)
}

// object prints one JSON object on a line.
func (a *app) object(v any) error {
	return printable.NewEncoder(a.Out).Encode(v)
}

// remark prints something for people that is not a result.
func (a *app) remark(format string, args ...any) {
	fmt.Fprintln(a.Err, printable.Lines(fmt.Sprintf(format, args...)))
}

// say prints a result for people.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Out, printable.Lines(fmt.Sprintf(format, args...)))
	return err
}
