package schedules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// State is what is known of a schedule between two of its ticks: the input of its present case.
type State struct {
	workflow.Scheduled
	Declared   string            `json:"declared,omitempty"` // hash of what a program declares; "" for one that was added at run time
	Generation int               `json:"generation"`         // how many cases it has had, this one included
	Last       time.Time         `json:"last"`               // the ticks up to here were looked at
	Running    []workitem.CaseID `json:"running,omitempty"`  // the runs that overlaps are about
	Waiting    []time.Time       `json:"waiting,omitempty"`  // ticks that begin one after the other, as runs end
	Latest     *Latest           `json:"latest,omitempty"`   // what began last; nil if nothing did
	Skipped    int               `json:"skipped,omitempty"`  // ticks that were left out since a run went on
	Missed     int               `json:"missed,omitempty"`   // how often ticks were left out since nothing ran at their time
	Changes    []Change          `json:"changes,omitempty"`  // what people did, the last MaxChanges
}

// Latest is a tick that began, or could not.
type Latest struct {
	Tick  time.Time         `json:"tick"`
	At    time.Time         `json:"at"`
	Case  workitem.CaseID   `json:"case,omitzero"` // that was started
	Error *workitem.Failure `json:"error,omitempty"`
}

// Change is a command on a schedule.
type Change struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // "add", "pause", "resume", "update", "run" or "backfill"
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`

	Key  string          `json:"key,omitempty"`  // idempotency key; "" if none was given
	Case workitem.CaseID `json:"case,omitzero"`  // the case of the schedule that the command was for; zero for its first
	Hash string          `json:"hash,omitempty"` // of an add that has a key: of all that it asked for
}

// The bounds of what a schedule remembers.
const (
	MaxChanges  = 20
	MaxBackfill = schedule.DefaultCatchUpMost // ticks of one backfill, and ticks that wait
)

// request is what a case of a schedule is ended for. One that ends for anything else ends the schedule.
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
	doTick     = "tick" // the time of a tick has come
	doLook     = "look" // a run has ended
	doPause    = "pause"
	doResume   = "resume"
	doUpdate   = "update"
	doRun      = "run"
	doBackfill = "backfill"
	doRemove   = "remove" // the schedule does not go on
)

// codePrefix begins the code of the reason for which the case of a schedule is canceled.
const codePrefix = "schedule-"

// reason is the request as the reason of a cancellation.
func (q request) reason(text string) (*workitem.Failure, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	return &workitem.Failure{Code: codePrefix + q.Do, Message: text, Details: raw}, nil
}

// requestOf reads what a case has ended for; false if it is nothing that the schedule goes on after.
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

// never is when a schedule that waits for nothing looks again.
var never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// The waits of a schedule that cannot go on at once.
const (
	lookAgain = 10 * time.Minute // for the end of a run, if nothing else reports it
	tryAgain  = 10 * time.Second // for an engine that has the workflow
)

// start is the command that begins a tick: once for each tick.
func (s *State) start(tick time.Time, key string) workflow.Command {
	c := s.Scheduled.Start
	c.Key, c.Actor = "schedule "+s.Schedule.Name+" "+key, "schedule "+s.Schedule.Name
	c.Options.Tick = &workflow.Tick{Schedule: s.Schedule.Name, At: tick.UTC()}
	return c
}

// successor is the command that starts the next case of the schedule. Its key is that of the generation: so a schedule has one
// present case.
func (s *State) successor(at time.Time) (workflow.Command, error) {
	input, err := json.Marshal(s)
	if err != nil {
		return workflow.Command{}, fmt.Errorf("schedule %q: %w", s.Schedule.Name, err)
	}
	key := fmt.Sprintf("%s %s %d", Name, s.Schedule.Name, s.Generation)
	return workflow.Start(Name, input, workflow.At(at), workflow.Key(key), workflow.By("schedule "+s.Schedule.Name), ticks()), nil
}

// note remembers a command that was for a case.
func (s *State) note(now time.Time, on workitem.CaseID, q request, reason string) {
	if q.Do == doTick || q.Do == doLook {
		return
	}
	s.Changes = append(s.Changes, Change{At: now, What: q.Do, By: q.By, Reason: reason, Key: q.Key, Case: on})
	s.Changes = s.Changes[max(0, len(s.Changes)-MaxChanges):]
}

// keyed finds the case that a command with an idempotency key was for, among the changes that are remembered; zero if there is none.
func (s *State) keyed(key string) (on workitem.CaseID) {
	for _, c := range s.Changes {
		if key != "" && c.Key == key {
			on = c.Case
		}
	}
	return on
}

// added finds what added the schedule with an idempotency key, among the changes that are remembered; nil if nothing did.
func (s *State) added(key string) *Change {
	for i := range s.Changes {
		if c := &s.Changes[i]; key != "" && c.Key == key && c.Hash != "" {
			return c
		}
	}
	return nil
}
