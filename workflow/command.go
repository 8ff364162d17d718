package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Doer executes commands: *engine.Engine does, an *engine.Tx as a part of its transaction, and a client of an engine in
// another process.
type Doer interface {
	// Do executes a command, and returns when it is durable; in a transaction, when it is done. The error says what is wrong
	// with the command or its effect, and nothing has happened then.
	Do(ctx context.Context, c Command) (Result, error)
}

// Kind says what a command asks for. Its words are stored, so they are stable.
type Kind string

// The kinds of commands.
const (
	KindStart         Kind = "start"          // start a case of Workflow with Payload as its input
	KindAct           Kind = "item"           // do Action on Item
	KindAddItem       Kind = "add-item"       // create one more work item in Task of Case, with Payload as its input
	KindCancel        Kind = "cancel"         // cancel Case
	KindSend          Kind = "send"           // send Event to Case, with Payload as its value
	KindToken         Kind = "token"          // send the event that Token stands for, with Payload as its value
	KindBroadcast     Kind = "broadcast"      // publish Payload to everything that waits for the topic Event or subscribes to it
	KindRestart       Kind = "restart"        // start Case, which has ended, again as a fresh case
	KindRemove        Kind = "remove"         // remove Case, which has ended, with all that it had
	KindReclaim       Kind = "reclaim"        // take Job, which runs, from its worker
	KindSuspend       Kind = "suspend"        // have nothing of Case begin until it is resumed
	KindResume        Kind = "resume"         // have Case, which is suspended, or has failed, go on where it was
	KindMove          Kind = "move"           // take the tokens of From in Case, and put tokens into To
	KindRetry         Kind = "retry"          // try the work of Item again, now
	KindGiveUp        Kind = "give-up"        // fail the task, and the case, of Item, which is an incident
	KindRetryIncident Kind = "retry-incident" // do the job of the incident Job again, now
	KindFork          Kind = "fork"           // start a fresh case from what Case was at the entry Seq of its journal
	KindSetLimit      Kind = "set-limit"      // set the number of Limit to N
	KindForgetLimit   Kind = "forget-limit"   // forget what was set of Limit
	KindLimits        Kind = "limits"         // list the limits
	KindLimitWaits    Kind = "limit-waits"    // list what jobs of the root case Case wait for, of limits
	KindQueues        Kind = "queues"         // list the queues
	KindPause         Kind = "pause-queue"    // have no job of Queue begin
	KindUnpause       Kind = "resume-queue"   // have the jobs of Queue begin again
	KindSetWorkers    Kind = "set-workers"    // have N jobs of Queue run at a time, in each engine
	KindForgetWorkers Kind = "forget-workers" // have as many jobs of Queue run at a time as the programs say
	KindRedrive       Kind = "redrive"        // start the original of the dead letter Case again
	KindSkip          Kind = "skip"           // complete Item with Payload as its output, without its work
)

// Command is one request to change something. Its functions ([Start], [Act], [Cancel] and so on) and the typed handles of
// package builder make it; its JSON form can be stored and sent. A command to complete an item reads
//
//	{"kind":"item","item":"0197…","action":"complete","payload":{"ok":true},"actor":"ann"}
//
// Which fields count depends on Kind; [Command.Check] refuses the others. The zero value is no command.
type Command struct {
	Kind Kind `json:"kind"`

	// Workflow names the workflow of a start. Of a command on a case or an item it restricts the command to a root case, or
	// an item, of that workflow; "" is any.
	Workflow string `json:"workflow,omitempty"`
	// Fingerprint chooses the definition that a fresh case runs on; "" is the one of that name that the engine was given last.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Task is where an item is added. Of an action it restricts the command to an item of that task; "" is any.
	Task   string          `json:"task,omitempty"`
	Case   workitem.CaseID `json:"case,omitzero"`
	Item   workitem.ID     `json:"item,omitzero"`
	Job    workitem.JobID  `json:"job,omitzero"`
	Action workitem.Action `json:"action,omitzero"`
	Event  string          `json:"event,omitempty"` // the name of an event, or the topic of a broadcast
	Token  string          `json:"token,omitempty"`

	Payload  json.RawMessage   `json:"payload,omitempty"`  // input, output or value; nil is none
	Reason   *workitem.Failure `json:"reason,omitempty"`   // why an item fails, an item or a case is canceled, or a repair is asked for; may be nil
	Route    []string          `json:"route,omitempty"`    // where the task's split goes if the action completes it; nil leaves it to the definition
	Seq      int64             `json:"seq,omitempty"`      // of a fork: the position of the journal up to which the past of Case is taken over
	FromStep string            `json:"fromStep,omitempty"` // the first step that a restart does again; "" does none again that had ended

	From  string `json:"from,omitempty"`  // of a move: the condition, or the task that is enabled or started, whose tokens are taken
	To    string `json:"to,omitempty"`    // of a move: the condition, or the task before which tokens are put
	Force bool   `json:"force,omitempty"` // move, also if the case could not end then

	After    time.Duration `json:"after,omitempty"`    // begin so long after the command, in nanoseconds; 0 is at once
	At       time.Time     `json:"at,omitzero"`        // begin at this time; one that is over, and the zero time, is at once
	Priority int           `json:"priority,omitempty"` // of what is created; higher goes first
	Queue    string        `json:"queue,omitempty"`    // of an added item, or of the jobs of a case that is started; "" is that of the task
	Limit    string        `json:"limit,omitempty"`    // the name of a limit
	LimitKey string        `json:"limitKey,omitempty"` // of a limit: the key that is set; "" is all those that have no number of their own
	N        int64         `json:"n,omitempty"`        // how much of a limit there is; 0 pauses it
	Options  Options       `json:"options,omitzero"`   // of a start: what is asked of that case beyond its input

	BusinessKey string            `json:"businessKey,omitempty"` // of a start: in place of the definition's; "" leaves it to that
	Labels      map[string]string `json:"labels,omitempty"`      // of a start: in place of the definition's of the same names

	IfTaken Taken  `json:"ifTaken,omitempty"` // of a start: what it does if its business key is taken
	Per     Period `json:"per,omitempty"`     // of a start: each of these has a case with the business key, see OncePer
	Zone    string `json:"zone,omitempty"`    // of Per; "" is UTC

	Quiet   time.Duration `json:"quiet,omitempty"`   // of a debounced start: how long none with its key may come before it begins, in nanoseconds, see Debounce
	Longest time.Duration `json:"longest,omitempty"` // of a debounced start: how long it is put off at most since the first, in nanoseconds; 0 is without a bound

	Throttle int           `json:"throttle,omitempty"` // of a start: how many cases with the business key may start within Window; 0 is any number, see Throttle
	Window   time.Duration `json:"window,omitempty"`   // of Throttle, in nanoseconds

	Key   string `json:"key,omitempty"`   // idempotency key; "" is none
	Actor string `json:"actor,omitempty"` // who asks; "" is unknown
	Trace string `json:"trace,omitempty"` // of which trace the command is a part, see [Trace]; "" is none

	// WaitForOwner lets a command that is left for another process wait for one that has the workflow. Otherwise a process that
	// does not have it refuses the command.
	WaitForOwner bool `json:"waitForOwner,omitempty"`

	times int   // how often After and At were given
	err   error // of the options
}

// Result is what a command that succeeded returns.
type Result struct {
	Case  workitem.CaseID `json:"case,omitzero"`  // that was started, or that the command was about
	Item  workitem.ID     `json:"item,omitzero"`  // that was added, or acted on
	Count int             `json:"count,omitzero"` // how many a broadcast reached
	Found bool            `json:"found,omitzero"` // the start did nothing: the case held its business key, see [Return]

	Limits []LimitInfo `json:"limits,omitempty"` // that were listed
	Queues []QueueInfo `json:"queues,omitempty"` // that were listed
	Waits  []LimitWait `json:"waits,omitempty"`  // that were listed
}

// Start starts a case of a workflow. The result has its id.
func Start(workflow string, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindStart, Workflow: workflow, Payload: input}, opts...)
}

// Act does an action on a work item. The payload is the output of a completion, and nil where the task asks for none; see [Fail]
// and [CancelItem] for actions with a reason.
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

// Cancel cancels a case with all that it owns. The reason may be nil.
func Cancel(id workitem.CaseID, reason *workitem.Failure, opts ...Option) Command {
	return With(Command{Kind: KindCancel, Case: id, Reason: reason}, opts...)
}

// Send sends an event to a case: to the step that has waited longest for one of that name (see step.Await), or, if none waits,
// to the first that will. Events of one name are taken in the order in which they were sent, each by one step. No value is
// null; a json.RawMessage is sent as it is.
func Send(id workitem.CaseID, event string, value any, opts ...Option) Command {
	return With(Command{Kind: KindSend, Case: id, Event: event}.carrying(value), opts...)
}

// SendToken sends the event that a token stands for (see step.Token) to the case that made it, and uses the token up.
func SendToken(token string, value any, opts ...Option) Command {
	return With(Command{Kind: KindToken, Token: token}.carrying(value), opts...)
}

// Broadcast gives a value to each step that waits for the topic at this moment (see step.Topic), and starts a case of each
// workflow that subscribes to it (see builder.On), all together, once each. The result counts them. Nothing is kept for those
// that wait later; [Send] is for that.
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

// Restart starts a root case that has ended again, as a fresh case with its input and options. The steps that its last job had
// done are taken over, all of them unless [FromStep] names the first that is not. The result has the id of the fresh case.
func Restart(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindRestart, Case: id}, opts...)
}

// Fork starts a fresh case from a past state of another one: that of a root case with its descendants, as they were behind the entry of their
// journal with the position. What was done until then is done in the fresh case, too: no callback is called and no step is done again. What was
// under way begins again: jobs that ran are due, and timers, sleeps and deadlines have the time left that they had then. Tokens (see step.Token)
// are made anew. The fresh case has the labels and the business key of the other one, and does not hold the key from others. Rows that the
// program has written in its own tables are not copied. The result has the fresh case. The error wraps [ErrNotFound] if the case was not there
// yet, and [ErrInactive] if it had ended.
func Fork(id workitem.CaseID, seq int64, opts ...Option) Command {
	return With(Command{Kind: KindFork, Case: id, Seq: seq}, opts...)
}

// Remove removes a root case that has ended, with its descendants and all that they had: items, jobs, steps, events, their part
// of the journal, and the idempotency keys of their commands.
func Remove(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindRemove, Case: id}, opts...)
}

// Reclaim takes a running job from its worker, for one that hangs: its context is canceled, the job is due again, and what the
// worker hands in later is refused. The error wraps engine.ErrLeaseLost if the job is not running.
func Reclaim(job workitem.JobID, opts ...Option) Command {
	return With(Command{Kind: KindReclaim, Job: job}, opts...)
}

// Suspend has nothing of a case begin, nor of those below it, until it is resumed: jobs and timers that become due wait, and no
// work item can be started. What was under way may end, and what is sent to the case is kept. The error wraps [ErrInactive] if the
// case has ended.
func Suspend(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindSuspend, Case: id}, opts...)
}

// Resume has a case that is suspended begin again what is due, and a case that has failed go on where it failed: each work item that failed, or that was canceled because of the
// failure, has a fresh one in its place, and what was done stays done. If the case failed a case above it, that one is resumed,
// with all that its failure ended. The result has the case that was resumed. The input is for the one work item that failed;
// nil leaves it the input that it had. The error wraps [ErrNotFailed] if the case is neither suspended nor failed, and [ErrDeadEnd]
// if it cannot go on.
func Resume(id workitem.CaseID, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindResume, Case: id, Payload: input}, opts...)
}

// Move corrects where a case stands: it takes one token from a condition, or those of a task that is enabled or started, which is
// canceled with its work, and puts one into a condition, or what a task needs to be enabled. A failed case is resumed for that, so a move from the
// task that failed to an earlier one has the case go on from there. The error wraps [ErrDeadEnd] if the case could not end afterwards; see
// [Force].
func Move(id workitem.CaseID, from, to string, opts ...Option) Command {
	return With(Command{Kind: KindMove, Case: id, From: from, To: to}, opts...)
}

// Force has a [Move] done after which the case could not end.
func Force() Option { return set(func(c *Command) { c.Force = true }) }

// Retry has the work of an item tried again, now: one that waits for its next attempt has it at once, one that failed, or whose
// job was given up, is replaced by a fresh one. If the item has failed its case, that is resumed. The input is that of the fresh
// item; nil leaves it the input that it had. The result has the item that is tried.
func Retry(item workitem.ID, input json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindRetry, Item: item, Payload: input}, opts...)
}

// RetryIncident does the job of an incident again, now: a timer, a scheduled function or a completion handler that gave up. The incident is
// one of store.Incidents, which has ended then. The error wraps [ErrNotFound] if there is no such incident, and [ErrBadCommand] if it is about a
// work item or a child case: those are tried again by [Retry] and [Resume].
func RetryIncident(incident workitem.JobID, opts ...Option) Command {
	return With(Command{Kind: KindRetryIncident, Job: incident}, opts...)
}

// Skip completes a work item with an output as if its work had given it. One that failed is replaced by a fresh one first, and
// its case resumed if it failed. The result has the item that completed.
func Skip(item workitem.ID, output json.RawMessage, opts ...Option) Command {
	return With(Command{Kind: KindSkip, Item: item, Payload: output}, opts...)
}

// GiveUp fails the task of a work item that is an incident (see workitem.Incident), and its case with it. The error wraps
// [ErrNotFound] if the item is no incident.
func GiveUp(item workitem.ID, opts ...Option) Command {
	return With(Command{Kind: KindGiveUp, Item: item}, opts...)
}

// SetLimit gives a limit of the engine's functions another number, the N of limit.Limit: more or fewer slots, another rate. What is
// held and was admitted counts on. 0 pauses the limit. The engine remembers it, also when it is opened again. The error
// wraps [ErrNotFound] if no workflow of the engine has the limit.
func SetLimit(name string, n int64, opts ...Option) Command {
	return With(Command{Kind: KindSetLimit, Limit: name, N: n}, opts...)
}

// SetLimitOf gives one key of a limit, such as a customer, a number of its own, as [SetLimit] does for all others: more, less, or 0, which
// pauses it. The number that the limit has at the time gives the key that of the others again. At most [MaxLimitKeys] keys of a limit have
// one. The error wraps [ErrNotFound] if no workflow of the engine has the limit.
func SetLimitOf(name, key string, n int64, opts ...Option) Command {
	c := With(Command{Kind: KindSetLimit, Limit: name, LimitKey: key, N: n}, opts...)
	if key == "" {
		c.err = errors.Join(c.err, fmt.Errorf("%w: the key of limit %s is empty; name one, or use SetLimit", ErrBadCommand, name))
	}
	return c
}

// MaxLimitKeys is how many keys of a limit can have a number of their own. Engines keep all of them in memory.
const MaxLimitKeys = 1000

// ForgetLimit forgets all that was set of a limit, for single keys too: it has the numbers of its definition again. A limit of which no
// workflow of the engine takes any more is forgotten with its name. The error wraps [ErrNotFound] if the store has no limit of that name.
func ForgetLimit(name string, opts ...Option) Command {
	return With(Command{Kind: KindForgetLimit, Limit: name}, opts...)
}

// Limits lists the limits of the engine's functions, with what they are used for. The result has them.
func Limits() Command { return Command{Kind: KindLimits} }

// LimitWaits lists what the jobs of a root case, and of the cases below it, wait for of limits, as far as they wait in the engine that does the
// command. It changes nothing.
func LimitWaits(root workitem.CaseID) Command { return Command{Kind: KindLimitWaits, Case: root} }

// Because says why the actor asks for a repair, for the history.
func Because(text string) Option {
	return set(func(c *Command) { c.Reason = &workitem.Failure{Message: text} })
}

// Due is when a case that is started now begins. The error wraps [ErrBadCommand].
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

// Hash identifies what a command asks for: commands that ask for the same have the same hash. The idempotency key, the actor,
// the trace, the version of the workflow, and when a case begins do not count: a program that asks again may say them otherwise.
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

// String describes a command in a few words, for the history: "start order", "item complete 0197…".
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
		return fmt.Sprintf("%s %s", c.Kind, c.Queue)
	}
	return string(c.Kind)
}
