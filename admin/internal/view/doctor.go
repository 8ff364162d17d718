package view

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// CheckRight is the right to have the integrity of the database checked, as a kind of command without a target.
const CheckRight = "doctor"

// maxCheck is how long a check from the page may take: it holds a view of the store, which keeps PostgreSQL from removing old rows, and the
// write-ahead log of a file from being emptied. The command tasq doctor has no such limit.
const maxCheck = 5 * time.Minute

// checkWait is how long the request for a check waits for it. A check that takes longer continues, and the page shows its progress.
const checkWait = 2 * time.Second

// lastCheck is the last integrity check that was made from the page.
type lastCheck struct {
	mu      sync.Mutex
	running bool
	reached integrity.Progress // of the one that is running
	at      time.Time          // zero if there was none
	report  integrity.Report
	err     error
}

// begin reports whether a check may begin, which is when none is running.
func (c *lastCheck) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	begins := !c.running
	if begins {
		c.running, c.reached = true, integrity.Progress{}
	}
	return begins
}

// progress records how far the check has come.
func (c *lastCheck) progress(p integrity.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached = p
}

// runs reports whether a check is running.
func (c *lastCheck) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// end records the result of a check.
func (c *lastCheck) end(at time.Time, report integrity.Report, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.at, c.report, c.err = false, at, report, err
}

// words returns the state and the result of the last check.
func (c *lastCheck) words(now time.Time) (word, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running && c.reached.Of == 0 {
		return "running", "a check is running; reload to see its result"
	}
	if c.running {
		return "running", fmt.Sprintf("a check is running: %s of %s entries of the journal, in %s", thousands(c.reached.Entries), thousands(c.reached.Of),
			counted(int(c.reached.Cases), "root case"))
	}
	if c.at.IsZero() {
		return "pending", "not checked from this page; tasq doctor checks it too"
	}
	ago := printable.Duration(now.Sub(c.at)) + " ago: "
	switch {
	case errors.Is(c.err, store.ErrCorrupt):
		return "bad", ago + c.err.Error()
	case errors.Is(c.err, context.DeadlineExceeded):
		return "warn", fmt.Sprintf("%sit takes longer than %s; tasq doctor checks it without a limit", ago, printable.Duration(maxCheck))
	case c.err != nil:
		return "warn", ago + "it was not completed: " + c.err.Error()
	case len(c.report.Breaches) > 0:
		return "bad", fmt.Sprintf("%s%s, first: %s; tasq doctor lists all", ago, counted(len(c.report.Breaches)+c.report.More, "problem"), c.report.Breaches[0].Error())
	case len(c.report.Indexes) > 0:
		var names []string
		for _, i := range c.report.Indexes {
			names = append(names, i.Name+" of the table "+i.Table)
		}
		return "warn", ago + "no data is lost, but indexes are missing, and tasq migrate makes them: " + strings.Join(names, ", ")
	}
	return "good", fmt.Sprintf("%swhole: each of %s was rebuilt from the journal, %d entries", ago, counted(int(c.report.Cases), "root case"), c.report.Entries)
}

// check checks the integrity of the database, and shows the page. One check runs at a time.
func (s *Site) check(w http.ResponseWriter, r *http.Request) {
	if !access.UserOf(r.Context()).Allowed(CheckRight, "") {
		s.say(w, r, http.StatusForbidden, "You may not do this", "The pages are read-only, or you do not have the right for this command.")
		return
	}
	if !s.checked.begin() { // its result will be on the page
		http.Redirect(w, r, s.Link("/doctor"), http.StatusSeeOther)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.inspect(context.WithoutCancel(r.Context())) // it continues when the user leaves the page
	}()
	enough := time.NewTimer(checkWait)
	defer enough.Stop()
	select {
	case <-done:
	case <-enough.C:
	case <-r.Context().Done():
	}
	http.Redirect(w, r, s.Link("/doctor"), http.StatusSeeOther)
}

// inspect checks the integrity, and records the result. A panic is a result too: after it another check may begin.
func (s *Site) inspect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxCheck)
	defer cancel()
	var report integrity.Report
	var err error
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("tasq pages: the integrity check panicked", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("it panicked; the log of the program says where")
		}
		s.checked.end(s.Backend.Now(), report, err)
	}()
	report, err = integrity.Inspect(ctx, s.Backend, s.checked.progress)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
}

// databasePart is the facts about the database, with the button that checks it.
type databasePart struct {
	Fields []Cell
	Check  string // where the button leads; "" for none
}

func (s *Site) database(r *Request) (*databasePart, error) {
	d, err := source.ReadDatabase(r, r.R, r.Now)
	if err != nil {
		return nil, err
	}
	p := new(databasePart)
	if r.User.Allowed(CheckRight, "") {
		p.Check = s.Link("/doctor")
	}
	add := func(label string, c Cell) {
		c.Label = label
		p.Fields = append(p.Fields, c)
	}
	add("database", text(d.Kind+" "+d.Version))
	if d.Name != "" {
		add("name", text(printable.Line(d.Name)))
	}
	size := bytesOf(d.Size)
	if d.WAL > 0 {
		size += ", and " + bytesOf(d.WAL) + " of write-ahead log"
	}
	add("size", text(size))
	add("schema", text(fmt.Sprintf("migration %d", d.Schema)))
	add("journal", text(fmt.Sprintf("entry %d", d.Entry)))
	add("newest entry", at(d.EntryAt))
	if d.Kind == "SQLite" {
		add("tables", text(behind(d.Behind)))
	} else {
		add("clock of the server", text(clockWords(d.ClockAhead)))
	}
	due := "none"
	if d.Due > 0 {
		due = fmt.Sprintf("%s, the first for %s", counted(d.Due, "job"), printable.Duration(r.Now.Sub(d.DueSince)))
	}
	add("due, not begun", text(due))
	if s.Streams != nil {
		add("open live pages", text(fmt.Sprint(s.Streams())))
	}
	return p, nil
}

// behind says how far the tables are behind the journal.
func behind(n int64) string {
	if n == 0 {
		return "as new as the journal"
	}
	return counted(int(n), "position") + " behind the journal; readers see all entries"
}

// clockWords says how far the clock of the server is from that of the program.
func clockWords(ahead float64) string {
	switch d := printable.Duration(time.Duration(math.Abs(ahead) * float64(time.Second))); {
	case math.Abs(ahead) < 1:
		return "as that of this program, to a second"
	case ahead > 0:
		return d + " ahead of that of this program"
	default:
		return d + " behind that of this program"
	}
}

// bytesOf writes a number of bytes.
func bytesOf(n int64) string {
	size, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1000, next
	}
	if size < 10 && unit != "B" {
		return fmt.Sprintf("%.1f %s", size, unit)
	}
	return fmt.Sprintf("%.0f %s", size, unit)
}
