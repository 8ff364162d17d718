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
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// watch is the flag --watch of a list. At a terminal the list is drawn again in its place as the database changes; as JSON the rows that changed
// follow without end.
type watch struct {
	a  *app
	on bool
}

const (
	watchPause   = 500 * time.Millisecond // between two looks at the journal
	watchRefresh = time.Second            // after so long a terminal is drawn again, since ages grow
)

func (w *watch) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.on, "watch", false, "follow changes until Ctrl-C: redraw the list, or with -o json print each row that changes")
}

// check refuses what does not go together. Without a word about it, a list that is watched shows the newest rows, and JSON has all of them.
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

// run reads the database once, or again and again until the context ends.
func (w *watch) run(ctx context.Context, look func(context.Context, store.Reader) error) error {
	if !w.on {
		return w.a.view(ctx, func(r store.Reader) error { return look(ctx, r) })
	}
	err := w.a.withStore(ctx, func(s store.Store) error {
		if w.a.output == "json" {
			return w.a.watchRows(ctx, s, look)
		}
		return w.a.watchTable(ctx, s, look)
	})
	if ctx.Err() != nil {
		return nil // Ctrl-C is how it ends
	}
	return err
}

// redirect has the command write elsewhere, until what it returns is called.
func (a *app) redirect(out, errs io.Writer) (back func()) {
	streams := a.Streams
	a.Out, a.Err = out, errs
	return func() { a.Streams = streams }
}

// screen is the terminal that the command writes to; nil if there is none.
func (a *app) screen() *os.File {
	if f, ok := a.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// rowsOf is how many rows of a list a terminal has room for.
func rowsOf(f *os.File) int {
	const others = 3 // the head, a remark, the line of the cursor
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		height = 24
	}
	return max(height-others, 5)
}

// moves is the journal as it moves: once at the beginning, after each look that finds a new entry, and after a time without one, unless that is 0. An
// entry counts when none of a lower position can appear any more, so that none is missed. It ends with the context.
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
func (a *app) watchRows(ctx context.Context, s store.Store, look func(context.Context, store.Reader) error) error {
	rows := &changedRows{out: a.Out, seen: make(map[string]seenRow)}
	defer a.redirect(rows, io.Discard)()
	for _, err := range moves(ctx, s, retry.SystemClock, 0) {
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

// changedRows passes lines of JSON on that are new or differ from what they were in the listing before.
type changedRows struct {
	out     io.Writer
	seen    map[string]seenRow
	listing int
}

type seenRow struct {
	hash    uint64
	listing int // the latest that had it
}

var rowSeed = maphash.MakeSeed()

// Write takes one line.
func (c *changedRows) Write(line []byte) (int, error) {
	var row struct{ ID string }
	if err := json.Unmarshal(line, &row); err != nil {
		return 0, err
	}
	now := seenRow{maphash.Bytes(rowSeed, line), c.listing}
	before, known := c.seen[row.ID]
	c.seen[row.ID] = now
	if known && before.hash == now.hash {
		return len(line), nil
	}
	return c.out.Write(line)
}

// goneRow is printed for a row that is listed no longer.
type goneRow struct {
	ID   string `json:"id"`
	Gone bool   `json:"gone"`
}

// end ends a listing.
func (c *changedRows) end() error {
	for _, id := range slices.Sorted(maps.Keys(c.seen)) {
		if c.seen[id].listing == c.listing {
			continue
		}
		delete(c.seen, id)
		if err := printable.NewEncoder(c.out).Encode(goneRow{id, true}); err != nil {
			return err
		}
	}
	c.listing++
	return nil
}

// watchTable draws a table in its place.
func (a *app) watchTable(ctx context.Context, s store.Store, look func(context.Context, store.Reader) error) error {
	d := inPlace{w: a.Out}
	var frame bytes.Buffer
	defer a.redirect(&frame, &frame)()
	for _, err := range moves(ctx, s, retry.SystemClock, watchRefresh) {
		if err != nil {
			return err
		}
		frame.Reset()
		if err := s.View(ctx, func(r store.Reader) error { return look(ctx, r) }); err != nil {
			return err
		}
		if err := d.draw(frame.String()); err != nil {
			return err
		}
	}
	return nil
}

// inPlace is text on a terminal that is replaced.
type inPlace struct {
	w     io.Writer
	shown string
}

// draw puts a text instead of the one before. Lines that are wider than the terminal are cut by it, so that they stay lines.
func (d *inPlace) draw(text string) error {
	if text == d.shown {
		return nil
	}
	var b strings.Builder
	b.WriteString("\x1b[?7l") // no line breaks by itself
	if n := strings.Count(d.shown, "\n"); n > 0 {
		b.WriteString("\x1b[" + number(int64(n)) + "F")
	}
	b.WriteString("\x1b[J" + text + "\x1b[?7h")
	d.shown = text
	_, err := io.WriteString(d.w, b.String())
	return err
}
