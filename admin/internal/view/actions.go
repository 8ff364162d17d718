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

// action is a command as a form. Its word is its name in addresses.
type action struct {
	kind   workflow.Kind
	act    workitem.Action // of a command on an item
	target string          // the parameter that names what it is about
	title  string
	do     string // the label of its button
	about  string
	danger bool
	shows  bool // a preview of its changes can be shown
	checks bool // the preview depends on the fields, so it has a button
	fields []field

	schedule string // the command on a schedule; "" for other commands
}

var (
	reasonField   = field{Name: "reason", Label: "Reason", Hint: "Recorded in the history."}
	settingField  = field{Name: "reason", Label: "Reason", Hint: "Stored with the setting, and shown beside it."}
	auditField    = field{Name: "reason", Label: "Reason", Hint: "Recorded in the audit."}
	inputField    = field{Name: "payload", Label: "New input, as JSON", Hint: "Leave empty to keep the input.", Wide: true}
	outputField   = field{Name: "payload", Label: "Output, as JSON", Hint: "Leave empty for no output.", Wide: true}
	valueField    = field{Name: "payload", Label: "Value, as JSON", Hint: "Leave empty to send null.", Wide: true}
	routeField    = field{Name: "route", Label: "Route", Hint: "Names of the next tasks or conditions, separated by commas. Leave empty to let the workflow choose."}
	forceField    = field{Name: "force", Label: "Force", Hint: "Move even if the case could not end afterwards.", Options: []string{"", "force"}}
	fromStepField = field{Name: "fromStep", Label: "From step", Hint: "Executes the step with this name and those after it again. Leave empty to take over all completed steps."}
	codeField     = field{Name: "code", Label: "Failure code", Hint: "A code for programs, such as no-funds."}
	messageField  = field{Name: "reason", Label: "Message", Hint: "A sentence for people."}
	queueKeyField = field{Name: "queueKey", Label: "Only for the key", Hint: "Of a queue whose jobs take turns by a key, such as a customer. Leave empty for the whole queue."}
)

// actions are the commands of the pages, by word.
var actions = map[string]action{
	"start": {kind: workflow.KindStart, target: "workflow", title: "Start a case", do: "Start the case", checks: true, fields: startFields},
	"cancel": {kind: workflow.KindCancel, target: "case", title: "Cancel the case", do: "Cancel the case", danger: true, shows: true,
		about: "Cancels the case with all its work items, jobs and child cases. Its history is kept.", fields: []field{reasonField}},
	"suspend": {kind: workflow.KindSuspend, target: "case", title: "Suspend the case", do: "Suspend the case", shows: true,
		about: "No work of the case starts until it is resumed. Running work may finish.", fields: []field{reasonField}},
	"resume": {kind: workflow.KindResume, target: "case", title: "Resume the case", do: "Resume the case", shows: true,
		about: "The case continues where it stopped: completed work stays completed, and failed work is retried.", fields: repairFields(inputField, reasonField)},
	"move": {kind: workflow.KindMove, target: "case", title: "Move a token", do: "Move it", checks: true,
		about: "Changes the state of the case. The task that the token leaves is canceled with its work, and the task that it enters is enabled. A move after which the " +
			"case could not end is rejected.",
		fields: []field{{Name: "from", Label: "From", Hint: "The condition that holds the token, or the enabled or started task.", Required: true},
			{Name: "to", Label: "To", Hint: "The condition that gets the token, or the task to enable.", Required: true}, forceField, reasonField}},
	"restart": {kind: workflow.KindRestart, target: "case", title: "Restart the case", do: "Restart it",
		about: "Starts a new case with the same input. Completed steps are taken over.", fields: []field{fromStepField, reasonField}},
	"fork": {kind: workflow.KindFork, target: "case", title: "Fork the case", do: "Start the fork",
		about: "Starts a new case from the past state. Work that was completed by then is completed in the new case, too, and is not repeated; work that was active " +
			"starts again, with its remaining time. The original case does not change.",
		fields: []field{{Name: "seq", Label: "Position in the journal", Hint: "The last entry to copy.", Required: true}, reasonField}},
	"redrive": {kind: workflow.KindRedrive, target: "case", title: "Redrive the dead letter", do: "Redrive it", shows: true,
		about: "Restarts the original work of the dead letter, and closes the letter.", fields: []field{reasonField}},
	"remove": {kind: workflow.KindRemove, target: "case", title: "Remove the case", do: "Remove it permanently", shows: true, danger: true,
		about:  "Removes the case with its items, jobs, steps, events and history. This cannot be undone.",
		fields: []field{{Name: "confirm", Label: "Type the last four characters of its id", Required: true}, auditField}},
	"send": {kind: workflow.KindSend, target: "case", title: "Send an event", do: "Send the event",
		about:  "The step that has waited longest for an event of this name takes it; otherwise it is kept for the first step that waits for it.",
		fields: []field{{Name: "event", Label: "Name of the event", Required: true}, valueField, reasonField}},
	"broadcast": {kind: workflow.KindBroadcast, title: "Broadcast", do: "Broadcast",
		about:  "Sends the value to every step that waits for the topic now, and starts a case of each workflow that subscribes to it.",
		fields: []field{{Name: "event", Label: "Topic", Required: true}, valueField, reasonField}},
	"retry": {kind: workflow.KindRetry, target: "item", title: "Retry now", do: "Retry", shows: true,
		about: "Retries the work at once. If the item failed its case, the case is resumed.", fields: repairFields(inputField, reasonField)},
	"retry-incident": {kind: workflow.KindRetryIncident, target: "incident", title: "Retry now", do: "Retry", shows: true,
		about: "Runs the timer, the function or the handler again, at once; a failed child case is resumed.", fields: []field{reasonField}},
	"skip": {kind: workflow.KindSkip, target: "item", title: "Skip the work", do: "Skip it", checks: true,
		about: "Completes the item with this output, as if its work had returned it.", fields: []field{outputField, routeField, reasonField}},
	"give-up": {kind: workflow.KindGiveUp, target: "item", title: "Give up", do: "Give up", danger: true, shows: true,
		about: "Fails the task, and its case with it.", fields: []field{reasonField}},
	"give-up-incident": {kind: workflow.KindGiveUpIncident, target: "incident", title: "Give up", do: "Give up", danger: true, shows: true,
		about: "Fails the task that holds the failed child case, and its case with it.", fields: []field{reasonField}},
	"item-start":    {kind: workflow.KindAct, act: workitem.Start, target: "item", title: "Start the item", do: "Start it", fields: []field{reasonField}},
	"item-complete": {kind: workflow.KindAct, act: workitem.Complete, target: "item", title: "Complete the item", do: "Complete it", fields: []field{outputField, routeField, reasonField}},
	"item-fail":     {kind: workflow.KindAct, act: workitem.Fail, target: "item", title: "Fail the item", do: "Fail it", danger: true, fields: []field{codeField, messageField}},
	"item-cancel": {kind: workflow.KindAct, act: workitem.Cancel, target: "item", title: "Cancel the item", do: "Cancel it", danger: true, shows: true,
		fields: []field{messageField}},
	"item-reset": {kind: workflow.KindAct, act: workitem.Reset, target: "item", title: "Reset the item", do: "Reset it", shows: true,
		about: "Returns the item to the state initialized, so that any user can start it.", fields: []field{reasonField}},
	"reclaim": {kind: workflow.KindReclaim, target: "job", title: "Release the job from its worker", do: "Release it", shows: true, danger: true,
		about: "For a worker that hangs: the job becomes due again, and a result that the worker reports later is rejected.", fields: []field{reasonField}},
	"pause-queue": {kind: workflow.KindPause, target: "queue", title: "Pause the queue", do: "Pause", checks: true, danger: true,
		about:  "No job of the queue starts until it is resumed, in any program. Running jobs continue. The pause is stored in the database.",
		fields: []field{queueKeyField, settingField}},
	"resume-queue": {kind: workflow.KindUnpause, target: "queue", title: "Resume the queue", do: "Resume", checks: true, about: "Jobs of the queue start again.",
		fields: []field{queueKeyField, auditField}},
	"suspend-workflow": {kind: workflow.KindSuspendWorkflow, target: "workflow", title: "Suspend the workflow", do: "Suspend it", shows: true, danger: true,
		about: "New cases of the workflow, also child cases, begin suspended, in any program. Cases that exist are not suspended; the list of cases has a bulk " +
			"action for these. The suspension is stored in the database.",
		fields: []field{reasonField}},
	"resume-workflow": {kind: workflow.KindResumeWorkflow, target: "workflow", title: "Resume the workflow", do: "Resume it", shows: true,
		about: "New cases of the workflow begin as usual. Cases that are suspended stay so until each is resumed.", fields: []field{auditField}},
	"set-workers": {kind: workflow.KindSetWorkers, target: "queue", title: "Change the number of workers", do: "Change it", checks: true,
		about: "Sets how many jobs of the queue run concurrently in each program, up to the bound of its configuration. Running jobs continue. The number is stored " +
			"in the database; without it, programs use the numbers of their configuration.",
		fields: []field{{Name: "workers", Label: "Workers", Hint: "1 or more. Leave empty to remove the stored number."}, settingField}},
	"set-limit": {kind: workflow.KindSetLimit, target: "limit", title: "Change the limit", do: "Change it", checks: true,
		about: "The number is stored in the database; setting the number that the program defines removes the stored one. 0 pauses the work that needs the limit.",
		fields: []field{{Name: "number", Label: "Number", Required: true},
			{Name: "limitKey", Label: "Only for the key", Hint: "Such as a customer. Leave empty for all keys without a number of their own."}, settingField}},
	"forget-limit": {kind: workflow.KindForgetLimit, target: "limit", title: "Remove the settings of the limit", do: "Remove them", shows: true, danger: true,
		about:  "Removes the stored numbers of the limit and of its keys. A program that defines the limit uses its own number again; a limit that no program defines is removed itself.",
		fields: []field{auditField}},
	"schedule-pause": {schedule: "pause", target: "schedule", shows: true, title: "Pause the schedule", do: "Pause it",
		about: "No run starts until the schedule is resumed. Active runs continue.", fields: []field{reasonField}},
	"schedule-resume": {schedule: "resume", target: "schedule", shows: true, title: "Resume the schedule", do: "Resume it",
		about: "Resumes with the next tick. Ticks that were missed during the pause are skipped; a backfill runs them.", fields: []field{reasonField}},
	"schedule-run": {schedule: "run", target: "schedule", shows: true, title: "Run it now", do: "Run it",
		about: "Starts a run now, in addition to the ticks, even while the schedule is paused.", fields: []field{reasonField}},
	"schedule-backfill": {schedule: "backfill", target: "schedule", checks: true, title: "Backfill", do: "Start the backfill",
		about: "Runs the ticks of a period that have no run: one after the other, or all at once if the schedule allows overlaps.",
		fields: []field{{Name: "from", Label: "From", Hint: "The start of the period, such as 2030-01-31T08:00:00+01:00. Without a zone it is UTC.", Required: true},
			{Name: "to", Label: "To", Hint: "The end of the period, exclusive.", Required: true}, reasonField}},
	"schedule-remove": {schedule: "remove", target: "schedule", shows: true, title: "Remove the schedule", do: "Remove it", danger: true,
		about: "Removes the schedule. Active runs continue.", fields: []field{reasonField}},
}

// word is the kind of the command for [access.User.May].
func (a *action) word() string {
	if a.schedule != "" {
		return schedules.Name
	}
	return string(a.kind)
}

// command returns the command of a filled form.
func (a *action) command(form url.Values, actor string) (workflow.Command, error) {
	c := workflow.Command{Kind: a.kind, Action: a.act, Actor: actor, Key: form.Get("key"), Event: form.Get("event"), Workflow: form.Get("workflow"),
		FromStep: strings.TrimSpace(form.Get("fromStep")), LimitKey: form.Get("limitKey"), QueueKey: form.Get("queueKey"), From: strings.TrimSpace(form.Get("from")), To: strings.TrimSpace(form.Get("to")),
		Force: a.kind == workflow.KindMove && form.Get("force") == "force"}
	if err := a.aim(&c, form.Get(a.target)); err != nil {
		return c, err
	}
	for _, f := range a.fields { // a program may send fewer fields than a browser
		if f.Required && strings.TrimSpace(form.Get(f.Name)) == "" {
			return c, &fieldError{f.Name, fmt.Errorf("%q is missing: %w", f.Label, workflow.ErrBadCommand)}
		}
	}
	if text := strings.TrimSpace(form.Get("payload")); text != "" {
		if err := domain.CheckJSON(json.RawMessage(text)); err != nil {
			if !json.Valid([]byte(text)) {
				err = fmt.Errorf("this is not JSON: %w", err)
			}
			return c, &fieldError{"payload", err}
		}
		if changed(text, form.Get("was")) {
			c.Payload = json.RawMessage(text)
		}
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
			return c, &fieldError{name, fmt.Errorf("%q is not a whole number of 0 or more: %w", text, workflow.ErrBadCommand)}
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
	if a.kind == workflow.KindRetry || a.kind == workflow.KindResume {
		if err := readPolicy(&c, form); err != nil {
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

// aim sets the subject of the command.
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
