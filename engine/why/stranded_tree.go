package why

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// treeSearch is the examination of one tree.
type treeSearch struct {
	*examination
	tree  *state.Tree
	found []StrandedCase
}

// add adds a case, once for each cause and repair.
func (l *treeSearch) add(id workitem.CaseID, cause Cause, since time.Time, reason, repair string) {
	if l.Older > 0 && since.After(l.Now.Add(-l.Older)) {
		return
	}
	if slices.ContainsFunc(l.found, func(s StrandedCase) bool { return s.Case == id && s.Cause == cause && s.Repair == repair }) {
		return
	}
	if cause == CauseDeadEnd { // implies that it is idle, so that is not reported too
		l.found = slices.DeleteFunc(l.found, func(s StrandedCase) bool { return s.Case == id && s.Cause == CauseIdle })
	}
	c := l.tree.Case(id)
	l.found = append(l.found, StrandedCase{Case: id, Root: l.tree.Root, Workflow: c.Workflow, Version: c.Version, Cause: cause, Since: since,
		Reason: printable.Line(reason), Repair: repair})
}

// Each wait is tested against these conditions, and reported with the repair of the first that applies:
//
//	its case is suspended                      tasq case resume
//	an incident                                tasq incident retry, tasq item retry, tasq case resume: by what it is about
//	nothing is under way                       tasq case move
//	its definition is not loaded here          a process with the definition
//	its queue has no workers here              a process with workers for it
//	its queue is paused                        tasq queue resume
//	it needs a limit that is at 0              tasq limit set
//	due work that is late, of a queue of       a process with workers for it; a limit at 0 is named
//	which nothing runs
//	a timer, a time, a lease that is late      an open engine
//	an event without a deadline, for long      tasq event send
//	a topic without a deadline, for long       tasq event broadcast
//
// A wait to which none applies is in progress.

// wait adds the case of a wait that nothing will end.
func (l *treeSearch) wait(ctx context.Context, r store.Finder, w *Wait) error {
	words, text := w.Words(l.Now), what(w, time.Time{})
	if w.Kind == Incident {
		text = problem(w)
	}
	late := l.Now.Add(-l.Late)
	switch {
	case w.Suspended != nil:
		l.add(w.Suspended.Case, CauseSuspended, w.Suspended.Since, suspended(w.Suspended, w.Suspended.Case, l.Now)+", and "+text,
			"tasq case resume "+w.Suspended.Case.String())
	case w.Kind == Incident:
		repair := repairOf(w)
		if w.Blocked == NotLoaded {
			text, repair = text+"; "+blocked(w, l.Now), "open an engine with workflow "+w.lacking()+", then "+repair
		}
		l.add(w.Case, CauseIncident, w.Since, text, repair)
	case w.Kind == Stuck:
		l.idle(w)
	case w.Blocked == NotLoaded:
		l.add(w.Case, CauseNotLoaded, w.Since, words, "open an engine with workflow "+w.lacking()+
			"; tasq definitions shows it")
	case w.Blocked == NoWorkers, w.Blocked == Stopped:
		l.add(w.Case, CauseNoWorkers, w.Since, words, "open an engine with workers for "+queue(w.Queue))
	case w.Blocked == Paused && w.PausedKey != "":
		l.add(w.Case, CausePaused, w.Paused.At, text+"; key "+printable.Line(w.PausedKey)+" of "+queue(w.Queue)+" is paused"+decided(w.Paused, l.Now),
			"tasq queue resume "+printable.Arguments(w.Queue)+" --key "+printable.Arguments(w.PausedKey))
	case w.Blocked == Paused:
		l.add(w.Case, CausePaused, w.Paused.At, text+"; "+queue(w.Queue)+" is paused"+decided(w.Paused, l.Now), "tasq queue resume "+printable.Arguments(w.Queue))
	case w.Blocked == Limited:
		l.limited(w, text)
	case w.Blocked == Hours, w.Blocked == Gathering:
	case w.Kind == Worker:
		return l.notStarted(ctx, r, w, text, late)
	case w.Blocked == Lapsed && w.Until.Before(late), w.Kind == Timer && w.Until.Before(late), w.Kind == Delay && w.Until.Before(late),
		(w.Kind == Event || w.Kind == Topic) && !w.Until.IsZero() && w.Until.Before(late):
		l.add(w.Case, CauseOverdue, w.Until, text+", for "+printable.Duration(l.Now.Sub(w.Until)),
			"open an engine with workflow "+versioned(w.Workflow, w.Version))
	case (w.Kind == Event || w.Kind == Topic) && w.Until.IsZero() && l.Older > 0:
		l.forgotten(w, text)
	}
	return nil
}

// forgotten adds a wait for an event, or for a topic, whose sender may be gone.
func (l *treeSearch) forgotten(w *Wait, text string) {
	repair := "tasq event send " + printable.Arguments(w.Case.String(), w.Name)
	if w.Kind == Topic {
		repair = "tasq event broadcast " + printable.Arguments(w.Name)
	}
	l.add(w.Case, CauseForgotten, w.Since, text+", without a deadline, for "+printable.Duration(l.Now.Sub(w.Since))+": who sends it may be gone", repair)
}

// repairOf returns the command that retries what an incident is about.
func repairOf(w *Wait) string {
	switch {
	case !w.Child.IsZero():
		return "tasq case resume " + w.Child.String()
	case w.ofItem():
		return "tasq item retry " + w.Item.String()
	}
	return "tasq incident retry " + w.Incident.String()
}

// commands returns the commands by which a person ends a wait that ends by nothing else; none for other waits.
func commands(w *Wait) []string {
	switch {
	case w.Kind == Stuck && w.Name != "":
		return []string{fmt.Sprintf("tasq case move %s FROM TO", w.Case), "tasq case cancel " + w.Case.String()}
	case w.Kind == Stuck:
		return []string{"tasq case cancel " + w.Case.String()}
	case w.Kind != Incident:
		return nil
	case !w.Child.IsZero():
		return []string{repairOf(w), "tasq incident give-up " + w.Incident.String()}
	case w.ofItem():
		return []string{repairOf(w), "tasq item skip " + w.Item.String(), "tasq incident give-up " + w.Item.String()}
	}
	return []string{repairOf(w)}
}

// idle adds a case in which nothing is in progress. The incident of an or-join can be the reason.
func (l *treeSearch) idle(w *Wait) {
	c := l.tree.Case(w.Case)
	for j := range c.Jobs.All() {
		if j.Kind == state.JobIncident && j.Name == state.IncidentOrJoin {
			l.add(w.Case, CauseIncident, j.Created, "whether or-join "+j.Task+" has to wait was not decided: its search ran out of its budget",
				fmt.Sprintf("tasq case move %s FROM TO, by which it is decided", w.Case))
			return
		}
	}
	reason := "nothing is under way, and no task can start"
	if task, composite := vacant(c); task != "" {
		reason = empty(task, composite) + ", and nothing else is under way"
	}
	l.add(w.Case, CauseIdle, time.Time{}, reason+": there are tokens in "+tokens(c),
		fmt.Sprintf("tasq case move %s FROM TO, or tasq case cancel %[1]s", w.Case))
}

// limited adds due work that needs a limit which is set to 0, for all keys or for its own.
func (l *treeSearch) limited(w *Wait, text string) {
	for _, of := range w.Limits {
		v, ok := l.limits[of.Limit]
		if !ok {
			continue
		}
		n, by, whose, key := v.Current().N, v.Decision, "", ""
		if set, ok := v.Keys[of.key]; ok && of.key != "" {
			n, by, whose, key = set.N, set.Decision, " for key "+of.Key, of.Key
		}
		if n == 0 {
			l.add(w.Case, CauseLimited, later(by.At, w.Since), text+"; limit "+of.Limit+" is set to 0"+whose+decided(&by, l.Now), setLimit(of.Limit, key, v.Limit.N))
		}
	}
}

// setLimit returns the command that sets a limit, for all keys or for one.
func setLimit(name, key string, n int64) string {
	line := "tasq limit set "
	if key != "" {
		line += "--key " + printable.Word(key) + " "
	}
	return line + printable.Arguments(name, strconv.FormatInt(n, 10))
}

// notStarted adds due work without a known obstacle that has not started. If other jobs of its queue run, it is not
// late, but waits for its turn.
func (l *treeSearch) notStarted(ctx context.Context, r store.Finder, w *Wait, text string, late time.Time) error {
	if !w.Since.Before(late) {
		return nil
	}
	busy, known := l.busy[w.Queue]
	if !known {
		running, err := r.Jobs(ctx, store.JobFilter{Queue: &w.Queue, States: []state.JobState{state.JobRunning}, Page: store.Page{Limit: 1}})
		if err != nil {
			return fmt.Errorf("jobs of %s: %w", queue(w.Queue), err)
		}
		busy = len(running) > 0
		l.busy[w.Queue] = busy
	}
	if busy {
		return nil
	}
	repair := "open an engine with workflow " + versioned(w.Workflow, w.Version) + " and workers for " + queue(w.Queue)
	var none []string
	for name, v := range l.limits {
		if v.Current().N == 0 {
			none = append(none, setLimit(name, "", v.Limit.N))
		}
	}
	slices.Sort(none)
	if none = append(none, l.closedKeys(w.Needs)...); len(none) > 0 {
		repair += ", or, if it needs the limit, " + strings.Join(none, ", ")
	}
	l.add(w.Case, CauseNoWorkers, w.Since, text+", for "+printable.Duration(l.Now.Sub(w.Since))+", and no job of "+queue(w.Queue)+" runs", repair)
	return nil
}

// maxClosedKeys is how many keys of a limit a repair names.
const maxClosedKeys = 3

// closedKeys returns the commands that open the keys which are set to 0, of limits that a job needs by a key that only a program computes.
func (l *treeSearch) closedKeys(needs []Limit) (commands []string) {
	for _, need := range needs {
		v := l.limits[need.Limit]
		var of []string
		for key, set := range v.Keys {
			if set.N == 0 {
				of = append(of, setLimit(need.Limit, l.Here.shown("limit", need.Limit, key), v.Limit.N))
			}
		}
		slices.Sort(of)
		if more := len(of) - maxClosedKeys; more > 0 {
			of = append(of[:maxClosedKeys], fmt.Sprintf("and %s (tasq limits)", printable.Plural(more, "more key")))
		}
		commands = append(commands, of...)
	}
	return commands
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
