package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// watch is the flag --watch of a list. On a terminal the list is redrawn in place when the database changes; as JSON,
// changed rows are printed until the command is interrupted.
type watch struct {
	a    *app
	on   bool
	keys []string      // the fields of a JSON row that identify it, as in "limit.name"; nil for its id
	poll time.Duration // interval of reading without a new entry of the journal; 0 if the rows are in the database alone
}

const (
	watchPause   = 500 * time.Millisecond // between two reads of the journal
	watchRefresh = time.Second            // interval of redrawing on a terminal, since ages increase
)

func (w *watch) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.on, "watch", false, "follow changes until Ctrl-C: redraw the list, or with -o json print each row that changes")
}

// check returns an error for flags that exclude each other. By default, a watched list shows the newest rows, and JSON
// has all of them.
func (w *watch) check(cmd *cobra.Command, limit *int, newest *bool) error {
	if !w.on {
		return nil
	}
	if cmd.Flags().Changed("after") {
		return usagef("--watch cannot be combined with --after")
	}
	switch {
	case w.a.output == "csv", w.a.output == "table" && w.a.screen() == nil:
		return usagef("--watch draws on a terminal; without one, use -o json")
	case w.a.output == "json" && !cmd.Flags().Changed("limit"):
		*limit = 0
	case w.a.output == "table" && !cmd.Flags().Changed("limit"):
		*limit = rowsOf(w.a.screen())
	}
	if newest != nil && !cmd.Flags().Changed("newest") {
		*newest = w.a.output == "table"
	}
	return nil
}

// run reads the database once, or repeatedly until the context ends.
func (w *watch) run(ctx context.Context, look func(context.Context, store.Reader) error) error {
	if !w.on {
		return w.a.view(ctx, func(r store.Reader) error { return look(ctx, r) })
	}
	err := w.a.withStore(ctx, func(s store.Store) error {
		if w.a.output == "json" {
			return w.watchRows(ctx, s, look)
		}
		return w.a.watchTable(ctx, s, look)
	})
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return err
}

// redirect redirects the output of the command until the returned function is called.
func (a *app) redirect(out, errs io.Writer) (back func()) {
	streams := a.Streams
	a.Out, a.Err = out, errs
	return func() { a.Streams = streams }
}

// screen returns the terminal that the command writes to; nil if there is none, or if it has no cursor to move.
func (a *app) screen() *os.File {
	if f, ok := a.Out.(*os.File); ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// rowsOf returns how many rows of a list fit on a terminal.
func rowsOf(f *os.File) int {
	const others = 3 // the head, a message, the line of the cursor
	return max(heightOf(f)-others, 5)
}

// widthOf returns the number of columns of a terminal; 0 if it does not tell.
func widthOf(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// heightOf returns the number of lines of a terminal.
func heightOf(f *os.File) int {
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil || height <= 0 {
		return 24
	}
	return height
}

// cutLines cuts each line of a text to the columns of a terminal, so that the end of a line says that there is more. Colors take no column.
func cutLines(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare, end := strings.CutSuffix(line, "\n")
		b.WriteString(cutLine(bare, columns))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func cutLine(line string, columns int) string {
	var b strings.Builder
	left := columns
	for line != "" {
		text, color, colored := strings.Cut(line, "\x1b[")
		if left > 0 {
			shown := printable.Cut(text, left, true)
			b.WriteString(shown)
			if left -= printable.Width(shown); shown != text {
				left = 0
			}
		}
		if !colored {
			break
		}
		code, rest, _ := strings.Cut(color, "m")
		b.WriteString("\x1b[" + code + "m")
		line = rest
	}
	return b.String()
}

// firstLines returns the lines of a text that fit on a terminal, above the line of the cursor, and says how many others there are. The cursor
// cannot return to lines that have left the screen.
func firstLines(text string, height int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(height-1, 2); len(lines) > most {
		return strings.Join(lines[:most-1], "") + "… and " + printable.Plural(len(lines)-most+1, "more line") + "\n"
	}
	return text
}

// moves yields at the beginning, after each check that finds a new entry in the journal, and after refresh without one,
// unless refresh is 0. An entry counts once no entry with a lower position can appear, so that none is missed. It ends
// with the context.
func moves(ctx context.Context, v store.Viewer, clock retry.Clock, refresh time.Duration) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		last, at := int64(-1), time.Time{}
		for ctx.Err() == nil {
			seq, err := store.Newest(ctx, v, store.JournalFilter{Settled: true})
			if err != nil {
				yield(0, err)
				return
			}
			if now := clock.Now(); seq != last || refresh > 0 && now.Sub(at) >= refresh {
				if last, at = seq, now; !yield(seq, nil) {
					return
				}
			}
			retry.Sleep(ctx, clock, watchPause)
		}
	}
}

// watchRows prints rows that changed.
func (w *watch) watchRows(ctx context.Context, s store.Store, look func(context.Context, store.Reader) error) error {
	rows := &changedRows{out: w.a.Out, keys: w.keys, seen: make(map[string]seenRow)}
	if rows.keys == nil {
		rows.keys = []string{"id"}
	}
	defer w.a.redirect(rows, io.Discard)()
	for _, err := range moves(ctx, s, retry.SystemClock, w.poll) {
		if err != nil {
			return err
		}
		if err := s.View(ctx, func(r store.Reader) error { return look(ctx, r) }); err != nil {
			return err
		}
		if err := rows.end(); err != nil {
			return err
		}
	}
	return nil
}

// changedRows passes on the lines of JSON that are new, or differ from the previous listing.
type changedRows struct {
	out     io.Writer
	keys    []string
	seen    map[string]seenRow // by the fields of the keys, as JSON
	listing int
}

type seenRow struct {
	hash    uint64
	listing int // the latest listing that had the row
}

var rowSeed = maphash.MakeSeed()

// Write processes one line.
func (c *changedRows) Write(line []byte) (int, error) {
	key, err := c.key(line)
	if err != nil {
		return 0, err
	}
	now := seenRow{maphash.Bytes(rowSeed, line), c.listing}
	before, known := c.seen[key]
	c.seen[key] = now
	if known && before.hash == now.hash {
		return len(line), nil
	}
	return c.out.Write(line)
}

// key returns the fields that identify a row, as the beginning of a JSON object.
func (c *changedRows) key(line []byte) (string, error) {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(line, &row); err != nil {
		return "", err
	}
	var fields []string
	for _, name := range c.keys {
		name, inner, nested := strings.Cut(name, ".")
		value := string(row[name])
		if value == "" {
			value = `""` // omitted
		}
		if nested {
			var parts map[string]json.RawMessage
			if err := json.Unmarshal([]byte(value), &parts); err != nil {
				return "", err
			}
			value = "{" + strconv.Quote(inner) + ":" + string(parts[inner]) + "}"
		}
		fields = append(fields, strconv.Quote(name)+":"+value)
	}
	return "{" + strings.Join(fields, ","), nil
}

// end ends a listing: it prints each row that is no longer listed, by the fields that identify it.
func (c *changedRows) end() error {
	for _, key := range slices.Sorted(maps.Keys(c.seen)) {
		if c.seen[key].listing == c.listing {
			continue
		}
		delete(c.seen, key)
		if _, err := io.WriteString(c.out, key+`,"gone":true}`+"\n"); err != nil {
			return err
		}
	}
	c.listing++
	return nil
}

// watchTable redraws a table in place.
func (a *app) watchTable(ctx context.Context, s store.Store, look func(context.Context, store.Reader) error) error {
	d, screen := inPlace{w: a.Out}, a.screen()
	var frame bytes.Buffer
	defer a.redirect(&frame, &frame)()
	defer func() { a.drawn = 0 }()
	for _, err := range moves(ctx, s, retry.SystemClock, watchRefresh) {
		if err != nil {
			return err
		}
		frame.Reset()
		a.drawn = widthOf(screen)
		if err := s.View(ctx, func(r store.Reader) error { return look(ctx, r) }); err != nil {
			return err
		}
		if err := d.draw(cutLines(firstLines(frame.String(), heightOf(screen)), a.drawn)); err != nil {
			return err
		}
	}
	return nil
}

// inPlace replaces text on a terminal.
type inPlace struct {
	w     io.Writer
	shown string
}

// draw replaces the previous text. The terminal cuts lines that are too wide, so that each remains one line.
func (d *inPlace) draw(text string) error {
	if text == d.shown {
		return nil
	}
	var b strings.Builder
	b.WriteString("\x1b[?7l") // disable line wrapping
	if n := strings.Count(d.shown, "\n"); n > 0 {
		b.WriteString("\x1b[" + number(int64(n)) + "F")
	}
	b.WriteString("\x1b[J" + text + "\x1b[?7h")
	d.shown = text
	_, err := io.WriteString(d.w, b.String())
	return err
}
