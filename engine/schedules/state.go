package schedules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// State is the state of a schedule between two ticks: the input of its current case.
type State struct {
	workflow.Scheduled
	Declared   string            `json:"declared,omitempty"` // hash of the declaration; "" for a schedule that was added at run time
	Generation int               `json:"generation"`         // number of its cases so far, with this one
	From       time.Time         `json:"from,omitzero"`      // its times count after this time; zero if an older version added it
	Last       time.Time         `json:"last"`               // ticks up to this time were processed
	Running    []workitem.CaseID `json:"running,omitempty"`  // runs that count for overlaps; with allow, some of them may have ended
	Waiting    []time.Time       `json:"waiting,omitempty"`  // ticks that begin one after the other, as runs end
	Latest     *Latest           `json:"latest,omitempty"`   // what began last; nil if nothing did
	Skipped    int               `json:"skipped,omitempty"`  // ticks that were skipped because a run was active
	Missed     int               `json:"missed,omitempty"`   // how often ticks were skipped because no engine ran at their time
	Changes    []Change          `json:"changes,omitempty"`  // the last MaxChanges commands
}

// Latest is a tick that has begun, or could not begin.
type Latest struct {
	Tick  time.Time         `json:"tick"`
	At    time.Time         `json:"at"`
	Case  workitem.CaseID   `json:"case,omitzero"` // the started case
	Error *workitem.Failure `json:"error,omitempty"`
}

// Change is a command on a schedule.
type Change struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // "add", "pause", "resume", "update", "run" or "backfill"
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`

	Key  string          `json:"key,omitempty"`  // idempotency key; "" if there is none
	Case workitem.CaseID `json:"case,omitzero"`  // the case of the schedule that the command was for; zero for its first
	Hash string          `json:"hash,omitempty"` // of an add with a key: identifies the whole command
}

// Limits of what the state of a schedule records.
const (
	maxOverlapping = 10 // active runs, the latest, of a schedule that lets them overlap; each tick stores at most twice as many

	MaxChanges  = 20
	MaxBackfill = schedule.DefaultCatchUpMost // ticks of one backfill, and ticks that wait
)

// request is why a case of a schedule was ended. A case that ends for another reason ends the schedule.
type request struct {
	Do       string              `json:"do"`
	By       string              `json:"by,omitempty"`
	Key      string              `json:"key,omitempty"`
	Update   *workflow.Scheduled `json:"update,omitempty"`
	Declared string              `json:"declared,omitempty"` // of an update
	From     time.Time           `json:"from,omitzero"`      // of a backfill
	To       time.Time           `json:"to,omitzero"`
}

// The requests.
const (
	doTick     = "tick" // a tick is due
	doLook     = "look" // a run has ended
	doPause    = "pause"
	doResume   = "resume"
	doUpdate   = "update"
	doRun      = "run"
	doBackfill = "backfill"
	doRemove   = "remove" // the schedule ends
)

// codePrefix is the prefix of the code with which the case of a schedule is canceled.
const codePrefix = "schedule-"

// reason returns the request as the reason of a cancellation.
func (q request) reason(text string) (*workitem.Failure, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	return &workitem.Failure{Code: codePrefix + q.Do, Message: text, Details: raw}, nil
}

// requestOf returns the request that ended a case; false if the schedule does not continue after it.
func requestOf(state workflow.RunState, f *workitem.Failure) (request, string, bool) {
	var q request
	switch {
	case state == workflow.RunCompleted:
		return request{Do: doTick}, "", true
	case state != workflow.RunCanceled || f == nil || json.Unmarshal(f.Details, &q) != nil || f.Code != codePrefix+q.Do, q.Do == doRemove:
		return q, "", false
	}
	return q, f.Message, true
}

// The delays of a schedule that cannot continue immediately.
const (
	lookAgain = 10 * time.Minute // for the end of a run, if nothing reports it earlier
	tryAgain  = 10 * time.Second // for an engine with the workflow
)

// start returns the command that begins a tick. Its key makes each tick begin once.
func (s *State) start(tick time.Time, key string) workflow.Command {
	c := s.Scheduled.Start
	c.Key, c.Actor = "schedule "+s.Schedule.Name+" "+key, "schedule "+s.Schedule.Name
	c.Options.Tick = &workflow.Tick{Schedule: s.Schedule.Name, At: tick.UTC()}
	return c
}

// successor returns the command that starts the next case of the schedule. Its key is that of the generation, so a
// schedule has one current case.
func (s *State) successor(at time.Time) (workflow.Command, error) {
	input, err := json.Marshal(s)
	if err != nil {
		return workflow.Command{}, fmt.Errorf("schedule %q: %w", s.Schedule.Name, err)
	}
	key := fmt.Sprintf("%s %s %d", Name, s.Schedule.Name, s.Generation)
	c := workflow.Start(Name, input, workflow.At(at), workflow.Key(key), workflow.By("schedule "+s.Schedule.Name), ticks())
	// Several programs may have the workflow of schedules, and only some of them the workflow that is started.
	c.Options.Needs = s.Scheduled.Start.Workflow
	return c, nil
}

// note records a command with the case that it was for.
func (s *State) note(now time.Time, on workitem.CaseID, q request, reason string) {
	if q.Do == doTick || q.Do == doLook {
		return
	}
	s.Changes = append(s.Changes, Change{At: now, What: q.Do, By: q.By, Reason: reason, Key: q.Key, Case: on})
	s.Changes = s.Changes[max(0, len(s.Changes)-MaxChanges):]
}

// keyed returns the case that a command with an idempotency key was for, according to the recorded changes; zero if
// there is none.
func (s *State) keyed(key string) (on workitem.CaseID) {
	for _, c := range s.Changes {
		if key != "" && c.Key == key {
			on = c.Case
		}
	}
	return on
}

// added returns the recorded add with an idempotency key; nil if there is none.
func (s *State) added(key string) *Change {
	for i := range s.Changes {
		if c := &s.Changes[i]; key != "" && c.Key == key && c.Hash != "" {
			return c
		}
	}
	return nil
}
