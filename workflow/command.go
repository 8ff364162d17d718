package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Doer executes commands. *engine.Engine implements it, *engine.Tx as part of its transaction, and clients of engines in
// other processes.
type Doer interface {
	// Do executes a command, and returns when it is durable; in a transaction, when it was executed. If it returns an error,
	// the command had no effect.
	Do(ctx context.Context, c Command) (Result, error)
}

// Kind is the kind of a command. The values are stored, so they are stable.
type Kind string

// The kinds of commands.
const (
	KindStart          Kind = "start"            // start a case of Workflow with Payload as its input
	KindAct            Kind = "item"             // do Action on Item
	KindAddItem        Kind = "add-item"         // create one more work item in Task of Case, with Payload as its input
	KindCancel         Kind = "cancel"           // cancel Case
	KindSend           Kind = "send"             // send Event to Case, with Payload as its value
	KindToken          Kind = "token"            // send the event that Token stands for, with Payload as its value
	KindBroadcast      Kind = "broadcast"        // publish Payload to everything that waits for the topic Event or subscribes to it
	KindRestart        Kind = "restart"          // start Case, which has ended, again as a fresh case
	KindRemove         Kind = "remove"           // remove Case, which has ended, with all that it had
	KindReclaim        Kind = "reclaim"          // take Job, which runs, from its worker
	KindSuspend        Kind = "suspend"          // have nothing of Case begin until it is resumed
	KindResume         Kind = "resume"           // have Case, which is suspended, or has failed, continue where it was
	KindMove           Kind = "move"             // take the tokens of From in Case, and put tokens into To
	KindRetry          Kind = "retry"            // try the work of Item again, now
	KindGiveUp         Kind = "give-up"          // fail the task, and the case, of Item, which is an incident
	KindRetryIncident  Kind = "retry-incident"   // do the job of the incident Job again, now
	KindGiveUpIncident Kind = "give-up-incident" // fail the task, and the case, of the incident Job, which is about a child case
	KindFork           Kind = "fork"             // start a fresh case from what Case was at the entry Seq of its journal
	KindSetLimit       Kind = "set-limit"        // set the number of Limit to N
	KindForgetLimit    Kind = "forget-limit"     // forget what was set of Limit
	KindLimits         Kind = "limits"           // list the limits
	KindLimitWaits     Kind = "limit-waits"      // list what jobs of the root case Case wait for, of limits
	KindQueues         Kind = "queues"           // list the queues
	KindDefinitions    Kind = "definitions"      // list the definitions of the engine
	KindPause          Kind = "pause-queue"      // have no job of Queue begin
	KindUnpause        Kind = "resume-queue"     // have the jobs of Queue begin again

	KindSuspendWorkflow Kind = "suspend-workflow" // have new cases of Workflow begin suspended
	KindResumeWorkflow  Kind = "resume-workflow"  // have new cases of Workflow begin as usual
	KindSetWorkers      Kind = "set-workers"      // have N jobs of Queue run at a time, in each engine
	KindForgetWorkers   Kind = "forget-workers"   // have as many jobs of Queue run at a time as the programs say
	KindRedrive         Kind = "redrive"          // start the original of the dead letter Case again
	KindSkip            Kind = "skip"             // complete Item with Payload as its output, without its work
	KindDryRun          Kind = "dry-run"          // tell what the command in Payload would do, and do nothing
)

// Command is a request to change something. The functions of this package (Start, Act, Cancel and so on) and the typed
// handles of package builder create commands, which can be stored and sent as JSON. A command to complete an item is
//
//	{"kind":"item","item":"0197…","action":"complete","payload":{"ok":true},"actor":"ann"}
//
// The fields that may be set depend on Kind; [Command.Check] rejects others. The zero value is not a command.
type Command struct {
	Kind Kind `json:"kind"`

	// Workflow is the workflow to start. For a command on a case or an item, the command fails unless the root case or the
	// item belongs to this workflow; "" is any.
	Workflow string `json:"workflow,omitempty"`
	// Fingerprint selects the definition of a new case; "" is the last one with that name in the arguments of Open.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Task is the task to add an item to. For an action, the command fails unless the item belongs to this task; "" is
	// any.
	Task   string          `json:"task,omitempty"`
	Case   workitem.CaseID `json:"case,omitzero"`
	Item   workitem.ID     `json:"item,omitzero"`
	Job    workitem.JobID  `json:"job,omitzero"`
	Action workitem.Action `json:"action,omitzero"`
	Event  string          `json:"event,omitempty"` // the name of an event, or the topic of a broadcast
	Token  string          `json:"token,omitempty"`

	Payload  json.RawMessage   `json:"payload,omitempty"`  // input, output or value; nil is none
	Reason   *workitem.Failure `json:"reason,omitempty"`   // why an item fails, an item or a case is canceled, or an actor sends another command; may be nil
	Route    []string          `json:"route,omitempty"`    // the targets of the task's split, if the action completes the task; nil leaves the choice to the definition
	Seq      int64             `json:"seq,omitempty"`      // of a fork: the position in the journal up to which the history of Case is copied
	FromStep string            `json:"fromStep,omitempty"` // the first step that a restart executes again; "" repeats no completed step

	UnlessRestarted bool `json:"unlessRestarted,omitempty"` // of a restart: refuse it if the case was restarted or forked already

	From  string `json:"from,omitempty"`  // of a move: the condition, or the enabled or started task, whose tokens are removed
	To    string `json:"to,omitempty"`    // of a move: the condition that gets a token, or the task to enable
	Force bool   `json:"force,omitempty"` // move even if the case could not end afterwards

	After    time.Duration `json:"after,omitempty"`    // delay of the start, in nanoseconds; 0 is at once
	At       time.Time     `json:"at,omitzero"`        // time of the start; a past time, and the zero time, is at once
	Priority int           `json:"priority,omitempty"` // of the new case or item; higher goes first
	Queue    string        `json:"queue,omitempty"`    // of an added item, or of the jobs of a new case; "" is that of the task
	Limit    string        `json:"limit,omitempty"`    // the name of a limit
	QueueKey string        `json:"queueKey,omitempty"` // of a queue with FairBy: the key to pause or to resume; "" is the whole queue
	LimitKey string        `json:"limitKey,omitempty"` // of a limit: the key to set; "" is all keys without a number of their own
	N        int64         `json:"n,omitempty"`        // the number of a limit; 0 pauses it
	Options  Options       `json:"options,omitzero"`   // of a start: options of the case

	Retry *retry.Changes `json:"retry,omitempty"` // of a retry or resume: changes of the retry policy, see [RetryPolicy]; nil for none

	BusinessKey string            `json:"businessKey,omitempty"` // of a start: instead of the key that the definition computes; "" uses that
	Labels      map[string]string `json:"labels,omitempty"`      // of a start: replace labels of the same names that the definition computes

	IfTaken Taken  `json:"ifTaken,omitempty"` // of a start: what to do if its business key is taken
	Per     Period `json:"per,omitempty"`     // of a start: one case with the business key in each period, see OncePer
	Zone    string `json:"zone,omitempty"`    // of Per; "" is UTC

	Quiet   time.Duration `json:"quiet,omitempty"`   // of a debounced start: how long to wait for further starts with its key, in nanoseconds, see Debounce
	Longest time.Duration `json:"longest,omitempty"` // of a debounced start: the longest delay since the first start, in nanoseconds; 0 is no limit

	Throttle int           `json:"throttle,omitempty"` // of a start: how many cases with the business key may start within Window; 0 is no limit, see Throttle
	Window   time.Duration `json:"window,omitempty"`   // of Throttle, in nanoseconds

	Key   string `json:"key,omitempty"`   // idempotency key; "" is none
	Actor string `json:"actor,omitempty"` // who issues the command; "" is unknown
	Trace string `json:"trace,omitempty"` // the trace that the command is part of, see [Trace]; "" is none

	// WaitForOwner makes a command that is left for another process wait for a process that has the workflow. Otherwise a
	// process without the workflow rejects the command.
	WaitForOwner bool `json:"waitForOwner,omitempty"`

	times int   // how often After and At were given
	err   error // of the options
}

// Result is the result of a successful command.
type Result struct {
	Case  workitem.CaseID `json:"case,omitzero"`  // that was started, or that the command was about
	Item  workitem.ID     `json:"item,omitzero"`  // that was added, or acted on
	Count int             `json:"count,omitzero"` // how many a broadcast reached
	Found bool            `json:"found,omitzero"` // the start did nothing: the case held its business key, see [Return]

	Limits []LimitInfo `json:"limits,omitempty"` // that were listed
	Queues []QueueInfo `json:"queues,omitempty"` // that were listed
	Waits  []LimitWait `json:"waits,omitempty"`  // that were listed
	Loaded *Loaded     `json:"loaded,omitempty"` // the definitions that were listed

	Preview *Preview `json:"preview,omitempty"` // of a dry run; nil for other commands
}

// Start starts a case of a workflow. The result has its id.
func Start(workflow string, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindStart, Workflow: workflow, Payload: input}, opts...)
}

// Act executes an action on a work item. The payload is the output of a completion, or nil if the task has none; see Fail and
// CancelItem for actions with a reason.
func Act(item workitem.ID, a workitem.Action, payload json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindAct, Item: item, Action: a, Payload: payload}, opts...)
}

// Fail fails a started work item. The reason may be nil.
func Fail(item workitem.ID, reason *workitem.Failure, opts ...Option) Command {
	return With(Command{Kind: KindAct, Item: item, Action: workitem.Fail, Reason: reason}, opts...)
}

// CancelItem cancels a live work item. The reason may be nil.
func CancelItem(item workitem.ID, reason *workitem.Failure, opts ...Option) Command {
	return With(Command{Kind: KindAct, Item: item, Action: workitem.Cancel, Reason: reason}, opts...)
}

// AddItem creates one more work item in an enabled or started task of a case. The result has its id.
func AddItem(id workitem.CaseID, task string, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindAddItem, Case: id, Task: task, Payload: input}, opts...)
}

// Cancel cancels a case with its items, jobs and child cases. The reason may be nil.
func Cancel(id workitem.CaseID, reason *workitem.Failure, opts ...Option) Command {
	return With(Command{Kind: KindCancel, Case: id, Reason: reason}, opts...)
}

// Send sends an event to a case. The step that has waited longest for an event of that name takes it (see step.Await); if no
// step waits, it is kept for the first that does. Events of one name are taken in the order in which they were sent, each by
// one step. A nil value is sent as null, and a json.RawMessage as it is.
func Send(id workitem.CaseID, event string, value any, opts ...Option) Command {
	return With(Command{Kind: KindSend, Case: id, Event: event}.carrying(value), opts...)
}

// SendToken sends the event of a token (see step.Token) to the case that created it. A token can be used once.
func SendToken(token string, value any, opts ...Option) Command {
	return With(Command{Kind: KindToken, Token: token}.carrying(value), opts...)
}

// Broadcast sends a value to each step that waits for the topic now (see step.Topic), and starts a case of each workflow that
// subscribes to it (see builder.On), in one transaction. The result has their number. A broadcast is not kept for later
// receivers; use Send for that.
func Broadcast(topic string, value any, opts ...Option) Command {
	return With(Command{Kind: KindBroadcast, Event: topic}.carrying(value), opts...)
}

// carrying returns the command with the JSON form of a value as its payload.
func (c Command) carrying(value any) Command {
	raw, given := value.(json.RawMessage)
	if !given {
		raw, c.err = domain.Encode(value)
	}
	c.Payload = raw
	return c
}

// Restart starts a new case with the input and options of a root case that has ended. It takes over the completed steps of the
// last job; with FromStep only those before a given step. The result has the id of the new case.
func Restart(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindRestart, Case: id}, opts...)
}

// Fork starts a new case from a past state of a root case and its descendants: their state after the journal entry at position seq. Work
// that was completed by then is completed in the new case, too: no callback is called, and no step is repeated. Work that was in progress
// starts again: running jobs become due, and timers, sleeps and deadlines have the time that was left then. Tokens (see step.Token) are
// created again. The new case has the labels and the business key of the original, but does not prevent others from using the key. Rows in
// the program's own tables are not copied. The result has the new case. The error wraps ErrNotFound if the case did not exist at that
// position, and ErrInactive if it had ended.
func Fork(id workitem.CaseID, seq int64, opts ...Option) Command {
	return With(Command{Kind: KindFork, Case: id, Seq: seq}, opts...)
}

// Remove removes a root case that has ended, with its descendants, items, jobs, steps and events, its part of the journal, and
// the idempotency keys of its commands.
func Remove(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindRemove, Case: id}, opts...)
}

// Reclaim releases a running job from a worker that hangs: the context of the job is canceled, the job becomes due again, and
// a result that the worker reports later is rejected. The error wraps engine.ErrLeaseLost if the job is not running.
func Reclaim(job workitem.JobID, opts ...Option) Command {
	return With(Command{Kind: KindReclaim, Job: job}, opts...)
}

// Resume continues a suspended or a failed case. A suspended case starts its due work again. A failed case continues where it failed: each
// work item that failed, or was canceled because of the failure, is replaced by a new one, and completed work stays completed. If the
// failure also failed a parent case, the parent is resumed as well, with everything that its failure ended. The result has the resumed
// case. The input replaces that of the failed work item, if there is only one; nil keeps it. The error wraps ErrNotFailed if the case is
// neither suspended nor failed, and ErrDeadEnd if it cannot continue.
func Resume(id workitem.CaseID, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindResume, Case: id, Payload: input}, opts...)
}

// Move changes the state of a case: it removes one token from a condition, or the tokens of an enabled or started task, which is canceled
// with its work; and it puts a token into a condition, or the tokens that a task needs to be enabled. A failed case is resumed, so a move
// from the failed task to an earlier one continues the case from there. The error wraps ErrDeadEnd if the case could not end afterwards;
// see Force.
func Move(id workitem.CaseID, from, to string, opts ...Option) Command {
	return With(Command{Kind: KindMove, Case: id, From: from, To: to}, opts...)
}

// Force executes a Move even if the case could not end afterwards.
func Force() Option { return set(func(c *Command) { c.Force = true }) }

// Retry retries the work of an item now. An item that waits for its next attempt starts it at once; an item that failed, or
// whose job was abandoned, is replaced by a new one. If the item failed its case, the case is resumed. The input is that of the
// new item; nil keeps the input. The result has the item that is retried.
func Retry(item workitem.ID, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindRetry, Item: item, Payload: input}, opts...)
}

// RetryIncident retries the job of an incident now: a timer, a scheduled function or a completion handler whose attempts are used up. If
// the incident is about a child case, it resumes that, as Resume does. The incident is one of store.Incidents, and ends. The error wraps
// ErrNotFound if there is no such incident, and ErrBadCommand if it is about a work item: use Retry for these.
func RetryIncident(incident workitem.JobID, opts ...Option) Command {
	return With(Command{Kind: KindRetryIncident, Job: incident}, opts...)
}

// Skip completes a work item with this output, as if its work had returned it. A failed item is replaced by a new one first,
// and a case that failed with it is resumed. The result has the item that completed.
func Skip(item workitem.ID, output json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindSkip, Item: item, Payload: output}, opts...)
}

// SetLimit changes the number of a limit, the N of limit.Limit: more or fewer slots, another rate. What is held or was admitted
// still counts. 0 pauses the limit. The number is stored, and survives restarts. The error wraps ErrNotFound if no workflow of the
// engine has the limit.
func SetLimit(name string, n int64, opts ...Option) Command {
	return With(Command{Kind: KindSetLimit, Limit: name, N: n}, opts...)
}

// SetLimitOf sets the number of one key of a limit, such as a customer; SetLimit sets that of all other keys. 0 pauses the key. Setting
// the current number of the limit removes the number of the key. At most MaxLimitKeys keys of a limit can have one. The error wraps
// ErrNotFound if no workflow of the engine has the limit.
func SetLimitOf(name, key string, n int64, opts ...Option) Command {
	c := With(Command{Kind: KindSetLimit, Limit: name, LimitKey: key, N: n}, opts...)
	if key == "" {
		c.err = errors.Join(c.err, fmt.Errorf("%w: the key of limit %s is empty; name one, or use SetLimit", ErrBadCommand, name))
	}
	return c
}

// MaxLimitKeys is the largest number of keys of a limit with a number of their own. Engines keep them in
// memory.
const MaxLimitKeys = 1000

// ForgetLimit removes the stored settings of a limit, including those of single keys: it has the numbers of its definition again. A limit
// that no workflow of the engine uses any more is removed from the store. The error wraps ErrNotFound if the store has no limit of that
// name.
func ForgetLimit(name string, opts ...Option) Command {
	return With(Command{Kind: KindForgetLimit, Limit: name}, opts...)
}

// Limits lists the limits of the engine's functions with their usage. It changes nothing.
func Limits() Command { return Command{Kind: KindLimits} }

// Because sets the reason of a command, for the history; of a command on a limit, a queue or a workflow, for its setting.
func Because(text string) Option {
	return set(func(c *Command) { c.Reason = &workitem.Failure{Message: text} })
}

// Due returns when a case that is started now begins. The error wraps ErrBadCommand.
func (c *Command) Due(now time.Time) (time.Time, error) {
	switch {
	case c.times > 1 || c.After != 0 && !c.At.IsZero():
		return now, fmt.Errorf("%w: the start time is given twice: give After or At once", ErrBadCommand)
	case c.After < 0:
		return now, fmt.Errorf("%w: it cannot begin %s ago: give zero or more", ErrBadCommand, -c.After)
	case c.At.After(now):
		if err := workitem.CheckDue(c.At); err != nil {
			return now, fmt.Errorf("%w: %w", ErrBadCommand, err)
		}
		return c.At.Truncate(time.Microsecond).UTC(), nil
	}
	return now.Add(c.After).Truncate(time.Microsecond), nil
}

// Hash returns a hash of what a command requests, to compare commands with the same idempotency key. It does not include the
// key, the actor, the trace, the version of the workflow and the start time of a case, which may differ when a program repeats a
// command.
func (c *Command) Hash() (string, error) {
	asked := *c
	asked.Key, asked.Actor, asked.Trace, asked.Fingerprint, asked.WaitForOwner = "", "", "", "", false
	asked.After, asked.At = 0, time.Time{}
	raw, err := json.Marshal(&asked)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// String describes a command briefly, for the history: "start order", "item complete 0197…".
func (c *Command) String() string {
	switch c.Kind {
	case KindStart:
		return "start " + c.Workflow
	case KindAct:
		return fmt.Sprintf("item %s %s", c.Action, c.Item)
	case KindAddItem:
		return "item new " + c.Task
	case KindRetry, KindSkip, KindGiveUp:
		return fmt.Sprintf("item %s %s", c.Kind, c.Item)
	case KindMove:
		return fmt.Sprintf("case move %s from %s to %s", c.Case, c.From, c.To)
	case KindCancel, KindRemove, KindSuspend, KindResume, KindRedrive:
		return fmt.Sprintf("case %s %s", c.Kind, c.Case)
	case KindSend:
		return fmt.Sprintf("event %s to %s", c.Event, c.Case)
	case KindToken:
		// The journal must not show the token; its hash distinguishes it from another one of the same case.
		return fmt.Sprintf("event by token %.8x", sha256.Sum256([]byte(c.Token)))
	case KindBroadcast:
		return "broadcast " + c.Event
	case KindRestart:
		return "restart " + c.Case.String()
	case KindFork:
		return fmt.Sprintf("case fork %s at %d", c.Case, c.Seq)
	case KindReclaim:
		return "job reclaim"
	case KindRetryIncident:
		return "incident retry " + c.Job.String()
	case KindGiveUpIncident:
		return "incident give-up " + c.Job.String()
	case KindSetLimit:
		if c.LimitKey != "" {
			return fmt.Sprintf("limit set %s %d of %s", c.Limit, c.N, c.LimitKey)
		}
		return fmt.Sprintf("limit set %s %d", c.Limit, c.N)
	case KindForgetLimit:
		return "limit forget " + c.Limit
	case KindSetWorkers:
		return fmt.Sprintf("%s %s %d", c.Kind, c.Queue, c.N)
	case KindPause, KindUnpause, KindForgetWorkers:
		if c.QueueKey != "" {
			return fmt.Sprintf("%s %s of %s", c.Kind, c.Queue, c.QueueKey)
		}
		return fmt.Sprintf("%s %s", c.Kind, c.Queue)
	case KindSuspendWorkflow, KindResumeWorkflow:
		return fmt.Sprintf("%s %s", c.Kind, c.Workflow)
	}
	return string(c.Kind)
}
