package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// watched is a call of the command that continues.
type watched struct {
	t      *testing.T
	lines  *bufio.Reader
	stop   context.CancelFunc
	errs   bytes.Buffer
	code   chan int
	reader *io.PipeReader
}

func watching(t *testing.T, args ...string) *watched {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // against hanging
	r, w := io.Pipe()
	p := &watched{t: t, lines: bufio.NewReader(r), stop: cancel, code: make(chan int, 1), reader: r}
	go func() {
		p.code <- cli.Main(ctx, append(args, "--watch", "-o", "json"), cli.Streams{Out: w, Err: &p.errs}, cli.Registry{})
		_ = w.Close()
	}()
	return p
}

func (p *watched) next() (row struct {
	ID, State string
	Gone      bool
}) {
	p.t.Helper()
	line, err := p.lines.ReadBytes('\n')
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(line, &row))
	return row
}

// end ends the command as Ctrl-C does.
func (p *watched) end() {
	p.t.Helper()
	p.stop()
	rest, err := io.ReadAll(p.lines)
	require.NoError(p.t, err)
	require.Empty(p.t, string(rest))
	require.Equal(p.t, cli.ExitOK, <-p.code)
	require.Empty(p.t, p.errs.String())
}

// bothStores make a database on each store, and return its opener and what -d names it by.
var bothStores = map[string]func(*testing.T) (store.Opener, string){
	"file": func(t *testing.T) (store.Opener, string) {
		path := filepath.Join(t.TempDir(), "a.db")
		return sqlite.File(path), path
	},
	"postgres": func(t *testing.T) (store.Opener, string) {
		dsn := pgtest.Database(t)
		return postgres.Open(dsn), dsn
	},
}

// A list that is watched continues with the rows that change, and with those that are listed no longer, while a program owns the database.
func TestWatchedLists(t *testing.T) {
	t.Parallel()
	for name, open := range bothStores {
		t.Run(name, func(t *testing.T) {
			opener, db := open(t)
			w := article()
			e, err := engine.Config{Workers: -1}.Open(t.Context(), opener, w)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			first, err := w.Start(t.Context(), e, prompt{Text: "alpha"})
			require.NoError(t, err)

			all, live, items := watching(t, "cases", "--db", db), watching(t, "cases", "--state", "started", "--db", db), watching(t, "items", "--db", db)
			incidents := watching(t, "incidents", "--db", db)
			require.Equal(t, first.String(), all.next().ID)
			require.Equal(t, first.String(), live.next().ID)
			require.Equal(t, "initialized", items.next().State)
			second, err := w.Start(t.Context(), e, prompt{Text: "beta"})
			require.NoError(t, err)
			for _, p := range []*watched{all, live} {
				row := p.next()
				require.Equal(t, []string{second.String(), "started"}, []string{row.ID, row.State})
			}
			require.Equal(t, "initialized", items.next().State)
			_, err = e.Do(t.Context(), workflow.Cancel(first, nil))
			require.NoError(t, err)
			row := all.next()
			require.Equal(t, []string{first.String(), "canceled"}, []string{row.ID, row.State})
			row = live.next()
			require.Equal(t, first.String(), row.ID)
			require.True(t, row.Gone)
			require.Equal(t, "canceled", items.next().State)
			for _, p := range []*watched{all, live, items, incidents} {
				p.end()
			}
		})
	}
}

// A missing definition becomes an incident without an entry of the journal, and a watched list of incidents shows it.
func TestWatchedIncidentsWithoutAnEntry(t *testing.T) {
	t.Parallel()
	for name, open := range bothStores {
		t.Run(name, func(t *testing.T) {
			opener, db := open(t)
			b := builder.New[any]("desk")
			check := builder.Task(b, "check", builder.Work[any, any]{Policy: workitem.Incident(workitem.Default())})
			b.Path(b.Start(), check, b.End())
			w := b.MustBuild()
			e, err := engine.Open(t.Context(), opener, w)
			require.NoError(t, err)
			id, err := w.Start(t.Context(), e, nil)
			require.NoError(t, err)
			for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
				require.NoError(t, err)
				require.NoError(t, check.Start(t.Context(), e, it.ID))
				require.NoError(t, check.Fail(t.Context(), e, it.ID, workitem.Failf("broken", "")))
			}
			incidents := watching(t, "incidents", "--db", db)
			kind := func() string {
				line, err := incidents.lines.ReadString('\n')
				require.NoError(t, err)
				return line
			}
			require.Contains(t, kind(), `"kind":"attempts"`)
			require.NoError(t, e.Close())

			earlier := enginetest.NewClock()
			earlier.Set(time.Now().Add(-time.Hour)) // the engine has been open for long
			e, err = engine.Config{Workers: -1, Clock: earlier, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), opener)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			require.Contains(t, kind(), `"kind":"definition"`)
			incidents.stop()
			require.Equal(t, cli.ExitOK, <-incidents.code)
		})
	}
}

// What is counted is watched as lists are: a row is known by what it counts, and one that is gone is named by that.
func TestWatchedCounts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	w := article()
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.File(path), w)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	id, err := w.Start(t.Context(), e, prompt{Text: "alpha"})
	require.NoError(t, err)
	stats, queues, ended := watching(t, "stats", "--db", path), watching(t, "queues", "--db", path, "--timeout", "2m"), watching(t, "stats", "--by", "workflow", "--db", path)
	line := func(p *watched) string {
		t.Helper()
		text, err := p.lines.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSpace(text)
	}
	require.Contains(t, line(stats), `{"queue":"models","items":1,`)
	require.Contains(t, line(queues), `{"queue":"models",`)
	_, err = e.Do(t.Context(), workflow.PauseQueue("models"))
	require.NoError(t, err)
	paused := line(queues)
	for !strings.Contains(paused, `"paused":true`) { // since when its job waits may be another row
		paused = line(queues)
	}
	_, err = e.Do(t.Context(), workflow.Cancel(id, nil))
	require.NoError(t, err)
	require.Equal(t, `{"queue":"models","gone":true}`, line(stats))
	for _, p := range []*watched{stats, queues, ended} {
		p.stop()
		_, err := io.Copy(io.Discard, p.lines)
		require.NoError(t, err)
		require.Equal(t, cli.ExitOK, <-p.code)
	}
}

// Entries of the journal are appended: those of a case, and those of people.
func TestWatchedEntries(t *testing.T) {
	t.Parallel()
	for name, open := range bothStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opener, db := open(t)
			w := article()
			e, err := engine.Config{Workers: -1}.Open(t.Context(), opener, w)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			var ids []string
			for _, by := range []string{"ann", "bob", "eve"} {
				id, err := w.Start(t.Context(), e, prompt{Text: by}, workflow.By(by))
				require.NoError(t, err)
				ids = append(ids, id.String())
			}
			next := func(p *watched) (row struct {
				Seq               int64
				By, Command, Case string
			}) {
				t.Helper()
				line, err := p.lines.ReadBytes('\n')
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(line, &row))
				return row
			}
			history, audit := watching(t, "history", ids[0], "--command", "case suspend", "--db", db), watching(t, "audit", "--limit", "2", "--db", db)
			begun := next(audit).By // the newest two, oldest first; of a server the last entry may not be settled yet
			require.Contains(t, []string{"ann", "bob"}, begun)
			if begun == "ann" {
				require.Equal(t, "bob", next(audit).By)
			}
			require.Equal(t, "eve", next(audit).By)
			for i, by := range []string{"dan", "ann"} {
				var id workitem.CaseID
				require.NoError(t, id.UnmarshalText([]byte(ids[1-i])))
				_, err := e.Do(t.Context(), workflow.Suspend(id, workflow.By(by)))
				require.NoError(t, err)
				require.Equal(t, by, next(audit).By)
			}
			row := next(history)
			require.Equal(t, "ann", row.By, "that of the other case is not listed")
			require.Contains(t, row.Command, "suspend")
			history.end()
			// The removal of a case has no entry in the journal, and nothing else happens after it.
			var gone workitem.CaseID
			require.NoError(t, gone.UnmarshalText([]byte(ids[0])))
			_, err = e.Do(t.Context(), workflow.Cancel(gone, nil, workflow.By("gus")))
			require.NoError(t, err)
			require.Equal(t, "gus", next(audit).By)
			var other workitem.CaseID
			require.NoError(t, other.UnmarshalText([]byte(ids[2])))
			_, err = e.Do(t.Context(), workflow.Suspend(other, workflow.By("hal")))
			require.NoError(t, err)
			require.Equal(t, "hal", next(audit).By, "the newest entry is not one of the removed case")
			_, err = e.Do(t.Context(), workflow.With(workflow.Remove(gone), workflow.By("ida"), workflow.Because("asked by the customer")))
			require.NoError(t, err)
			removed := next(audit)
			require.Equal(t, "ida", removed.By)
			require.Equal(t, "case remove "+ids[0], removed.Command)
			audit.end()
		})
	}
}

func TestWatchRefusesIncompatibleFlags(t *testing.T) {
	t.Parallel()
	path, _, _ := stuck(t)
	for args, want := range map[string]string{
		"limits --watch -o json --queue": "--watch cannot be combined with --queue",
		"failures --watch":               "--watch draws on a terminal",
		"cases --watch":                  "--watch draws on a terminal; without one, use -o json",
		"incidents --watch -o csv":       "--watch draws on a terminal",
		"audit --watch --before 3":       "--watch cannot be combined with --before",
		"history x --watch --newest":     "--watch cannot be combined with --newest",
		"items --watch -o json --counts": "does not go with --watch",
		"items --watch -o json --after 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071": "--watch cannot be combined with --after",
		"cases --watch -o json --workflow artikle":                           "there is no workflow",
	} {
		code, _, errs := call(t.Context(), append(strings.Fields(args), "--db", path)...)
		require.NotEqual(t, cli.ExitOK, code, args)
		require.Contains(t, errs, want, args)
	}
}

// A reader that goes away ends a list that is watched.
func TestAWatchedListThatIsNotRead(t *testing.T) {
	t.Parallel()
	path, _, _ := stuck(t)
	p := watching(t, "cases", "--db", path)
	require.NoError(t, p.reader.Close())
	require.NotEqual(t, cli.ExitOK, <-p.code)
	require.Contains(t, p.errs.String(), "closed pipe")
}
