package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workitem"
)

// table prints rows with aligned columns, in lines of at most 100 columns, or as many as a wider terminal has. Rows are buffered until flush,
// which may be called several times.
type table struct {
	w     io.Writer
	csv   *csv.Writer // nil unless the format is CSV
	paint bool
	wide  int // columns of the terminal; 0 if there is none
	head  []string
	width []int
	rows  [][]string
	begun bool
}

func (a *app) table(head ...string) *table {
	t := &table{w: a.Out, paint: a.paint, wide: a.columns(), head: head, width: make([]int, len(head))}
	t.measure(head)
	if a.output == "csv" {
		t.csv = csv.NewWriter(a.Out)
	}
	return t
}

func (t *table) measure(row []string) {
	for i, cell := range row {
		t.width[i] = max(t.width[i], printable.Width(cell))
	}
}

// add adds a row with as many cells as the head. Control characters are escaped.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable.Line(cell)
	}
	t.measure(cells)
	t.rows = append(t.rows, cells)
}

func (t *table) flush() error {
	if t.csv != nil {
		return t.flushCSV()
	}
	if len(t.rows) == 0 {
		return nil
	}
	t.fit()
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

// flushCSV writes every column in full. It writes the names of the columns even if there are no rows, so that programs
// can rely on them. A cell that a spreadsheet would take for a formula gets an apostrophe.
func (t *table) flushCSV() error {
	if !t.begun {
		t.begun = true
		if err := t.csv.Write(t.head); err != nil {
			return err
		}
	}
	for _, row := range t.rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
	}
	if err := t.csv.WriteAll(t.rows); err != nil { // WriteAll flushes
		return err
	}
	t.rows = t.rows[:0]
	return nil
}

const tableWidth = 100 // maximum length of a line, unless a terminal is wider

// leastWidth is the least width to which a column can be cut. Other columns are not cut: ids are copied, and states
// must be readable. A command that names an id is shorter than the least width of its column.
var leastWidth = map[string]int{
	"NAME": 10, "OF": 10, "KIND": 10, "STEP": 10, "AS": 10, "WORKFLOW": 8, "TASK": 8, "QUEUE": 6, "OWNER": 6, "BY": 6, "FOR": 6,
	"VERSION": 7, "FAILURE": 10, "RESULT": 12, "VALUE": 12, "ALLOWS": 12, "SET BY": 6, "KEYS": 24, "LIMIT": 24, "COMMAND": 56, "REASON": 60,
}

// least returns the least width of a column, or 0 if it is not cut. In the list of queues the name is what other commands take.
func (t *table) least(i int) int {
	if i == 0 && t.head[i] == "QUEUE" {
		return 24
	}
	return leastWidth[t.head[i]]
}

// fit cuts columns until a line fits: the last one first, which has messages, and then the widest.
func (t *table) fit() {
	most, total := max(tableWidth, t.wide), 2*(len(t.width)-1)
	for _, n := range t.width {
		total += n
	}
	last := len(t.head) - 1
	if least := t.least(last); least > 0 && total > most && t.width[last] > least {
		n := min(total-most, t.width[last]-least)
		t.width[last], total = t.width[last]-n, total-n
	}
	for ; total > most; total-- {
		widest := -1
		for i, n := range t.width {
			if least := t.least(i); least > 0 && n > least && (widest < 0 || n > t.width[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.width[widest]--
	}
}

// hide removes the columns without values. It is for a table of a single page, before it is flushed.
func (t *table) hide() {
	if t.csv != nil {
		return
	}
	var keep []int
	for i := range t.head {
		if slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
			keep = append(keep, i)
		}
	}
	t.head, t.width = pick(t.head, keep), pick(t.width, keep)
	for i, row := range t.rows {
		t.rows[i] = pick(row, keep)
	}
}

func pick[T any](list []T, keep []int) []T {
	picked := make([]T, len(keep))
	for i, k := range keep {
		picked[i] = list[k]
	}
	return picked
}

func (t *table) line(b *strings.Builder, row []string, color func(int, string) string) {
	last := len(row) - 1
	for last > 0 && row[last] == "" {
		last--
	}
	for i, cell := range row[:last+1] {
		cell = printable.Cut(cell, t.width[i], i == len(row)-1) // both ends of a name distinguish it
		b.WriteString(color(i, cell))
		if i < last {
			b.WriteString(strings.Repeat(" ", t.width[i]-printable.Width(cell)+2))
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

// failed formats a failure for a table.
func (a *app) failed(f *workitem.Failure) string { return a.brief([]byte(f.String()), 100) }

// brief is the beginning of a text for a table, and all of it for CSV.
func (a *app) brief(text []byte, most int) string {
	if a.output == "csv" {
		return string(text)
	}
	return printable.Brief(text, most)
}

// object prints one JSON object on a line.
func (a *app) object(v any) error {
	return printable.NewEncoder(a.Out).Encode(v)
}

// objects prints a JSON object on a line for each element.
func objects[T any](a *app, list []T) error {
	for _, v := range list {
		if err := a.object(v); err != nil {
			return err
		}
	}
	return nil
}

// remark prints a message that is not a result.
func (a *app) remark(format string, args ...any) {
	fmt.Fprintln(a.Err, printable.Lines(fmt.Sprintf(format, args...)))
}

// say prints a result for people.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Out, printable.Lines(fmt.Sprintf(format, args...)))
	return err
}

// sayWrapped is say for long lines, which a terminal shows wrapped between words.
func (a *app) sayWrapped(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Out, printable.Wrap(printable.Lines(fmt.Sprintf(format, args...)), a.columns()))
	return err
}

// columns returns the width of the terminal that the command writes to, also while a watched list is drawn there; 0 if there is none, or it
// does not tell.
func (a *app) columns() int {
	if a.drawn > 0 {
		return a.drawn
	}
	f := a.screen()
	if f == nil {
		return 0
	}
	return widthOf(f)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// attempt is the number of an attempt; "" for work without one, such as a sleep.
func attempt(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
