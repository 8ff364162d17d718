package view

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// action is a command as a form. Its word is what addresses name it by.
type action struct {
	kind   workflow.Kind
	act    workitem.Action // of a command on an item
	target string          // the parameter that names what it is about
	title  string
	do     string // the text of its button
	about  string
	danger bool
	shows  bool // what it would change can be shown before
	checks bool // and depends on the fields, so that there is a button for it
	fields []field

	schedule string // what is asked of a schedule; "" for other commands
}

var (
	reasonField  = field{Name: "reason", Label: "Reason", Hint: "For the history: why this is done."}
	inputField   = field{Name: "payload", Label: "Another input, as JSON", Hint: "Empty keeps the input that it had.", Wide: true}
	outputField  = field{Name: "payload", Label: "Output, as JSON", Hint: "Empty gives none.", Wide: true}
	valueField   = field{Name: "payload", Label: "Value, as JSON", Hint: "Empty sends null.", Wide: true}
	routeField   = field{Name: "route", Label: "Where it goes on", Hint: "Names of tasks or conditions, separated by commas; empty leaves it to the workflow."}
	codeField    = field{Name: "code", Label: "Failure code", Hint: "A word that programs compare, such as no-funds."}
	messageField = field{Name: "reason", Label: "Message", Hint: "One sentence for people."}
)

// actions are the commands that the pages have, by their words.
var actions = map[string]action{
	"start": {kind: workflow.KindStart, target: "workflow", title: "Start a case", do: "Start the case", checks: true, fields: startFields},
	"cancel": {kind: workflow.KindCancel, target: "case", title: "Cancel the case", do: "Cancel the case", danger: true, shows: true,
		about: "The case ends, with all its work items, jobs and child cases. What was done stays in its history.", fields: []field{reasonField}},
	"suspend": {kind: workflow.KindSuspend, target: "case", title: "Suspend the case", do: "Suspend the case", shows: true,
		about: "Nothing of the case begins until it is resumed. What is under way may end.", fields: []field{reasonField}},
	"resume": {kind: workflow.KindResume, target: "case", title: "Resume the case", do: "Resume the case", shows: true,
		about: "The case goes on where it was: what was done stays done, and what failed is tried again.", fields: []field{inputField, reasonField}},
	"move": {kind: workflow.KindMove, target: "case", title: "Move a token", do: "Move it", checks: true,
		about: "It corrects where the case stands. A task that is left is canceled with its work; a task that is entered begins. A move after which the case could " +
			"not end is refused.",
		fields: []field{{Name: "from", Label: "From", Hint: "The condition that has the token, or the task that is enabled or started.", Required: true},
			{Name: "to", Label: "To", Hint: "The condition that gets it, or the task that is to begin.", Required: true}, reasonField}},
	"restart": {kind: workflow.KindRestart, target: "case", title: "Start the case again", do: "Start it again",
		about: "A fresh case begins with the same input. Steps that were done are taken over."},
	"fork": {kind: workflow.KindFork, target: "case", title: "Fork the case", do: "Start the fork",
		about: "A fresh case goes on from the past state. What was done until then is done there, too, and is not done again; what was under way begins " +
			"again, with the time that was left. The case itself stays as it is.",
		fields: []field{{Name: "seq", Label: "Position of the journal", Hint: "The last entry that is taken over.", Required: true}, reasonField}},
	"redrive": {kind: workflow.KindRedrive, target: "case", title: "Start what was given up again", do: "Start it again", shows: true,
		about: "The original of the dead letter begins again, and the letter ends.", fields: []field{reasonField}},
	"remove": {kind: workflow.KindRemove, target: "case", title: "Remove the case", do: "Remove it for good", danger: true,
		about:  "The case is removed with all that it had: items, jobs, steps, events and its history. This cannot be undone.",
		fields: []field{{Name: "confirm", Label: "Type the last four characters of its id", Required: true}}},
	"send": {kind: workflow.KindSend, target: "case", title: "Send an event", do: "Send the event",
		about:  "The step that has waited longest for an event of this name takes it, or the first one that will.",
		fields: []field{{Name: "event", Label: "Name of the event", Required: true}, valueField}},
	"broadcast": {kind: workflow.KindBroadcast, title: "Broadcast", do: "Broadcast",
		about:  "Every step that waits for the topic at this moment gets the value, and a case of each workflow that subscribes to it starts.",
		fields: []field{{Name: "event", Label: "Topic", Required: true}, valueField}},
	"retry": {kind: workflow.KindRetry, target: "item", title: "Try again now", do: "Try again", shows: true,
		about: "The work is tried again at once. If the item failed its case, the case goes on.", fields: []field{inputField, reasonField}},
	"retry-incident": {kind: workflow.KindRetryIncident, target: "incident", title: "Try it again now", do: "Try again",
		about: "The timer, the function or the handler that gave up is run again, at once.", fields: []field{reasonField}},
	"skip": {kind: workflow.KindSkip, target: "item", title: "Skip the work", do: "Skip it",
		about: "The item completes with this output, as if its work had given it.", fields: []field{outputField, routeField, reasonField}},
	"give-up": {kind: workflow.KindGiveUp, target: "item", title: "Give up", do: "Give up", danger: true, shows: true,
		about: "The task fails, and its case with it.", fields: []field{reasonField}},
	"item-start":    {kind: workflow.KindAct, act: workitem.Start, target: "item", title: "Start the item", do: "Start it"},
	"item-complete": {kind: workflow.KindAct, act: workitem.Complete, target: "item", title: "Complete the item", do: "Complete it", fields: []field{outputField, routeField}},
	"item-fail":     {kind: workflow.KindAct, act: workitem.Fail, target: "item", title: "Fail the item", do: "Fail it", danger: true, fields: []field{codeField, messageField}},
	"item-cancel": {kind: workflow.KindAct, act: workitem.Cancel, target: "item", title: "Cancel the item", do: "Cancel it", danger: true, shows: true,
		fields: []field{messageField}},
	"item-reset": {kind: workflow.KindAct, act: workitem.Reset, target: "item", title: "Take the item back", do: "Take it back", shows: true,
		about: "The item can be started again, by any user."},
	"reclaim": {kind: workflow.KindReclaim, target: "job", title: "Take the job from its worker", do: "Take it back", danger: true,
		about: "For a worker that hangs: the job is due again, and what the worker hands in later is refused."},
	"pause-queue": {kind: workflow.KindPause, target: "queue", title: "Pause the queue", do: "Pause", danger: true,
		about: "No job of the queue begins until it is resumed, in any program. What runs goes on. The database remembers it."},
	"resume-queue": {kind: workflow.KindUnpause, target: "queue", title: "Resume the queue", do: "Resume", about: "The jobs of the queue begin again."},
	"set-workers": {kind: workflow.KindSetWorkers, target: "queue", title: "Set the workers", do: "Set them",
		about: "So many jobs of the queue run at a time, in each program that runs them, up to what its configuration bounds. What runs goes on. The database " +
			"remembers the number; without one, programs have those of their configuration again.",
		fields: []field{{Name: "workers", Label: "Workers", Hint: "1 or more; empty forgets the number that was set."}}},
	"set-limit": {kind: workflow.KindSetLimit, target: "limit", title: "Set the limit", do: "Set it",
		about: "The database remembers the number; to set the one that the program defines forgets it. 0 pauses what needs the limit.",
		fields: []field{{Name: "number", Label: "Number", Required: true},
			{Name: "limitKey", Label: "Only for the key", Hint: "Such as a customer; empty is for all that have no number of their own."}}},
	"forget-limit": {kind: workflow.KindForgetLimit, target: "limit", title: "Forget the limit", do: "Forget it", danger: true,
		about: "What was set of it is forgotten, for its keys too. A program that defines it has its number again; of one that none defines the name is gone."},
	"schedule-pause": {schedule: "pause", target: "schedule", title: "Pause the schedule", do: "Pause it",
		about: "Nothing starts until it is resumed. What runs goes on.", fields: []field{reasonField}},
	"schedule-resume": {schedule: "resume", target: "schedule", title: "Resume the schedule", do: "Resume it",
		about: "It goes on with the next tick. The ticks of the pause are left out; a backfill begins them.", fields: []field{reasonField}},
	"schedule-run": {schedule: "run", target: "schedule", title: "Run it now", do: "Run it",
		about: "A run starts now, beside the ticks, also while the schedule is paused.", fields: []field{reasonField}},
	"schedule-backfill": {schedule: "backfill", target: "schedule", title: "Backfill", do: "Begin them",
		about: "The ticks of a period that have no run begin, one after the other as runs end, or all at once if the schedule allows overlaps.",
		fields: []field{{Name: "from", Label: "From", Hint: "The first time, such as 2030-01-31T08:00:00+01:00; without a zone it is UTC.", Required: true},
			{Name: "to", Label: "To", Hint: "The time before which the period ends.", Required: true}, reasonField}},
	"schedule-remove": {schedule: "remove", target: "schedule", title: "Remove the schedule", do: "Remove it", danger: true,
		about: "It ends. What it has started goes on.", fields: []field{reasonField}},
}

// word is the kind of the command for [access.User.May].
func (a *action) word() string {
	if a.schedule != "" {
		return schedules.Name
	}
	return string(a.kind)
}

// command makes the command of a filled form.
func (a *action) command(form url.Values, actor string) (workflow.Command, error) {
	c := workflow.Command{Kind: a.kind, Action: a.act, Actor: actor, Key: form.Get("key"), Event: form.Get("event"), Workflow: form.Get("workflow"),
		LimitKey: form.Get("limitKey"), From: strings.TrimSpace(form.Get("from")), To: strings.TrimSpace(form.Get("to"))}
	if err := a.aim(&c, form.Get(a.target)); err != nil {
		return c, err
	}
	for _, f := range a.fields { // a program may send less than a browser does
		if f.Required && strings.TrimSpace(form.Get(f.Name)) == "" {
			return c, &fieldError{f.Name, fmt.Errorf("%q is missing: %w", f.Label, workflow.ErrBadCommand)}
		}
	}
	if text := strings.TrimSpace(form.Get("payload")); text != "" {
		if err := domain.CheckJSON(json.RawMessage(text)); err != nil {
			return c, &fieldError{"payload", fmt.Errorf("this is not JSON: %w", err)}
		}
		c.Payload = json.RawMessage(text)
	} else if a.kind == workflow.KindSend || a.kind == workflow.KindBroadcast {
		c.Payload = json.RawMessage("null")
	}
	for name, to := range map[string]*int64{"number": &c.N, "seq": &c.Seq, "workers": &c.N} {
		text := strings.TrimSpace(form.Get(name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return c, &fieldError{name, fmt.Errorf("%q is not a number of at least 0: %w", text, workflow.ErrBadCommand)}
		}
		*to = n
	}
	if a.kind == workflow.KindSetWorkers && strings.TrimSpace(form.Get("workers")) == "" {
		c.Kind = workflow.KindForgetWorkers
	}
	if a.kind == workflow.KindStart {
		if err := readStart(&c, form); err != nil {
			return c, err
		}
	}
	for name := range strings.SplitSeq(form.Get("route"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.Route = append(c.Route, name)
		}
	}
	switch reason, code := form.Get("reason"), form.Get("code"); {
	case a.kind == workflow.KindAct && (reason != "" || code != ""):
		c.Reason = &workitem.Failure{Code: code, Message: reason}
	case reason != "":
		c = workflow.With(c, workflow.Because(reason))
	}
	return c, c.Check()
}

// aim sets what the command is about.
func (a *action) aim(c *workflow.Command, id string) (err error) {
	switch a.target {
	case "case":
		err = c.Case.UnmarshalText([]byte(id))
	case "item":
		err = c.Item.UnmarshalText([]byte(id))
	case "job", "incident":
		err = c.Job.UnmarshalText([]byte(id))
	case "queue":
		c.Queue = id
	case "limit":
		c.Limit = id
	}
	if err != nil {
		return fmt.Errorf("%q is not an id: %w", id, workflow.ErrBadCommand)
	}
	return nil
}
