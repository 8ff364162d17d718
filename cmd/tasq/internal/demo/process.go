package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Setting has the database and the output of a demo. The zero value of a field is its default.
type Setting struct {
	// DB is the database file; it is created if it does not exist. A case that is running in it continues. A demo of
	// steps has another file beside it, with the suffix ".calls", for the calls that services received. Default: a file
	// of the demo in the current folder.
	DB string
	// Fast shortens waits, for tests.
	Fast bool
	// Terminal draws progress in place, instead of a line for each event.
	Terminal bool
	// Plain disables colors.
	Plain bool
	// Err receives messages for operators. Default: discarded.
	Err io.Writer
	// Serve serves pages in which the user can act; the demo then ends with the context.
	Serve bool
	// ServeAt is the address of the pages. Default: serve.DefaultListen.
	ServeAt string

	url string // of the pages, with their token; "" without them

	opener func(path string) store.Opener // for tests. Default: that of database.Of
	wait   time.Duration                  // for tests: the duration of a retry or pause. Default: depends on Fast
}

// waits returns the duration of a wait that takes so long without Fast.
func (s *Setting) waits(d time.Duration) time.Duration {
	if s.Fast {
		d = 20 * time.Millisecond
	}
	return cmp.Or(s.wait, d)
}

// stepDemo is what differs between the demos of steps.
type stepDemo interface {
	// workflow returns the definition, which calls the services.
	workflow(w *services) (engine.Workflow, error)
	// start starts a case.
	start(ctx context.Context, e *engine.Engine) (workitem.CaseID, error)
	// title returns the subject of a case in the call log, and a text for display.
	title(input json.RawMessage) (about, title string)
	// parts lists the steps in their order.
	parts() []part
	// result describes the result of a completed step.
	result(s *workitem.Step, about string) string
	// live is called when all entries so far are printed, and after each later entry.
	live(ctx context.Context, p *process, s *progress) error
	// summary is the last sentence, after the table.
	summary(ctx context.Context, e *engine.Engine, s *progress) (string, error)
	// explore lists commands that show more of a case, besides those of all demos.
	explore(id workitem.CaseID) []string
}

// part is a step as the demo shows it.
type part struct {
	step  string
	party string // the service that it calls; "" for none
}

// process is one run of a demo of steps.
type process struct {
	Setting
	stepDemo
	name     string // of the demo, as on the command line
	out      io.Writer
	clock    retry.Clock
	view     view
	services *services
	engine   *engine.Engine
	err      chan error // an error outside of the case
}

// run runs a demo: it continues the cases that are running in the file, starts one if there is none, and returns when
// they have ended.
func (p *process) run(ctx context.Context) (err error) {
	p.clock, p.view, p.err = retry.SystemClock, newView(p.out, p.Terminal, p.Plain), make(chan error, 1)
	if p.opener == nil {
		p.opener = func(path string) store.Opener { return database.Of(path).Opener() }
	}
	db := database.Of(p.DB)
	calls := db.Beside(".calls")
	fmt.Fprintf(p.out, "database: %s (%s)\ncalls:    %s, written by %s\n", db.Name(), made(ctx, db), calls, p.parties())
	if err := Claim(ctx, p.opener(p.DB)); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	log, err := openCallLog(calls, p.clock)
	if err != nil {
		return fmt.Errorf("the calls of the services: %w", err)
	}
	defer func() { err = errors.Join(err, log.close()) }()
	p.services = &services{log: log, pace: p.pace(600 * time.Millisecond)}
	w, err := p.workflow(p.services)
	if err != nil {
		return err
	}
	flows, many := p.withBulk(w)
	if p.engine, err = configOf(p.Err).Open(ctx, p.opener(p.DB), flows...); err != nil {
		return fmt.Errorf("database %s: %w", db.Name(), err)
	}
	defer func() { err = errors.Join(err, p.engine.Close()) }()
	wait, stop, err := p.pages(ctx, p.out, p.engine, many)
	if err != nil {
		return err
	}
	defer stop()
	if err = p.cases(ctx, w.Untyped().Name); ctx.Err() != nil {
		fmt.Fprintf(p.out, "\nStopped, and nothing is lost. To go on: tasq demo %s -d %s\n", p.name, printable.Word(db.Name()))
		return ctx.Err()
	}
	wait()
	return err
}

// pace returns the duration of a call: one that people can follow, or nearly zero with Fast.
func (p *process) pace(d time.Duration) time.Duration {
	if p.Fast {
		return d / 100
	}
	return d
}

// parties lists the services: "the bank and the mail server".
func (p *process) parties() string {
	var names []string
	for _, part := range p.parts() {
		if part.party != "" {
			names = append(names, "the "+part.party)
		}
	}
	return join(names)
}

func (p *process) cases(ctx context.Context, workflow string) error {
	var ids []workitem.CaseID
	f := store.CaseFilter{Workflow: workflow, States: []state.CaseState{state.CaseStarted}, RootOnly: true}
	for c, err := range store.AllCases(ctx, p.engine, f) {
		if err != nil {
			return err
		}
		ids = append(ids, c.ID)
	}
	resumed := len(ids) > 0
	if !resumed {
		id, err := p.start(ctx, p.engine)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	var failed error
	for _, id := range ids {
		s, err := p.follow(ctx, id, resumed)
		if err != nil {
			return errors.Join(failed, err)
		}
		if err := p.conclude(ctx, s); err != nil {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, s.outcome())
	}
	p.printCommands(ids[len(ids)-1])
	return failed
}

// follow shows a case from its beginning, also if that was in an earlier run, and returns when it has ended.
func (p *process) follow(ctx context.Context, id workitem.CaseID, resumed bool) (*progress, error) {
	c, err := p.engine.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, watched := watch(ctx, p.engine, id)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	about, title := p.title(c.Input)
	s := &progress{caseState: caseState{id: id}, process: p, about: about, title: title}
	fmt.Fprintln(p.out)
	p.announce(s, resumed)
	for !s.state.Final() {
		select {
		case entry, open := <-entries:
			if !open {
				return s, errors.Join(ctx.Err(), <-watched)
			}
			p.view.print(s, s.describe(entry), p.clock.Now())
			if entry.Seq == c.LastSeq && resumed {
				p.view.mark("so far an earlier run; now this one goes on")
			}
			if entry.Seq >= c.LastSeq && !s.state.Final() {
				err = p.live(ctx, p, s)
			}
		case <-tick.C:
			p.view.draw(s, p.clock.Now())
		case err = <-p.err:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// announce prints, above the table on a terminal, what is otherwise printed as lines.
func (p *process) announce(s *progress, resumed bool) {
	if !p.Terminal {
		return
	}
	if resumed {
		fmt.Fprintln(p.out, "What an earlier run began goes on:")
	}
	fmt.Fprintln(p.out, printable.Line(s.title))
}

// printBetween prints a text between events, above the table on a terminal.
func (p *process) printBetween(text string) {
	p.view.erase()
	fmt.Fprintf(p.out, "\n%s\n", text)
}

// conclude prints the table of a case that has ended.
func (p *process) conclude(ctx context.Context, s *progress) error {
	p.view.draw(s, p.clock.Now())
	p.view.finish()
	fmt.Fprintln(p.out)
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "step\tcalls\tattempts\tresult")
	for _, r := range s.all() {
		calls, attempts, result := "-", "-", cmp.Or(s.remark(r), "-")
		if r.party != "" {
			called, _ := p.services.log.count(r.party, s.about)
			calls = strconv.Itoa(called)
		}
		if r.attempts > 0 {
			attempts = strconv.Itoa(r.attempts)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.part.step, calls, attempts, printable.Line(result))
	}
	t.Flush()
	summary, err := p.summary(ctx, p.engine, s)
	if err == nil {
		_, err = fmt.Fprintf(p.out, "\n%s\n", wrap(summary, 78))
	}
	return err
}

// printCommands prints commands for exploration.
func (p *process) printCommands(id workitem.CaseID) {
	fmt.Fprintf(p.out, `
All of it is in %[1]s. To look around:
  tasq steps -d %[1]s --case %[2]s
  tasq history %[2]s -d %[1]s
`, printable.Word(database.Of(p.DB).Name()), id)
	for _, command := range p.explore(id) {
		fmt.Fprintf(p.out, "  %s\n", command)
	}
	fmt.Fprintf(p.out, "  cat %s\n", printable.Word(database.Of(p.DB).Beside(".calls")))
}

// join joins words: "a", "a and b", "a, b and c".
func join(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// count formats a number of things: "no mail", "one mail", "2 mails".
func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// times formats a number of times: "once", "twice", "3 times".
func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
