package state

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// The stored form of changes and of the parts of a case. Every store uses it, and it is readable without this program:
// one JSON object per change, with names of tasks, conditions and states, and times as microseconds since 1970 (UTC).
// The start of a task reads
//
//	{"e":"task","task":"draft","to":"started","gen":1,"from":["start"]}
//
// The keys are defined here for writing, and in codec_scan.go for reading. Zero values are left out, and so is "case"
// if it is the root case, which the entry has already: most changes are of the root case, and a third of their bytes
// would be its id.
//
// Encoding is written by hand, since every command encodes its changes on the writer's goroutine, and reflection would
// take four times as long. So is decoding, since a past state is rebuilt from the whole history; JSON in any other form
// is left to encoding/json.

// The values of "e", by which a change is named.
const (
	wordCaseOpened    = "case-opened"
	wordCaseBegun     = "case-begun"
	wordCaseEnded     = "case-ended"
	wordCaseResumed   = "case-resumed"
	wordCaseSuspended = "case-suspended"
	wordCaseContinued = "case-continued"
	wordCaseRemoved   = "case-removed"
	wordTask          = "task"
	wordTaskResumed   = "task-resumed"
	wordProduced      = "produced"
	wordMoved         = "tokens-moved"
	wordRemoved       = "removed"
	wordItemOpened    = "item-opened"
	wordItem          = "item"
	wordRetry         = "retry"
	wordJobOpened     = "job-opened"
	wordJob           = "job"
	wordStepOpened    = "step-opened"
	wordStep          = "step"
	wordSent          = "event-sent"
	wordTaken         = "event-taken"
	wordNote          = "note"
)

// ErrCorrupt says that stored data cannot be decoded.
var ErrCorrupt = errors.New("the database is damaged, or is not a Tasq database")

// Micros returns a time as it is stored: microseconds since 1970. Times of the years -290,000 to 290,000, also the zero
// time, are restored exactly if they were truncated to microseconds.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros returns the time that [Micros] has encoded, in UTC.
func FromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// AppendChanges appends the changes of a command as a JSON array. The tree provides the names of tasks and conditions,
// so it must have the case of every change. Payloads (inputs, outputs, details) must be JSON, and are copied unchanged.
// The names are those at the time of the command: a definition cannot change under its fingerprint, so they are found
// again when the changes are decoded.
func AppendChanges(dst []byte, changes []Change, t *Tree) []byte {
	dst = append(dst, '[')
	for i, e := range changes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChange(dst, e, t)
	}
	return append(dst, ']')
}

// appendChange appends the object of one change. The keys of each kind have a fixed order, so that equal changes have
// equal texts.
func appendChange(dst []byte, e Change, t *Tree) []byte {
	switch e := e.(type) {
	case *CaseOpened:
		dst = appendCaseOpened(head(dst, t, wordCaseOpened, e.Case.ID), t, e.Case)
	case *CaseBegun:
		dst = head(dst, t, wordCaseBegun, e.Case)
	case *CaseEnded:
		dst = appendCaseEnded(head(dst, t, wordCaseEnded, e.Case), t, e)
	case *CaseResumed:
		dst = head(dst, t, wordCaseResumed, e.Case)
		dst = at(dst, "at", e.At)
	case *CaseSuspended:
		dst = at(head(dst, t, wordCaseSuspended, e.Case), "at", e.At)
		dst = str(dst, "by", e.By)
		dst = str(dst, "text", e.Reason)
	case *CaseContinued:
		dst = head(dst, t, wordCaseContinued, e.Case)
		dst = at(dst, "at", e.At)
	case *CaseRemoved:
		dst = head(dst, t, wordCaseRemoved, e.Case)
	case *TaskMoved:
		dst = appendTaskMoved(head(dst, t, wordTask, e.Case), t, e)
	case *TaskResumed:
		dst = head(dst, t, wordTaskResumed, e.Case)
		dst = task(dst, t, e.Case, e.Task)
		dst = num(dst, "gen", int64(e.Generation))
	case *Produced:
		dst = head(dst, t, wordProduced, e.Case)
		dst = task(dst, t, e.Case, e.Task)
		dst = conditions(dst, "into", t, e.Case, e.Into)
	case *TokensMoved:
		dst = head(dst, t, wordMoved, e.Case)
		dst = conditions(dst, "from", t, e.Case, e.From)
		dst = conditions(dst, "into", t, e.Case, e.Into)
	case *Removed:
		dst = head(dst, t, wordRemoved, e.Case)
		dst = task(dst, t, e.Case, e.Task)
		dst = condition(dst, "condition", t, e.Case, e.From)
		dst = num(dst, "n", int64(e.Tokens))
	case *ItemOpened:
		dst = appendItemOpened(head(dst, t, wordItemOpened, e.Item.Case), e.Item)
	case *ItemMoved:
		dst = appendItemMoved(head(dst, t, wordItem, e.Case), e)
	case *RetryChanged:
		dst = key(head(dst, t, wordRetry, e.Case), "item", e.Item)
		dst = raw(dst, "retry", e.Retry)
	case *JobOpened:
		dst = appendJobOpened(head(dst, t, wordJobOpened, e.Job.Case), t, e.Job)
	case *JobMoved:
		dst = appendJobMoved(head(dst, t, wordJob, e.Case), e)
	case *StepOpened:
		dst = appendStepOpened(head(dst, t, wordStepOpened, e.Step.Case), e.Step)
	case *StepMoved:
		dst = appendStepMoved(head(dst, t, wordStep, e.Case), e)
	case *MessageSent:
		dst = appendMessage(head(dst, t, wordSent, e.Message.Case), e.Message)
	case *MessageTaken:
		dst = head(dst, t, wordTaken, e.Case)
		dst = key(dst, "event", e.Message)
		dst = key(dst, "step", e.Step)
		dst = at(dst, "at", e.At)
	case *Noted:
		dst = appendNoted(head(dst, t, wordNote, e.Case), t, e)
	}
	return append(dst, '}')
}

// appendCaseOpened appends what is known when a case is created. Its other fields follow from its changes.
func appendCaseOpened(dst []byte, t *Tree, c *Case) []byte {
	dst = ofTree(dst, t, "root", c.Root)
	dst = key(dst, "parent", c.Parent)
	dst = str(dst, "task", c.ParentTask)
	dst = num(dst, "gen", int64(c.Generation))
	dst = num(dst, "n", int64(c.Number))
	dst = key(dst, "caller", c.Caller)
	dst = str(dst, "workflow", c.Workflow)
	dst = str(dst, "version", c.Version)
	dst = str(dst, "fingerprint", c.Fingerprint)
	dst = raw(dst, "input", c.Input)
	dst = raw(dst, "options", c.Options)
	dst = num(dst, "priority", int64(c.Priority))
	dst = key(dst, "restarts", c.Predecessor)
	dst = flag(str(dst, "key", c.Key), "unique", c.Unique)
	if len(c.Labels) > 0 {
		dst = AppendLabels(append(dst, `,"labels":`...), c.Labels)
	}
	return at(dst, "at", c.Created)
}

// appendCaseEnded appends the end of a case. The leftover conditions are kept for readers of the history; no state
// depends on them, since the marking of the case has them already.
func appendCaseEnded(dst []byte, t *Tree, e *CaseEnded) []byte {
	dst = str(dst, "to", e.State.String())
	dst = raw(dst, "output", e.Output)
	dst = failure(dst, "failure", e.Failure)
	dst = conditions(dst, "left", t, e.Case, e.Leftover)
	dst = at(dst, "at", e.At)
	dst = at(dst, "keep", e.KeepUntil)
	return flag(dst, "frees", e.FreesKey)
}

// appendTaskMoved appends a transition of a task. The consumed tokens are part of it, although the join of the task
// implies most of them: which tokens an or-join took depends on the whole marking, and rebuilding a past state must not
// decide it again.
func appendTaskMoved(dst []byte, t *Tree, e *TaskMoved) []byte {
	dst = task(dst, t, e.Case, e.Task)
	dst = str(dst, "to", e.To.String())
	dst = num(dst, "gen", int64(e.Generation))
	dst = conditions(dst, "from", t, e.Case, e.Consumed)
	return flag(dst, "lost", e.Lost)
}

// appendNoted appends a note. One about the case itself has no task.
func appendNoted(dst []byte, t *Tree, e *Noted) []byte {
	if e.Task >= 0 {
		dst = task(dst, t, e.Case, e.Task)
	}
	dst = str(dst, "code", e.Code)
	return str(dst, "text", e.Text)
}

// AppendFailure appends the JSON of a failure, "null" for nil: the form of [workitem.Failure]'s own tags.
func AppendFailure(dst []byte, f *workitem.Failure) []byte {
	if f == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	if f.Retryable {
		dst = append(dst, `"retryable":true`...)
	} else {
		dst = append(dst, `"retryable":false`...)
	}
	dst = str(dst, "code", f.Code)
	dst = str(dst, "message", f.Message)
	dst = raw(dst, "details", f.Details)
	dst = num(dst, "after", int64(f.After))
	if f.Filtered {
		dst = append(dst, `,"filtered":true`...)
	}
	return append(dst, '}')
}

// DecodeFailure decodes what [AppendFailure] has encoded. The error wraps [ErrCorrupt].
func DecodeFailure(data []byte) (*workitem.Failure, error) {
	var f *workitem.Failure
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, corrupt("failure", data, err)
	}
	return f, nil
}

// The functions below append parts of an object. All except head begin with a comma, and append nothing for a zero value.

func head(dst []byte, t *Tree, word string, id workitem.CaseID) []byte {
	dst = append(dst, `{"e":"`...)
	dst = append(dst, word...)
	dst = append(dst, '"')
	return ofTree(dst, t, "case", id)
}

// ofTree appends the id of a case, unless it is the root case of the tree.
func ofTree(dst []byte, t *Tree, k string, id workitem.CaseID) []byte {
	if id == t.Root {
		return dst
	}
	return key(dst, k, id)
}

func name(dst []byte, k string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, k...)
	return append(dst, '"', ':')
}

func key[T any](dst []byte, k string, id workitem.Key[T]) []byte {
	if id.IsZero() {
		return dst
	}
	dst = append(name(dst, k), '"')
	dst, _ = id.AppendText(dst) // it never fails
	return append(dst, '"')
}

func str(dst []byte, k, s string) []byte {
	if s == "" {
		return dst
	}
	return appendString(name(dst, k), s)
}

func num(dst []byte, k string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(name(dst, k), n, 10)
}

func flag(dst []byte, k string, set bool) []byte {
	if !set {
		return dst
	}
	return append(name(dst, k), "true"...)
}

func at(dst []byte, k string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return strconv.AppendInt(name(dst, k), Micros(t), 10)
}

func raw(dst []byte, k string, data json.RawMessage) []byte {
	if len(data) == 0 {
		return dst
	}
	return append(name(dst, k), data...)
}

func failure(dst []byte, k string, f *workitem.Failure) []byte {
	if f == nil {
		return dst
	}
	return AppendFailure(name(dst, k), f)
}

func task(dst []byte, t *Tree, id workitem.CaseID, task net.TaskID) []byte {
	return str(dst, "task", t.Case(id).Net.TaskName(task))
}

func condition(dst []byte, k string, t *Tree, id workitem.CaseID, c net.ConditionID) []byte {
	return str(dst, k, t.Case(id).Net.ConditionName(c))
}

func conditions(dst []byte, k string, t *Tree, id workitem.CaseID, list []net.ConditionID) []byte {
	if len(list) == 0 {
		return dst
	}
	n := t.Case(id).Net
	dst = append(name(dst, k), '[')
	for i, c := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, n.ConditionName(c))
	}
	return append(dst, ']')
}

// appendString appends a quoted string. Almost all are plain ASCII; others are left to encoding/json.
func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string always has a JSON form
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
