package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// head says what the case is.
func (a *Answer) head() string {
	var b strings.Builder
	b.WriteString("case " + a.Case.String() + " of " + versioned(a.Workflow, a.Version) + " is " + a.Word)
	if a.Failure != nil {
		b.WriteString(" (" + a.Failure.String() + ")")
	}
	fmt.Fprintf(&b, ", since %s", printable.Duration(a.At.Sub(a.Since)))
	if a.Suspended != nil {
		b.WriteString(", " + suspended(a.Suspended, a.Case, a.At))
	}
	if a.Tick != nil {
		fmt.Fprintf(&b, ", started by schedule %s for its tick %s", printable.Line(a.Tick.Schedule), printable.Time(a.Tick.At))
	}
	switch {
	case len(a.Lost) > 0:
		fmt.Fprintf(&b, ": if it is resumed (tasq case resume), %s goes on", strings.Join(a.Lost, ", "))
	case len(a.Waits) == 0:
		b.WriteString(": nothing of it can be enabled any more")
	case a.State.Final():
		b.WriteString("; left behind:")
	default:
		b.WriteString(", and waits for:")
	}
	if a.DeadLetter != "" {
		b.WriteString("; " + a.DeadLetter)
	}
	return b.String()
}

func versioned(workflow, version string) string {
	if version == "" {
		return workflow
	}
	return workflow + " version " + version
}

// The text of a wait has these parts, of which most waits have two or three:
//
//	print.1.2: item draft.1.3 waits for a worker of queue ai, attempt 3 of 5 after timeout: 30s, since 4s; all workers of queue ai are busy
//	path       subject        what must happen                attempt        failure             since     block
//
// The id of the item is on a line of its own, where it can be copied, unless the commands of the wait have it. The parts are functions
// of this file; a function for a part that may be missing returns it with its separator, or "".

// text describes a wait: who must act, since when, until when, and what blocks it.
func text(w *Wait, now time.Time) string {
	line := what(w, now)
	if w.Path != "" {
		line = w.Path + ": " + line
	}
	if !w.Since.IsZero() && w.Kind != Stuck {
		line += ", since " + printable.Duration(now.Sub(w.Since))
	}
	switch w.Kind {
	case Event, Topic, Child:
		line += until(w.Until, now)
	}
	if reason := blocked(w, now); reason != "" {
		line += "; " + reason
	}
	line = w.inLine(line)
	if !w.Item.IsZero() && (w.Kind != Incident || !w.ofItem()) { // the commands name it
		line += "\n  " + w.Item.String()
	}
	return line
}

// Words describes what must happen and what blocks it, without the fields that a page shows separately: the times, the
// id and the path. now is the time of the answer.
func (w *Wait) Words(now time.Time) string {
	line := what(w, time.Time{})
	if reason := blocked(w, now); reason != "" {
		line += "; " + reason
	}
	return w.inLine(line)
}

// what describes what must happen, without times if now is zero.
func what(w *Wait, now time.Time) string {
	switch w.Kind {
	case Person:
		return person(w)
	case Worker:
		if w.Blocked == Limited {
			return subject(w) + " waits for " + limits(w.Limits) + attempt(w) + failed(w)
		}
		if w.Blocked == Gathering {
			return subject(w) + " waits for " + batch(w, now) + attempt(w) + failed(w)
		}
		if w.Blocked == Hours {
			return subject(w) + " waits until " + opens(w, now) + attempt(w) + failed(w)
		}
		return subject(w) + " waits for a worker of " + queue(w.Queue) + needs(w) + mayBePaused(w) + attempt(w) + failed(w)
	case Running:
		return subject(w) + " is under way, by " + w.By + attempt(w) + failed(w)
	case Retry, Delay:
		if !w.Debounced.IsZero() {
			return subject(w) + " begins" + at(w.Until, now) + ", unless another start with its key takes its place"
		}
		if !w.Hours.IsZero() {
			return subject(w) + " goes on at " + opens(w, now) + attempt(w) + failed(w)
		}
		return subject(w) + " goes on" + at(w.Until, now) + attempt(w) + failed(w)
	case Timer:
		return subject(w) + " is due" + at(w.Until, now) + attempts(w)
	case Event, Topic:
		return subject(w) + " waits for " + string(w.Kind) + " " + w.Name
	case Child:
		return subject(w) + " waits for case " + w.Child.String() + " of " + w.Name
	case Turn:
		return turn(w)
	case Join:
		return w.Name
	case Incident:
		return incident(w)
	}
	return stuck(w)
}

// turn names the case that has to end first, and the number of others.
func turn(w *Wait) string {
	if w.Child.IsZero() {
		return "the case waits for its turn among those with the key " + w.Name
	}
	line := fmt.Sprintf("the case begins when case %s has ended, which has the key %s too", w.Child, w.Name)
	if w.Ahead > 0 {
		line += "; " + ahead(w.Ahead)
	}
	return line
}

// subject names the item, step, timer or function of a wait: "item draft.1.3", "step charge of run.1.1", "timer remind of
// review". The owner of a step or timer loses its noun, as the whole would be hard to read.
func subject(w *Wait) string {
	owner := "item " + w.Label
	switch {
	case w.Label != "":
	case w.Task != "":
		owner = "task " + w.Task
	default:
		owner = "the case"
	}
	switch {
	case w.Step != "":
		return "step " + w.Step + " of " + strings.TrimPrefix(owner, "item ")
	case w.Work == state.JobTimer:
		return "timer " + w.Name + " of " + strings.TrimPrefix(strings.TrimPrefix(owner, "item "), "task ")
	case w.Work == state.JobCall:
		return "function " + w.Name + " of " + strings.TrimPrefix(strings.TrimPrefix(owner, "item "), "task ")
	case w.Work == state.JobHandler:
		return "completion handler " + w.Name
	}
	return owner
}

// person says what a user has to do with an item, and who has started it.
func person(w *Wait) string {
	line := fmt.Sprintf("item %s (%s, %s) waits for a user to ", w.Label, w.State, queue(w.Queue))
	if w.State != workitem.Started.String() {
		return line + "start it" + attempt(w) + failed(w)
	}
	line += "complete it"
	if w.By != "" {
		line += ": " + w.By + " has it"
	}
	return line + attempt(w) + failed(w)
}

func queue(name string) string {
	if name == "" {
		return "the default queue"
	}
	return "queue " + name
}

// attempt adds the number of the attempt, from the second on.
func attempt(w *Wait) string {
	switch {
	case w.Attempt < 2:
		return ""
	case w.Attempts > 0:
		return fmt.Sprintf(", attempt %d of %d", w.Attempt, w.Attempts) + policy(w)
	}
	return fmt.Sprintf(", attempt %d", w.Attempt) + policy(w)
}

// policy adds what a repair changed of the retry policy.
func policy(w *Wait) string {
	if w.Retry == nil {
		return ""
	}
	return " (retry policy changed by a repair: " + w.Retry.String() + ")"
}

// failed adds why the attempt before failed.
func failed(w *Wait) string {
	if w.Failure == nil {
		return ""
	}
	return " after " + w.Failure.String()
}

// attempts says how often work of the engine itself has failed before.
func attempts(w *Wait) string {
	if w.Failure == nil {
		return ""
	}
	return fmt.Sprintf(", attempt %d: the last one failed with %s", w.Attempt, w.Failure)
}

// at says when something happens, or that it has not happened although it was due.
func at(t, now time.Time) string {
	switch {
	case t.Equal(printable.Never):
		return " when a command gives it a time"
	case now.IsZero():
		return ""
	case t.IsZero():
		return " when its time comes"
	case t.After(now):
		return fmt.Sprintf(" in %s, at %s", printable.Duration(t.Sub(now)), printable.Time(t))
	case now.Sub(t) < time.Second:
		return " now"
	}
	return fmt.Sprintf(" now, and is overdue by %s", printable.Duration(now.Sub(t)))
}

// until adds the deadline of something that may happen earlier. At the deadline the wait ends by a timeout, so one that
// has passed means that no engine was there to end it.
func until(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Before(now):
		return fmt.Sprintf(", until %s, overdue by %s", printable.Time(t), printable.Duration(now.Sub(t)))
	}
	return fmt.Sprintf(", until %s (in %s)", printable.Time(t), printable.Duration(t.Sub(now)))
}

// incident says what happened, and what a person can do: what is possible depends on what the incident is about.
func incident(w *Wait) string { return problem(w) + "; a person decides: " + decision(w) }

// problem says what happened.
func problem(w *Wait) string {
	switch {
	case w.Work == state.JobIncident && w.Name == state.IncidentCase:
		return fmt.Sprintf("%s holds a failed child case: %s", subject(w), w.Failure)
	case w.Work == state.JobIncident:
		return fmt.Sprintf("%s is an incident: %s", subject(w), w.Failure)
	}
	return fmt.Sprintf("%s was given up: %s", subject(w), w.Failure)
}

// decision says what a person can do. Its commands are those of [commands], in the same order.
func decision(w *Wait) string {
	switch {
	case !w.Child.IsZero():
		return "resume it, or fail the task"
	case w.ofItem():
		return "retry it, skip it or give it up"
	}
	return "once its cause is gone, do it again"
}

// ofItem reports whether an incident is about a work item, or about the job that runs it. Such an item is retried, skipped or given up.
func (w *Wait) ofItem() bool { return w.Work == state.JobIncident || w.Work == state.JobRun }

// stuck says where the tokens are: they show which task was not reached.
func stuck(w *Wait) string {
	line := "nothing is under way, and no task can start"
	if w.Name == "" {
		return line + "; cancel the case"
	}
	if w.Task != "" {
		line = empty(w.Task, w.composite) + ", and nothing else is under way"
	}
	return fmt.Sprintf("%s: there are tokens in %s; move one to where the case can continue, or cancel the case", line, w.Name)
}

// blocked describes what blocks a wait.
func blocked(w *Wait, now time.Time) string {
	switch w.Blocked {
	case NotLoaded:
		if w.Missing != nil && w.Missing.Case.IsZero() {
			return fmt.Sprintf("no open engine has workflow %s, which it starts", w.lacking())
		}
		if w.Missing != nil {
			return fmt.Sprintf("no open engine has workflow %s of case %s above", w.lacking(), w.Missing.Case)
		}
		if w.Kind == Incident {
			return fmt.Sprintf("no open engine has workflow %s: open a program with it first", w.lacking())
		}
		return fmt.Sprintf("no open engine has workflow %s", w.lacking())
	case NoWorkers:
		return "this engine runs no jobs: Config.Workers is negative"
	case Stopped:
		return fmt.Sprintf("this engine stops %s: Config.Queues gives it no workers", queue(w.Queue))
	case Lapsed:
		return fmt.Sprintf("its lease ran out %s ago: the worker may be gone", printable.Duration(now.Sub(w.Until)))
	case Suspended:
		return "it cannot begin: " + suspended(w.Suspended, w.Case, now)
	case Failing:
		return fmt.Sprintf("the store has failed for %s, and it is tried again until it works", printable.Duration(now.Sub(w.Down)))
	case Paused:
		if w.PausedKey != "" {
			return fmt.Sprintf("key %s of %s is paused%s: resume it with tasq queue resume %s --key %s", printable.Line(w.PausedKey), queue(w.Queue),
				decided(w.Paused, now), printable.Arguments(w.Queue), printable.Arguments(w.PausedKey))
		}
		return fmt.Sprintf("%s is paused%s: resume it with tasq queue resume %s", queue(w.Queue), decided(w.Paused, now), printable.Arguments(w.Queue))
	case Behind:
		if w.Fair != nil {
			return inTurn(w.Fair) + workers(w, now)
		}
		return ahead(w.Ahead) + workers(w, now)
	case Busy:
		if w.MaxRunning > 0 {
			return fmt.Sprintf("this engine runs %d jobs, the most that Config.MaxRunning allows", w.MaxRunning)
		}
		return "all workers of " + queue(w.Queue) + " are busy" + workers(w, now)
	}
	return ""
}

// workers says how many workers were set for the queue, and by whom.
func workers(w *Wait, now time.Time) string {
	if w.Workers == nil {
		return ""
	}
	return fmt.Sprintf("; its workers are set to %d%s", w.Workers.N, decided(&w.Workers.Decision, now))
}

// decided says who decided something, and how long ago.
func decided(d *store.Decision, now time.Time) (text string) {
	if d == nil {
		return ""
	}
	if d.By != "" {
		text = " by " + d.By
	}
	if !d.At.IsZero() {
		text += " for " + printable.Duration(now.Sub(d.At))
	}
	return text
}

// suspended names the suspended case, as seen from itself or from another case.
func suspended(s *Suspension, seenFrom workitem.CaseID, now time.Time) string {
	line := "the case is suspended"
	if s.Case != seenFrom {
		line = "case " + s.Case.String() + " above it is suspended"
	}
	if s.By != "" {
		line += " by " + s.By
	}
	line += " for " + printable.Duration(now.Sub(s.Since))
	if s.Reason != "" {
		line += " (" + s.Reason + ")"
	}
	return line
}

// inTurn describes the jobs of a fair queue that start before a job.
func inTurn(f *Fair) string {
	if f.Keys == 0 {
		return "the queue takes turns between keys of the input"
	}
	line := fmt.Sprintf("the queue takes turns between %d keys", f.Keys)
	if f.Keys == 1 {
		line = "no other key has jobs that wait"
	}
	if f.Ahead > 0 {
		line += fmt.Sprintf(", and %d of its own key", f.Ahead) + map[bool]string{true: " goes first", false: " go first"}[f.Ahead == 1]
	}
	return line
}

// ahead says how many jobs or items come before one.
func ahead(n int) string {
	switch {
	case n == 1:
		return "1 other goes first"
	case n >= MaxAhead:
		return fmt.Sprintf("%d others or more go first", MaxAhead)
	}
	return fmt.Sprintf("%d others go first", n)
}
