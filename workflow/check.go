package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/workitem"
)

// MaxEventName bounds the name of an event or a topic, in bytes, as the names of steps are.
const MaxEventName = 200

// field is a part of a command that some kinds have and others do not.
type field struct {
	name  string // that of its JSON, in quotes
	given func(c *Command) bool
}

var (
	workflowField = &field{`"workflow"`, func(c *Command) bool { return c.Workflow != "" }}
	printField    = &field{`"fingerprint"`, func(c *Command) bool { return c.Fingerprint != "" }}
	taskField     = &field{`"task"`, func(c *Command) bool { return c.Task != "" }}
	caseField     = &field{`"case"`, func(c *Command) bool { return !c.Case.IsZero() }}
	itemField     = &field{`"item"`, func(c *Command) bool { return !c.Item.IsZero() }}
	jobField      = &field{`"job"`, func(c *Command) bool { return !c.Job.IsZero() }}
	actionField   = &field{`"action"`, func(c *Command) bool { return c.Action != workitem.NoAction }}
	eventField    = &field{`"event"`, func(c *Command) bool { return c.Event != "" }}
	tokenField    = &field{`"token"`, func(c *Command) bool { return c.Token != "" }}
	payloadField  = &field{`"payload"`, func(c *Command) bool { return len(c.Payload) > 0 }}
	reasonField   = &field{`"reason"`, func(c *Command) bool { return c.Reason != nil }}
	routeField    = &field{`"route"`, func(c *Command) bool { return c.Route != nil }}
	stepField     = &field{`"fromStep"`, func(c *Command) bool { return c.FromStep != "" }}
	onceField     = &field{`"unlessRestarted"`, func(c *Command) bool { return c.UnlessRestarted }}
	seqField      = &field{`"seq"`, func(c *Command) bool { return c.Seq != 0 }}
	fromField     = &field{`"from"`, func(c *Command) bool { return c.From != "" }}
	toField       = &field{`"to"`, func(c *Command) bool { return c.To != "" }}
	forceField    = &field{`"force"`, func(c *Command) bool { return c.Force }}
	timeField     = &field{`"after" or "at"`, func(c *Command) bool { return c.times > 0 || c.After != 0 || !c.At.IsZero() }}
	priorityField = &field{`"priority"`, func(c *Command) bool { return c.Priority != 0 }}
	queueField    = &field{`"queue"`, func(c *Command) bool { return c.Queue != "" }}
	queueKeyField = &field{`"queueKey"`, func(c *Command) bool { return c.QueueKey != "" }}
	limitField    = &field{`"limit"`, func(c *Command) bool { return c.Limit != "" }}
	limitKeyField = &field{`"limitKey"`, func(c *Command) bool { return c.LimitKey != "" }}
	numberField   = &field{`"n"`, func(c *Command) bool { return c.N != 0 }}
	optionsField  = &field{`"options" (OnComplete or Retry)`, func(c *Command) bool { return !c.Options.isZero() }}

	policyField = &field{`"retry"`, func(c *Command) bool { return c.Retry != nil }}

	businessField = &field{`"businessKey"`, func(c *Command) bool { return c.BusinessKey != "" }}
	labelsField   = &field{`"labels"`, func(c *Command) bool { return len(c.Labels) > 0 }}

	takenField    = &field{`"ifTaken"`, func(c *Command) bool { return c.IfTaken != "" || c.Quiet != 0 || c.Longest != 0 }}
	perField      = &field{`"per"`, func(c *Command) bool { return c.Per != "" || c.Zone != "" }}
	throttleField = &field{`"throttle"`, (*Command).throttled}

	fields = []*field{workflowField, printField, taskField, caseField, itemField, jobField, actionField, eventField, tokenField,
		payloadField, reasonField, routeField, stepField, onceField, seqField, fromField, toField, forceField, timeField, priorityField, queueField, limitField, numberField,
		optionsField, businessField, labelsField, takenField, perField, throttleField, limitKeyField, queueKeyField, policyField}
)

// form says which fields a kind of command needs, and which others it may have.
type form struct{ needs, takes []*field }

var forms = map[Kind]form{
	KindStart: {[]*field{workflowField},
		[]*field{printField, payloadField, reasonField, timeField, priorityField, queueField, optionsField, businessField, labelsField, takenField, perField, throttleField}},
	KindAct: {[]*field{itemField, actionField},
		[]*field{workflowField, taskField, payloadField, reasonField, routeField}},
	KindAddItem: {[]*field{caseField, taskField},
		[]*field{payloadField, reasonField, timeField, priorityField, queueField}},
	KindCancel:    {[]*field{caseField}, []*field{workflowField, reasonField}},
	KindSend:      {[]*field{caseField, eventField}, []*field{payloadField, reasonField}},
	KindToken:     {[]*field{tokenField}, []*field{payloadField, reasonField}},
	KindBroadcast: {[]*field{eventField}, []*field{payloadField, reasonField}},
	KindRestart: {[]*field{caseField},
		[]*field{workflowField, printField, stepField, onceField, reasonField}},
	KindRemove:         {[]*field{caseField}, []*field{workflowField, reasonField}},
	KindFork:           {[]*field{caseField, seqField}, []*field{reasonField}},
	KindReclaim:        {[]*field{jobField}, []*field{reasonField}},
	KindMove:           {[]*field{caseField, fromField, toField}, []*field{workflowField, reasonField, forceField}},
	KindSuspend:        {[]*field{caseField}, []*field{workflowField, reasonField}},
	KindResume:         {[]*field{caseField}, []*field{workflowField, payloadField, reasonField, policyField}},
	KindRedrive:        {[]*field{caseField}, []*field{workflowField, reasonField}},
	KindRetry:          {[]*field{itemField}, []*field{workflowField, taskField, payloadField, reasonField, policyField}},
	KindGiveUp:         {[]*field{itemField}, []*field{workflowField, taskField, reasonField}},
	KindSkip:           {[]*field{itemField}, []*field{workflowField, taskField, payloadField, reasonField, routeField}},
	KindRetryIncident:  {[]*field{jobField}, []*field{reasonField}},
	KindGiveUpIncident: {[]*field{jobField}, []*field{reasonField}},
	KindSetLimit:       {[]*field{limitField}, []*field{limitKeyField, numberField, reasonField}},
	KindForgetLimit:    {[]*field{limitField}, []*field{reasonField}},
	KindLimits:         {nil, nil},
	KindLimitWaits:     {[]*field{caseField}, nil},
	KindQueues:         {nil, nil},
	KindDefinitions:    {nil, nil},
	KindDryRun:         {[]*field{payloadField}, nil},
	KindPause:          {nil, []*field{queueField, queueKeyField, reasonField}},
	KindUnpause:        {nil, []*field{queueField, queueKeyField, reasonField}},
	KindSetWorkers:     {nil, []*field{queueField, numberField, reasonField}},
	KindForgetWorkers:  {nil, []*field{queueField, reasonField}},

	KindSuspendWorkflow: {[]*field{workflowField}, []*field{reasonField}},
	KindResumeWorkflow:  {[]*field{workflowField}, []*field{reasonField}},
}

// Kinds lists the kinds of commands, sorted.
func Kinds() []Kind {
	all := make([]Kind, 0, len(forms))
	for k := range forms {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// similarKind asks whether a kind that resembles the given word was meant; "" if none does.
func similarKind(k Kind) string {
	var all []string
	for _, known := range Kinds() {
		all = append(all, string(known))
	}
	if best := spelling.Closest(string(k), all); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// Check returns the errors of a command that do not depend on the state of a case: an unknown kind, a missing field, a field
// that the kind does not have, or a name that no store can keep. The error wraps ErrBadCommand, or says which option is invalid.
func (c *Command) Check() error {
	f, ok := forms[c.Kind]
	if !ok {
		return fmt.Errorf("%w: %q is none of the kinds %v%s", ErrBadCommand, c.Kind, Kinds(), similarKind(c.Kind))
	}
	if c.err != nil {
		return c.err
	}
	for _, need := range f.needs {
		if !need.given(c) {
			return fmt.Errorf("%w: %s command needs %s", ErrBadCommand, printable.WithArticle(string(c.Kind)), need.name)
		}
	}
	for _, other := range fields {
		if other.given(c) && !slices.Contains(f.needs, other) && !slices.Contains(f.takes, other) {
			return fmt.Errorf("%w: %s command takes no %s; leave it out", ErrBadCommand, printable.WithArticle(string(c.Kind)), other.name)
		}
	}
	return errors.Join(c.checkBounds(), c.checkWorkers(), c.checkTexts(), c.checkAction(), c.checkAgain(), Identity{c.BusinessKey, c.Labels}.Check())
}

func (c *Command) checkBounds() error {
	for _, err := range []error{
		CheckEventName(c.Event), CheckName("queue", c.Queue), CheckName("name of the actor", c.Actor), CheckName("idempotency key", c.Key),
		CheckPriority(c.Priority), CheckName("key of the limit", c.LimitKey), CheckName("key of the queue", c.QueueKey),
	} {
		if err == nil {
			continue
		}
		if _, invalid := errors.AsType[*domain.InvalidError](err); invalid {
			return err
		}
		return fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	return nil
}

func (c *Command) checkTexts() error {
	if len(c.Trace) > MaxTrace {
		return fmt.Errorf("%w: the context of a trace has at most %d bytes, and this one has %d", ErrBadCommand, MaxTrace, len(c.Trace))
	}
	texts := []struct{ what, text string }{
		{"name of the workflow", c.Workflow}, {"name of the task", c.Task}, {"token", c.Token},
		{"limit", c.Limit}, {"zone", c.Zone}, {"name of the step", c.FromStep}, {"from", c.From}, {"to", c.To}, {"context of the trace", c.Trace},
	}
	if c.Reason != nil {
		if n := len(c.Reason.Code); n > workitem.MaxCode {
			return fmt.Errorf("%w: the code of the reason has %d bytes, and at most %d are kept", ErrBadCommand, n, workitem.MaxCode)
		}
		texts = append(texts, struct{ what, text string }{"code of the reason", c.Reason.Code},
			struct{ what, text string }{"message of the reason", c.Reason.Message})
	}
	for _, t := range texts {
		if err := CheckText(t.what, t.text); err != nil {
			return err
		}
	}
	return nil
}

func (c *Command) checkAction() error {
	switch {
	case c.Kind != KindAct:
		return nil
	case c.Action == workitem.Initialize:
		return fmt.Errorf("%w: work items are initialized by their task alone", ErrBadCommand)
	case c.Reason != nil && len(c.Payload) > 0 && (c.Action == workitem.Fail || c.Action == workitem.Cancel):
		return fmt.Errorf("%w: the reason of %s is given twice: give \"reason\" or \"payload\"", ErrBadCommand, c.Action)
	}
	return nil
}

// CheckEventName returns an error if a text cannot be the name of an event or a topic: if it is longer than MaxEventName, or
// CheckText rejects it.
func CheckEventName(name string) error {
	if len(name) > MaxEventName {
		return fmt.Errorf("the name of an event has at most %d bytes, and this one has %d", MaxEventName, len(name))
	}
	return CheckText("name of the event", name)
}

// MaxName is the longest name of an actor or a queue, and the longest idempotency key, in bytes. Databases index
// them.
const MaxName = 1000

// CheckName returns an error if a text cannot be the name of an actor, a queue or the like: if it is longer than MaxName, or CheckText
// rejects it.
func CheckName(what, text string) error {
	if len(text) > MaxName {
		return fmt.Errorf("the %s has %d bytes, and at most %d are kept", what, len(text), MaxName)
	}
	return CheckText(what, text)
}

// CheckPriority returns an error if a priority does not fit into a signed 32-bit integer.
func CheckPriority(n int) error {
	if n > math.MaxInt32 || n < -math.MaxInt32 {
		return fmt.Errorf("the priority is %d, and must be from %d to %d", n, -math.MaxInt32, math.MaxInt32)
	}
	return nil
}

// CheckText returns an error if a text is not valid UTF-8, which a store would change, or contains a NUL, which not
// every database can store.
func CheckText(what, text string) error {
	switch {
	case !utf8.ValidString(text):
		return fmt.Errorf("the %s: %w", what, &domain.InvalidError{Type: "text", Err: errNotText})
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("the %s: %w", what, &domain.InvalidError{Type: "text", Err: errNUL})
	}
	return nil
}

var (
	errNotText = errors.New("not UTF-8")
	errNUL     = errors.New("it contains a NUL")
)

// unreadable says why JSON is no command, without the words for a programmer of package json.
func unreadable(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Sprintf("the field %q cannot be a %s", wrong.Field, wrong.Value)
	}
	return strings.TrimPrefix(strings.TrimSpace(err.Error()), "json: ")
}

// Decode decodes a command from JSON. An unknown field is an error, since a newer program may have set it to something
// that must not be ignored. JSON that names a field twice, see [domain.CheckForm], is a *domain.InvalidError.
func Decode(data []byte) (Command, error) {
	var c Command
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: %s", ErrBadCommand, unreadable(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("%w: unexpected data after the command, at byte %d; send one command at a time", ErrBadCommand, d.InputOffset())
	}
	if err := domain.CheckForm[Command](data); err != nil {
		return c, err
	}
	return c, c.Check()
}
