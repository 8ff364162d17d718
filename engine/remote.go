package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// RemoteCommand is a command as data: what one process leaves for the process that owns the database. A command to
// complete an item reads
//
//	{"do":"item","item":"0197…","action":"complete","data":{"ok":true},"by":"ann"}
//
// The fields that count depend on Do. The zero value is no command, and is refused.
type RemoteCommand struct {
	Do       RemoteVerb      `json:"do"`
	Workflow string          `json:"workflow,omitempty"` // whose case is started
	After    time.Duration   `json:"after,omitempty"`    // a started case begins so much later, in nanoseconds
	Priority int             `json:"priority,omitempty"` // of a started case
	Case     workitem.CaseID `json:"case,omitzero"`      // that is canceled, or removed
	Item     workitem.ID     `json:"item,omitzero"`      // that is acted on
	Event    string          `json:"event,omitempty"`    // that is sent to Case, or the topic of a broadcast
	Token    string          `json:"token,omitempty"`    // that an event is sent by
	Action   string          `json:"action,omitempty"`   // the word for a workitem.Action, but for "initialize"
	Data     json.RawMessage `json:"data,omitempty"`     // input of a case, payload of an action, or reason as a workitem.Failure
	To       []string        `json:"to,omitempty"`       // where the task's split goes; nil leaves it to the definition
	Key      string          `json:"key,omitempty"`      // idempotency key; "" is none
	By       string          `json:"by,omitempty"`       // who asks; "" is unknown
	Stay     bool            `json:"stay,omitempty"`     // it waits for a program that has the workflow; false has it refused
}

// RemoteVerb says what a [RemoteCommand] asks for.
type RemoteVerb string

// The verbs. Their words are stored, so they are stable.
const (
	RemoteStart  RemoteVerb = "start"  // start a case of Workflow
	RemoteItem   RemoteVerb = "item"   // do Action on Item
	RemoteCancel RemoteVerb = "cancel" // cancel Case
	RemoteRemove RemoteVerb = "remove" // remove Case, which has ended

	RemoteSend      RemoteVerb = "send"      // send Event to Case, with Data as its value
	RemoteBroadcast RemoteVerb = "broadcast" // broadcast Event, with Data as its value
	RemoteToken     RemoteVerb = "token"     // send the event that Token stands for, with Data as its value
)

var verbs = []RemoteVerb{RemoteStart, RemoteItem, RemoteCancel, RemoteRemove, RemoteSend, RemoteBroadcast, RemoteToken}

// RemoteResult is what a command that succeeded has to tell. For a start it names the new case, for others what they
// were about.
type RemoteResult struct {
	Case workitem.CaseID `json:"case,omitzero"`
	Item workitem.ID     `json:"item,omitzero"`
	N    int             `json:"n,omitempty"` // how many a broadcast reached
}

// DecodeRemote reads the JSON form of a command. A field that this version does not know is an error: a newer program
// may mean something by it that must not be lost.
func DecodeRemote(data json.RawMessage) (RemoteCommand, error) {
	var c RemoteCommand
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: %w; the program that left it may be newer than this one", errRemote, err)
	}
	_, err := c.action()
	return c, err
}

// errRemote says that a command from another process makes no sense.
var errRemote = errors.New("not a command")

// action checks that the command names what its verb needs, and returns the action of an item's.
func (c *RemoteCommand) action() (workitem.Action, error) {
	switch {
	case c.Do == RemoteStart && c.Workflow == "":
		return 0, fmt.Errorf("%w: a start needs a workflow", errRemote)
	case c.Do == RemoteCancel && c.Case.IsZero():
		return 0, fmt.Errorf("%w: a cancel needs a case", errRemote)
	case c.Do == RemoteRemove && c.Case.IsZero():
		return 0, fmt.Errorf("%w: a removal needs a case", errRemote)
	case c.Do == RemoteItem && c.Item.IsZero():
		return 0, fmt.Errorf("%w: an action needs a work item", errRemote)
	case c.Do == RemoteItem:
		a, err := workitem.ParseAction(c.Action)
		if err == nil && a == workitem.Initialize {
			err = errors.New("work items are initialized by their task alone")
		}
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errRemote, err)
		}
		return a, nil
	case c.Do == RemoteSend && (c.Case.IsZero() || c.Event == ""):
		return 0, fmt.Errorf("%w: an event is sent to a case, and has a name", errRemote)
	case c.Do == RemoteBroadcast && c.Event == "":
		return 0, fmt.Errorf("%w: a broadcast needs a topic", errRemote)
	case c.Do == RemoteToken && c.Token == "":
		return 0, fmt.Errorf("%w: an event is sent by a token", errRemote)
	case !slices.Contains(verbs, c.Do):
		return 0, fmt.Errorf("%w: %q; the verbs are %v", errRemote, c.Do, verbs)
	}
	return 0, nil
}

// Execute does a command that is given as data, and returns when that is durable. Its errors are those of the methods
// that do the same.
func (e *Engine) Execute(ctx context.Context, c RemoteCommand) (RemoteResult, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (RemoteResult, error) { return tx.execute(c) })
}

func (tx *Tx) execute(c RemoteCommand) (RemoteResult, error) {
	action, err := c.action()
	if err != nil {
		return RemoteResult{}, err
	}
	call := builder.Call{Key: c.Key, By: c.By, Route: c.To}
	switch c.Do {
	case RemoteStart:
		d := tx.e.byName[c.Workflow]
		if d == nil {
			return RemoteResult{}, tx.e.unknown(c.Workflow)
		}
		call.After, call.Priority = c.After, c.Priority
		id, err := tx.StartCase(tx.ctx, d, c.Data, call)
		return RemoteResult{Case: id}, err
	case RemoteCancel:
		reason, err := builder.DecodeFailure(c.Data)
		if err != nil {
			return RemoteResult{}, fmt.Errorf("the reason of the cancellation: %w", err)
		}
		return RemoteResult{Case: c.Case}, tx.CancelCase(tx.ctx, c.Case, reason, call)
	}
	if c.Do == RemoteRemove {
		return RemoteResult{Case: c.Case}, tx.Remove(tx.ctx, c.Case, builder.By(c.By))
	}
	opts := []builder.CallOption{builder.Key(c.Key), builder.By(c.By)}
	switch c.Do {
	case RemoteSend:
		return RemoteResult{Case: c.Case}, tx.Send(tx.ctx, c.Case, c.Event, c.Data, opts...)
	case RemoteToken:
		return RemoteResult{}, tx.SendToken(tx.ctx, c.Token, c.Data, opts...)
	case RemoteBroadcast:
		n, err := tx.Broadcast(tx.ctx, c.Event, c.Data, opts...)
		return RemoteResult{N: n}, err
	}
	return RemoteResult{Item: c.Item}, tx.Act(tx.ctx, nil, "", c.Item, action, c.Data, call)
}

// codes are the words for kinds of error, for programs: what [Code] returns and a [RemoteError] carries. The first that
// fits counts.
var codes = []struct {
	word string
	kind error
}{
	{"commit-failed", errCommit},
	{"lost", store.ErrLost}, // before closed, which it is, too
	{"closed", ErrClosed},
	{"callback-failed", ErrCallback},
	{"key-reused", ErrKeyReused},
	{"too-large", ErrTooLarge},
	{"bad-command", errRemote},
	{"bad-route", ErrBadRoute},
	{"runaway", ErrRunaway},
	{"unknown-workflow", ErrUnknown},
	{"not-loaded", ErrUnknown},
	{"definition-changed", ErrDrift},
	{"not-active", ErrInactive},
	{"not-ended", ErrUnfinished},
	{"not-found", ErrNotFound},
	{"owned", store.ErrOwned},
	{"older", store.ErrOlder},
	{"read-only", store.ErrReadOnly},
	{"newer", store.ErrNewer},
	{"corrupt", store.ErrCorrupt},
	{"undone", store.ErrUndone},
	{"unavailable", store.ErrUnavailable},
}

// Code returns the word for the kind of an error of this package: "not-found", "not-active", "illegal-transition",
// "bad-route", "invalid-payload", and so on. An error of the process's own callbacks that is or wraps a
// [*workitem.Failure] has that one's code. It is "error" for any other kind, and "" for nil.
func Code(err error) string {
	if err == nil {
		return ""
	}
	if remote := (*RemoteError)(nil); errors.As(err, &remote) {
		return remote.Code
	}
	if t := (*workitem.TransitionError)(nil); errors.As(err, &t) {
		return "illegal-transition"
	}
	if n := (*NotLoadedError)(nil); errors.As(err, &n) {
		return "not-loaded"
	}
	for _, c := range codes {
		if errors.Is(err, c.kind) {
			return c.word
		}
	}
	if invalid := (*domain.InvalidError)(nil); errors.As(err, &invalid) {
		return "invalid-payload"
	}
	if f := (*workitem.Failure)(nil); errors.As(err, &f) && f != nil && f.Code != "" {
		return f.Code
	}
	return "error"
}

// RemoteError is the error of a command that another process did. errors.Is finds in it the kind that it had over
// there.
type RemoteError struct {
	Code string // see [Code]
	Text string // the whole message
}

// Error returns the message.
func (e *RemoteError) Error() string { return e.Text }

// Is reports whether the error was of the target's kind.
func (e *RemoteError) Is(target error) bool {
	for _, c := range codes {
		if c.word == e.Code {
			return c.kind == target
		}
	}
	return false
}

// RemoteAnswer reads the reply to a [RemoteCommand]. The error is a [*RemoteError] if the command failed.
func RemoteAnswer(a store.Answer) (RemoteResult, error) {
	var result RemoteResult
	if a.Code != "" {
		return result, &RemoteError{Code: a.Code, Text: a.Error}
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		return result, fmt.Errorf("the owner's answer makes no sense: %w", err)
	}
	return result, nil
}
