package state

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// Change is one change of a case. The set of implementations is closed. The journal stores changes, so their JSON form
// is stable.
type Change interface {
	of() workitem.CaseID // the case that it happened to
}

// CaseOf returns the case of a change.
func CaseOf(c Change) workitem.CaseID { return c.of() }

// CaseOpened says that a case was created, with one token in its start condition.
type CaseOpened struct{ Case *Case }

// CaseBegun says that the first work of a case has started.
type CaseBegun struct{ Case workitem.CaseID }

// CaseEnded says that a case completed, failed or was canceled. Leftover lists the conditions other than the end that
// were still marked at its completion, which was improper then.
type CaseEnded struct {
	Case     workitem.CaseID
	State    CaseState
	Output   json.RawMessage
	Failure  *workitem.Failure
	Leftover []net.ConditionID
	At       time.Time

	KeepUntil time.Time // for a root case with a retention time; zero if it is kept
	FreesKey  bool      // its business key is no longer unique, although it has completed
}

// CaseResumed says that a failed case continues. The changes after it start the tasks again that the failure had ended.
type CaseResumed struct {
	Case workitem.CaseID
	At   time.Time
}

// CaseSuspended says that nothing starts in a case, and below it, until a [CaseContinued]. A second one replaces the reason.
type CaseSuspended struct {
	Case workitem.CaseID
	Suspension
}

// CaseContinued says that a case is no longer suspended.
type CaseContinued struct {
	Case workitem.CaseID
	At   time.Time
}

// CaseRemoved says that a root case that has ended is removed from the tables and the journal, with its descendants and
// everything in them, this entry included. It is the last change of its tree.
type CaseRemoved struct{ Case workitem.CaseID }

// TaskMoved says that a task changed its state. For an enabling it has the new generation, for a start the conditions
// from which a token was taken.
type TaskMoved struct {
	Case       workitem.CaseID
	Task       net.TaskID
	To         TaskState
	Generation int
	Consumed   []net.ConditionID
	Lost       bool // a started task is canceled because its case fails
}

// TaskResumed says that an activation continues that had failed, or that had ended because its case failed. Its tokens
// are already consumed.
type TaskResumed struct {
	Case       workitem.CaseID
	Task       net.TaskID
	Generation int
}

// Produced says that a completed task put a token into each of the conditions.
type Produced struct {
	Case workitem.CaseID
	Task net.TaskID
	Into []net.ConditionID
}

// TokensMoved says that a person corrected the marking of a case: a token was taken from each condition of the first
// list, and put into each of the second.
type TokensMoved struct {
	Case workitem.CaseID
	From []net.ConditionID
	Into []net.ConditionID
}

// Removed says that the cancellation region of a task removed the tokens of a condition.
type Removed struct {
	Case   workitem.CaseID
	Task   net.TaskID
	From   net.ConditionID
	Tokens int32
}

// ItemOpened says that a work item was created.
type ItemOpened struct{ Item *workitem.Item }

// ItemMoved says that an action changed a work item.
type ItemMoved struct {
	Case    workitem.CaseID
	Item    workitem.ID
	Action  workitem.Action
	To      workitem.State
	Output  json.RawMessage
	Failure *workitem.Failure
	By      string
	At      time.Time
}

// RetryChanged says that a repair gave a live work item another retry policy.
type RetryChanged struct {
	Case  workitem.CaseID
	Item  workitem.ID
	Retry json.RawMessage // see workitem.Item.Retry
}

// JobOpened says that a job was created.
type JobOpened struct{ Job *Job }

// JobMoved says that a job was claimed, released, postponed, or ended.
type JobMoved struct {
	Case    workitem.CaseID
	Job     workitem.JobID
	To      JobState
	Due     time.Time
	Attempt int
	Crashes int
	Fence   int64
	Owner   string
	Lease   time.Time
	Failure *workitem.Failure
	At      time.Time
}

// StepOpened says that a step of a job was recorded: as done or failed at once, or as waiting.
type StepOpened struct{ Step *workitem.Step }

// StepMoved says that a waiting step ended, or failed and waits for its next attempt.
type StepMoved struct {
	Case    workitem.CaseID
	Job     workitem.JobID
	Step    workitem.StepID
	To      workitem.StepState
	Attempt int
	Due     time.Time
	Result  json.RawMessage
	Failure *workitem.Failure
	At      time.Time
}

// MessageSent says that an event was sent to a case from outside.
type MessageSent struct{ Message *Message }

// MessageTaken says that a step took an event that was sent.
type MessageTaken struct {
	Case    workitem.CaseID
	Message workitem.MessageID
	Step    workitem.StepID
	At      time.Time
}

// Noted records something for operators that changes no state: an undecided or-join, a job that was given up.
type Noted struct {
	Case workitem.CaseID
	Task net.TaskID // -1 if it is about the case
	Code string
	Text string
}

func (e *CaseOpened) of() workitem.CaseID    { return e.Case.ID }
func (e *CaseBegun) of() workitem.CaseID     { return e.Case }
func (e *CaseEnded) of() workitem.CaseID     { return e.Case }
func (e *CaseRemoved) of() workitem.CaseID   { return e.Case }
func (e *CaseResumed) of() workitem.CaseID   { return e.Case }
func (e *CaseSuspended) of() workitem.CaseID { return e.Case }
func (e *CaseContinued) of() workitem.CaseID { return e.Case }
func (e *TaskResumed) of() workitem.CaseID   { return e.Case }
func (e *TaskMoved) of() workitem.CaseID     { return e.Case }
func (e *Produced) of() workitem.CaseID      { return e.Case }
func (e *TokensMoved) of() workitem.CaseID   { return e.Case }
func (e *Removed) of() workitem.CaseID       { return e.Case }
func (e *ItemOpened) of() workitem.CaseID    { return e.Item.Case }
func (e *ItemMoved) of() workitem.CaseID     { return e.Case }
func (e *RetryChanged) of() workitem.CaseID  { return e.Case }
func (e *JobOpened) of() workitem.CaseID     { return e.Job.Case }
func (e *JobMoved) of() workitem.CaseID      { return e.Case }
func (e *StepOpened) of() workitem.CaseID    { return e.Step.Case }
func (e *StepMoved) of() workitem.CaseID     { return e.Case }
func (e *MessageSent) of() workitem.CaseID   { return e.Message.Case }
func (e *MessageTaken) of() workitem.CaseID  { return e.Case }
func (e *Noted) of() workitem.CaseID         { return e.Case }

// The codes of [Noted].
const (
	NoteUndecided  = "or-join-undecided" // an or-join waits because its search ran out of its budget
	NoteIncident   = "incident"          // a job was given up, a person should look
	NoteReason     = "reason"            // why an actor sent a command
	NoteDeadLetter = "dead-letter"       // a failed case or item was given up, and the id of its dead letter
	NoteFork       = "fork"              // the case and position that this case was forked from
)
