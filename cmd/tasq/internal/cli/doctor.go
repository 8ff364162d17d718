package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// overdueAfter is the least delay that is reported: an open engine starts due work within milliseconds, if it has a
// free worker.
const overdueAfter = 10 * time.Second

func (a *app) doctor() *cobra.Command {
	var quiet, live bool
	var older bound
	cmd := &cobra.Command{
		Use: "doctor [DATABASE]", Short: "check the integrity of a database, or find stranded cases",
		Long: paragraph("Check the integrity of a database, also while an engine owns it: SQLite's own check of all pages and indexes, or " +
			"the errors that a PostgreSQL server has found; then every case is rebuilt from its journal and compared with the " +
			"tables. Overdue work is listed, but is not an error: no engine is open, it has no free worker, it waits for a limit, or it was opened " +
			"without the workflow. The exit code is 1 if anything is wrong, and 5 if this is not a Tasq database. With --live, list stranded " +
			"cases instead: live cases that no run completes from their current state, or that neither pending work nor a person " +
			"advances, since when, with the reason and the command that repairs them: nothing of the case is active, it is " +
			"suspended, its queue is paused or has no workers, a limit is set to 0, a person has to decide an incident. This does " +
			"not see what only a running program knows: whether it has the definition of a case, and the free capacity of its " +
			"limits; the page Doctor of the program does. With --older, only cases stranded for that long, and cases that have " +
			"waited that long for an event or a topic without a deadline. Without DATABASE, --db names the database. Nothing is changed."),
		Example: "  tasq doctor article.db",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress")
	cmd.Flags().BoolVar(&live, "live", false, "list stranded cases: live cases that cannot end, or that nothing advances")
	cmd.Flags().Var(&older, "older", "with --live: only cases stranded for at least this time (90s, 5m, 2h, 3d), or since before this time; and "+
		"waits for events of that age")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 1 {
			a.db = args[0]
		}
		if older != (bound{}) && !live {
			return usagef("--older needs --live")
		}
		if live {
			return a.examineLive(ctx, older.age(now()))
		}
		return a.examine(ctx, a.meter(quiet))
	})
	return cmd
}

// findings is the report of the command, one JSON object.
type findings struct {
	Whole    bool      `json:"whole"`
	Cases    int64     `json:"cases"`   // root cases
	Entries  int64     `json:"entries"` // of the journal
	Problems []problem `json:"problems"`
	More     int       `json:"more,omitempty"` // problems that are not listed
	Overdue  []late    `json:"overdue"`
}

type problem struct {
	Rule string `json:"rule"` // "sqlite" or "postgres" for the database's own check, "read" for unreadable data, "index" for one that is missing, or a rule of Tasq
	Text string `json:"text"`
}

type late struct {
	Job    string    `json:"job"`
	Case   string    `json:"case"`
	Kind   string    `json:"kind"`
	Name   string    `json:"name,omitempty"`
	Due    time.Time `json:"due"`
	Limits string    `json:"limits,omitempty"` // of a job with limits, or with a key where keys of its queue are paused: what it waits for, according to the database
}

func (a *app) examine(ctx context.Context, m *meter) error {
	var f findings
	err := a.withStore(ctx, func(s store.Store) error {
		m.doing("the database checks its own pages and indexes, which has no progress")
		if err := s.View(ctx, func(r store.Reader) error { return f.look(ctx, r) }); err != nil {
			return err
		}
		m.doing("looking for rows without a case")
		report, err := integrity.Inspect(ctx, s, m.checked)
		f.Cases, f.Entries, f.More = report.Cases, report.Entries, report.More
		for _, b := range report.Breaches {
			f.Problems = append(f.Problems, problem{b.Rule, b.Text})
		}
		for _, i := range report.Indexes {
			f.Problems = append(f.Problems, problem{lacksIndex, fmt.Sprintf("the index %s of the table %s is missing or cannot be used: tasq migrate makes it, "+
				"and so does: %s", i.Name, i.Table, i.SQL)})
		}
		return err
	})
	m.end()
	if errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrForeign) {
		f.Problems = append(f.Problems, problem{"read", err.Error()})
	} else if err != nil {
		return err
	}
	f.Whole = len(f.Problems) == 0
	if err := a.printFindings(&f); err != nil || f.Whole {
		return err
	}
	number := printable.Plural(len(f.Problems)+f.More, "problem")
	if !slices.ContainsFunc(f.Problems, func(p problem) bool { return p.Rule != lacksIndex }) {
		return exit(ExitNo, "the database lacks indexes: %s; run tasq migrate", number)
	}
	return exit(ExitNo, "the database is not whole: %s; restore a backup, or report what led to it with this output", number)
}

// lacksIndex is the rule of a problem that a migration repairs.
const lacksIndex = "index"

// ownChecks are the checks of the databases themselves; "ok" is no problem. A PostgreSQL server verifies pages as it
// reads them, if it has checksums, and counts the failures.
var ownChecks = map[domain.Dialect]string{
	domain.SQLite: "PRAGMA main.integrity_check(100)",
	domain.Postgres: "SELECT checksum_failures || ' pages failed their checksums, the last one at ' || checksum_last_failure " +
		"FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0",
}

// look runs the database's own check, and lists overdue work.
func (f *findings) look(ctx context.Context, r store.Reader) error {
	dialect := domain.DialectOf(r.DB())
	rows, err := r.DB().QueryContext(ctx, ownChecks[dialect])
	if err != nil {
		return err
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return errors.Join(err, rows.Close())
		}
		if text != "ok" {
			f.Problems = append(f.Problems, problem{string(dialect), text})
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	jobs, err := r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobPending, state.JobWaiting},
		Due: now().Add(-overdueAfter)})
	if err != nil || len(jobs) == 0 {
		return err
	}
	waits, err := why.NotLate(ctx, r, jobs, now())
	if err != nil {
		return err
	}
	jobs = slices.DeleteFunc(jobs, func(j *state.Job) bool { return waits[j.ID] })
	list, err := schedules.List(ctx, store.ViewerOf(r))
	names := make(map[workitem.CaseID]string, len(list))
	for _, i := range list {
		names[i.Case] = "of schedule " + i.Schedule.Name + ", which starts " + i.Start.Workflow
	}
	for _, j := range jobs {
		limits, err := waitsForLimits(ctx, r, j)
		if err != nil {
			return err
		}
		f.Overdue = append(f.Overdue, late{j.ID.String(), j.Case.String(), j.Kind, cmp.Or(j.Name, names[j.Case]), j.Due, limits})
	}
	return err
}

// waitsForLimits returns what a job waits for at its limits, and which keys of its queue are paused, according to the database; "" for neither.
func waitsForLimits(ctx context.Context, r store.Reader, j *state.Job) (string, error) {
	answer, err := why.Read(ctx, r, j.Case, now(), why.Here{})
	if err != nil {
		return "", err
	}
	for i := range answer.Waits {
		if w := &answer.Waits[i]; w.Job == j.ID && len(w.Limits)+len(w.Needs)+w.MayBePaused > 0 {
			return w.Words(now()), nil
		}
	}
	return "", nil
}

func (a *app) printFindings(f *findings) error {
	if a.output == "json" {
		return a.object(f)
	}
	for _, p := range f.Problems {
		if _, err := fmt.Fprintf(a.Out, "%s: %s\n", p.Rule, printable.Line(p.Text)); err != nil {
			return err
		}
	}
	for _, l := range f.Overdue {
		limits := ""
		if l.Limits != "" {
			limits = ": " + printable.Line(l.Limits)
		}
		if _, err := fmt.Fprintf(a.Out, "overdue: job %s (%s) of case %s, for %s%s\n", l.Job, strings.TrimSpace(l.Kind+" "+printable.Line(l.Name)), l.Case,
			printable.Duration(now().Sub(l.Due)), limits); err != nil {
			return err
		}
	}
	state := "whole"
	if !f.Whole {
		state = "not whole"
	}
	_, err := fmt.Fprintf(a.Out, "%s: %d root cases, %d journal entries, %d problems, %d jobs overdue\n", state, f.Cases, f.Entries,
		len(f.Problems)+f.More, len(f.Overdue))
	return err
}

// meter shows progress in one line of a terminal. Without a terminal it shows nothing.
type meter struct {
	w     io.Writer // nil for none
	shown bool
	last  int64 // percent
}

func (a *app) meter(quiet bool) *meter {
	if quiet || !terminal(a.Err) {
		return &meter{}
	}
	return &meter{w: a.Err, last: -1}
}

func (m *meter) show(what string, done, of int64, unit string) {
	if m.w == nil || of == 0 || done*100/of == m.last {
		return
	}
	m.last, m.shown = done*100/of, true
	fmt.Fprintf(m.w, "\r\x1b[K%s %d of %d %s (%d %%)", what, done, of, unit, m.last)
}

// doing shows what is being done while there is no number for it.
func (m *meter) doing(what string) {
	if m.w == nil {
		return
	}
	m.last, m.shown = -1, true
	fmt.Fprintf(m.w, "\r\x1b[K%s ...", what)
}

func (m *meter) checked(p integrity.Progress) { m.show("checked", p.Entries, p.Of, "journal entries") }

func (m *meter) end() {
	if m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
