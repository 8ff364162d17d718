package why

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// jobs collects the waits of the live jobs of the case.
func (v *visit) jobs() {
	for j := range v.c.Jobs.All() {
		v.waiting(j)
		switch {
		case j.Kind == state.JobIncident:
			v.held(j)
		case j.State == state.JobRunning:
			v.running(j)
		case j == v.c.Turn():
			v.turn(j)
		case j.State == state.JobWaiting: // for its steps
		case byWorker(j):
			v.pending(j)
		case j.Kind == state.JobTimer, j.Kind == state.JobHandler:
			v.timer(j)
		default:
			v.delay(j)
		}
	}
}

// turn is the wait of a queued case for those before it. It names the oldest of them, since that one ends first, and
// counts the others.
func (v *visit) turn(j *state.Job) {
	w := v.ofJob(Turn, j)
	w.Since, w.Name, w.Ahead = j.Created, v.c.Key, max(0, len(v.in.Before)-1)
	if len(v.in.Before) > 0 {
		w.Child = v.in.Before[0].ID
	}
	v.add(w)
}

// held is the wait for the decision about an incident. An undecided or-join is listed as a join instead.
func (v *visit) held(j *state.Job) {
	if j.Name == state.IncidentOrJoin {
		return
	}
	about, err := state.SubjectOf(j)
	if err != nil {
		about = state.Subject{} // the integrity check reports the corrupt subject
	}
	w := v.ofJob(Incident, j)
	w.Since, w.Failure, w.Attempt, w.Child, w.Incident = j.Created, j.Failure, 0, about.Case, j.ID
	if g := about.Job; g != nil {
		w.Job, w.Work, w.Name, w.Queue, w.Attempt = g.ID, g.Kind, g.Name, g.Queue, g.Attempt
	} else if it := v.c.Item(j.Item); it != nil {
		w.Attempt = it.Attempt
	}
	v.unloaded(&w)
	v.add(w)
}

// running is the wait for the result of a worker. A lease that has expired says only that no heartbeat was stored: the
// worker may have died, or it runs on and cannot reach the store.
func (v *visit) running(j *state.Job) {
	w := v.ofJob(Running, j)
	w.By, w.Since = j.Owner, v.begun(j)
	if !j.Lease.IsZero() && j.Lease.Before(v.in.Now) {
		w.Blocked, w.Until = Lapsed, j.Lease
	}
	v.add(w)
}

// begun returns when the work of a job began. A job does not have that time itself; the item that it runs does.
func (v *visit) begun(j *state.Job) time.Time {
	if it := v.c.Item(j.Item); it != nil && !it.Started.IsZero() {
		return it.Started
	}
	return j.Created
}

// pending is the wait of a job for its time, or for a worker.
func (v *visit) pending(j *state.Job) {
	if j.Due.After(v.in.Now) {
		w := v.ofJob(Delay, j)
		if w.Failure != nil {
			w.Kind = Retry
		}
		w.Since, w.Until = j.Created, j.Due
		v.blocked(&w, j.Queue)
		v.inHours(&w, j, j.Due)
		v.add(w)
		return
	}
	w := v.ofJob(Worker, j)
	if w.Since = j.Created; j.Due.After(w.Since) {
		w.Since = j.Due
	}
	v.obstacle(&w, j)
	v.add(w)
}

// obstacle records what keeps a due job from a worker. Several obstacles can apply to it at once. The answer has the one that
// has to go first; without it, the next one may show:
//
//	no engine for it      not-loaded, no-workers, stopped, failing
//	an operator           paused: the queue, or the key of the job
//	a time                hours
//	limits                limited
//	other jobs            batch, behind
//	workers               busy
//
// A job that only another engine can run has none of these: the queues and limits of that engine are not known here.
func (v *visit) obstacle(w *Wait, j *state.Job) {
	if v.blocked(w, j.Queue); w.Blocked != "" || v.isElsewhere() || v.failing(w, j) {
		return
	}
	if !v.full() {
		w.Ahead = jobsAhead(v.in.Due[j.Queue], j)
	}
	v.takesTurns(w, j)
	if v.in.Limits != nil {
		w.Limits = v.in.Limits(j.ID, "")
	}
	if len(w.Limits) == 0 {
		v.needs(w, j)
	}
	switch {
	case v.in.Paused[j.Queue].Paused:
		by := v.in.Paused[j.Queue].Decision
		w.Blocked, w.Ahead, w.Paused = Paused, 0, &by
	case v.keyPaused(w, j):
		w.Blocked, w.Ahead = Paused, 0
	case v.inHours(w, j, v.in.Now):
		w.Blocked, w.Ahead, w.Limits, w.Needs = Hours, 0, nil, nil
	case len(w.Limits) > 0:
		w.Blocked, w.Ahead = Limited, 0
	case v.gathers(w, j):
		w.Blocked, w.Ahead = Gathering, 0
	case w.Ahead > 0, w.Fair != nil && w.Fair.Keys != 1:
		w.Blocked = Behind
	case v.busy(j.Queue):
		w.Blocked = Busy
	case v.in.Full != nil:
		if w.MaxRunning = v.in.Full(); w.MaxRunning > 0 {
			w.Blocked = Busy
		}
	}
	if w.Blocked == Behind || w.Blocked == Busy {
		w.Workers = v.in.Paused[j.Queue].Workers
	}
}

// failing records that a job cannot start because the store fails.
func (v *visit) failing(w *Wait, j *state.Job) bool {
	if v.in.Failing == nil {
		return false
	}
	if w.Down = v.in.Failing(j.ID); w.Down.IsZero() {
		return false
	}
	w.Blocked = Failing
	return true
}

// busy reports whether all workers of a queue here have jobs.
func (v *visit) busy(queue string) bool {
	return v.in.Workers != nil && v.in.Running != nil && v.in.Running(queue) >= v.in.Workers(queue)
}

// blocked records why the engine here would not run a job of a queue.
func (v *visit) blocked(w *Wait, queue string) {
	switch {
	case v.unloaded(w), v.isElsewhere(), v.in.Workers == nil || v.in.Workers(queue) > 0:
	case v.in.Workers(queue) < 0:
		w.Blocked = NoWorkers
	default:
		w.Blocked = Stopped
	}
}

// isElsewhere reports whether only another engine has the definitions that a job of the case needs: the queues, limits and
// faults here do not matter then.
func (v *visit) isElsewhere() bool {
	_, elsewhere := v.missing()
	return elsewhere
}

// timer is the wait for a timer, which the engine executes itself; after a failure it is the time of the next attempt.
func (v *visit) timer(j *state.Job) {
	w := v.ofJob(Timer, j)
	w.Failure, w.Attempt = j.Failure, j.Attempt+1
	w.Since, w.Until = j.Created, j.Due
	v.byEngine(&w, j)
}

// byEngine adds a wait for work that the engine executes itself at a time. It needs no worker and no limit, so only a
// missing definition or a fault of the store can block it.
func (v *visit) byEngine(w *Wait, j *state.Job) {
	if !v.unloaded(w) && !v.isElsewhere() {
		v.failing(w, j)
	}
	v.add(*w)
}

// delay is the wait for a requested time: the begin of a case, or the next attempt of a person.
func (v *visit) delay(j *state.Job) {
	w := v.ofJob(Delay, j)
	if j.Kind == state.JobWake && w.Failure != nil {
		w.Kind = Retry
	}
	w.Since, w.Until = j.Created, j.Due
	if o, err := workflow.OptionsOf(activities.CaseInfo{Options: v.c.Options}); j.Kind == state.JobStart && err == nil {
		w.Debounced = o.Debounced
	}
	v.byEngine(&w, j)
}

// stepKinds are the kinds of waits by kind of step. A token is no wait: the step that waits for its event is.
var stepKinds = map[workitem.StepKind]Kind{
	workitem.StepEvent: Event, workitem.StepSleep: Delay, workitem.StepCase: Child, workitem.StepDo: Retry,
	workitem.StepTx: Retry,
}

// waiting collects the waits of the steps of a job, also of one that runs: a function can wait in one branch and work in
// another. A step that waits for limits has in Due since when it waits, and not until when.
func (v *visit) waiting(j *state.Job) {
	for _, s := range v.steps[j.ID] {
		kind, waits := stepKinds[s.Kind]
		if !waits {
			continue
		}
		w := v.ofJob(kind, j)
		w.Step, w.Name, w.Child, w.Since, w.Until = s.Name, s.Target, s.Child, s.Created, s.Due
		w.Attempt, w.Attempts, w.Failure = 0, 0, nil
		switch {
		case s.Kind == workitem.StepEvent && s.Topic:
			w.Kind = Topic
		case s.Limited():
			w.Kind, w.Blocked, w.Until, w.Limits, w.Failure = Worker, Limited, time.Time{}, v.limited(j, s), s.Failure
			if w.Since = s.Due; s.Failure != nil {
				w.Attempt = s.Attempt + 1
			}
		case kind == Retry:
			w.Attempt, w.Failure = s.Attempt+1, s.Failure
		}
		if w.Kind == kind && v.isDue(j, s) {
			w.Kind, w.Since, w.Until = Worker, s.Due, time.Time{}
			v.obstacle(&w, j)
			v.add(w)
			continue
		}
		if (kind == Retry || kind == Delay) && j.State == state.JobWaiting && w.Kind == kind {
			v.inHours(&w, j, later(s.Due, v.in.Now))
		}
		v.unloaded(&w)
		v.add(w)
	}
}

// isDue reports whether the time of a step has come, so that its job needs a worker again: after a sleep, or before the next attempt.
func (v *visit) isDue(j *state.Job, s *workitem.Step) bool {
	sleeps := s.Kind == workitem.StepSleep || stepKinds[s.Kind] == Retry
	return sleeps && j.State == state.JobWaiting && !s.Due.IsZero() && !s.Due.After(v.in.Now)
}

// limited returns what a step needs of limits of which it is not known here whether they have room.
func (v *visit) limited(j *state.Job, s *workitem.Step) []Limit {
	if v.in.Limits != nil {
		if list := v.in.Limits(j.ID, s.Name); len(list) > 0 {
			return list
		}
	}
	var list []Limit
	for _, t := range s.Takes() {
		need := Limit{Limit: t.Limit, Key: t.Key, Any: t.Any, N: t.N, Text: fmt.Sprintf("%d of %s", t.N, t.Limit)}
		if l, ok := v.in.limitOf(t.Limit, t.Key); ok && t.Any == nil && v.counted(l) {
			if out, known := v.lookAt(l, t.Key, t.N, nil); known {
				v.noRoom(&need, l, out)
			}
		}
		list = append(list, need)
	}
	return list
}

// jobsAhead counts the jobs of a queue that start before a job: those with a higher priority, or with the same one and an
// earlier time.
func jobsAhead(due []*state.Job, j *state.Job) int {
	n := 0
	for _, other := range due {
		order := cmp.Or(cmp.Compare(j.Priority, other.Priority), other.Due.Compare(j.Due), bytes.Compare(other.ID[:], j.ID[:]))
		if order < 0 {
			n++
		}
	}
	return n
}

// itemsAhead counts the items that a queue lists before an item.
func itemsAhead(open []*store.ItemRow, it *workitem.Item) int {
	n := 0
	for _, other := range open {
		if cmp.Or(cmp.Compare(it.Priority, other.Priority), bytes.Compare(other.ID[:], it.ID[:])) < 0 {
			n++
		}
	}
	return n
}
