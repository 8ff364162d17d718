package schedules

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Commander executes commands on schedules; *engine.Engine implements it.
type Commander interface {
	workflow.Doer
	store.Viewer
}

// Add adds a schedule at run time, or changes an existing one with the same name, which keeps its pause and its runs.
// The result has its current case. The error wraps schedule.ErrInvalid, or describes an invalid command.
func Add(ctx context.Context, e Commander, s workflow.Scheduled, opts ...workflow.Option) (workflow.Result, error) {
	if err := s.Check(); err != nil {
		return workflow.Result{}, err
	}
	return attempt(func() (workflow.Result, error) {
		known, err := find(ctx, e, s.Schedule.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return workflow.Result{}, err
		}
		if isAgain, err := known.isAgain(s, opts); isAgain || err != nil {
			return known.result(), err
		}
		c, err := addTo(known, s, now(e), opts)
		if err != nil {
			return workflow.Result{}, err
		}
		result, err := e.Do(ctx, c)
		return result, misused(err, known, opts)
	})
}

// tries limits how often a command is made again because a tick or another command came first.
const tries = 100

// attempt runs a command on the current case of a schedule, and repeats it if another case has become current.
func attempt(do func() (workflow.Result, error)) (result workflow.Result, err error) {
	for range tries {
		if result, err = do(); !isLate(err) {
			break
		}
	}
	return result, err
}

// isLate reports whether the case of a command is no longer current: it has ended, or another command has added the
// schedule again, with the same key of its generation.
func isLate(err error) bool {
	if _, ok := errors.AsType[*misuseError](err); ok {
		return false
	}
	return errors.Is(err, workflow.ErrInactive) || errors.Is(err, workflow.ErrKeyReused)
}

// misuseError is the error of a command whose idempotency key belongs to another command. It is not an [isLate] error,
// since a repetition would fail in the same way.
type misuseError struct {
	schedule, key string
	on            workitem.CaseID // of the other command
}

// Error implements error.
func (e *misuseError) Error() string {
	if e.on.IsZero() {
		return fmt.Sprintf("%s: key %q was first used to add schedule %q; give this command a key of its own", workflow.ErrKeyReused, e.key, e.schedule)
	}
	return fmt.Sprintf("%s: key %q was first used for another command on schedule %q, to its case %s; give this command a key of its own",
		workflow.ErrKeyReused, e.key, e.schedule, e.on)
}

// Unwrap returns workflow.ErrKeyReused.
func (*misuseError) Unwrap() error { return workflow.ErrKeyReused }

// misused returns a misuseError if the key of a failed command is recorded for another command of the schedule, and
// otherwise err. found is nil if there is no schedule.
func misused(err error, found *Info, opts []workflow.Option) error {
	if found == nil || !errors.Is(err, workflow.ErrKeyReused) {
		return err
	}
	key := workflow.With(workflow.Command{}, opts...).Key
	on := found.caseOfKey(key)
	if on.IsZero() {
		return err
	}
	return &misuseError{found.State.Schedule.Name, key, on}
}

// ErrAdded is the error of an add that was executed before with the same idempotency key: nothing remains to be done.
var ErrAdded = errors.New("the schedule was added by this command before")

// AddCommand returns the command of [Add] for the current state of the schedule. It fails if a tick comes first, and
// must then be made again. The error wraps [ErrAdded] if the command was executed before, according to its idempotency
// key.
func AddCommand(ctx context.Context, v store.Viewer, s workflow.Scheduled, opts ...workflow.Option) (workflow.Command, error) {
	if err := s.Check(); err != nil {
		return workflow.Command{}, err
	}
	found, err := find(ctx, v, s.Schedule.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return workflow.Command{}, err
	}
	isAgain, err := found.isAgain(s, opts)
	if err != nil {
		return workflow.Command{}, err
	}
	if isAgain {
		return workflow.Command{}, fmt.Errorf("schedule %q: %w", s.Schedule.Name, ErrAdded)
	}
	return addTo(found, s, time.Time{}, opts)
}

// isAgain reports whether the same command, by its idempotency key, has added the schedule before. The case that it
// started may have been removed by now, so the schedule itself records the key. It returns an error if the key belongs
// to another command.
func (i *Info) isAgain(s workflow.Scheduled, opts []workflow.Option) (bool, error) {
	if i == nil {
		return false, nil
	}
	c := workflow.With(workflow.Command{}, opts...)
	by := i.added(c.Key)
	if by == nil || by.Hash == addHash(s, c) {
		return by != nil, nil
	}
	return false, &misuseError{schedule: i.Schedule.Name, key: c.Key}
}

func (i *Info) result() (result workflow.Result) {
	if i != nil {
		result.Case = i.Case
	}
	return result
}

// addHash identifies an add, as the hash of a command does: by the schedule, the actor and the reason.
func addHash(s workflow.Scheduled, c workflow.Command) string {
	reason, _ := json.Marshal(c.Reason)
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %q %s", hashOf(s), c.Actor, reason)))
}

// now returns the time of an engine; zero if only another program has it, which executes the command.
func now(e Commander) time.Time {
	if clock, ok := e.(interface{ Now() time.Time }); ok {
		return clock.Now()
	}
	return time.Time{}
}

// addTo returns the command that adds a schedule at a time, or changes the found one; found is nil if there is none.
func addTo(found *Info, s workflow.Scheduled, at time.Time, opts []workflow.Option) (workflow.Command, error) {
	s.Start.Fingerprint = "" // ticks start the definition that the engine has at that time
	if found != nil && (found.live() || found.knows(opts)) {
		return command(found, request{Do: doUpdate, Update: &s}, opts)
	}
	return first(s, found, at, opts)
}

// first returns the command that starts the first case of a schedule. found is the last case of a removed schedule with
// this name, or nil.
//
// No tick of a new schedule is due, so its first case waits for the next one. If the time is not known, the case begins
// immediately, and the second one waits for the next tick.
func first(s workflow.Scheduled, found *Info, at time.Time, opts []workflow.Option) (workflow.Command, error) {
	state := State{Scheduled: s, Generation: 1}
	if found != nil {
		state.Generation = found.State.Generation + 1
	}
	c := workflow.With(workflow.Command{}, opts...)
	change := Change{At: at, What: "add", By: c.Actor}
	if c.Reason != nil {
		change.Reason = c.Reason.Message
	}
	if change.Key = c.Key; c.Key != "" {
		change.Hash = addHash(s, c)
	}
	state.Changes = []Change{change}
	var next time.Time
	if !at.IsZero() {
		table, err := s.Schedule.Compile()
		if err != nil {
			return workflow.Command{}, err
		}
		next = state.settle(table.Due(time.Time{}, at))
	}
	fresh, err := state.successor(next)
	fresh.Actor = cmp.Or(c.Actor, fresh.Actor)
	fresh.WaitForOwner = c.WaitForOwner
	return fresh, err
}

// withHash returns a command of [addTo] as that of a declaration with a hash.
func withHash(c workflow.Command, hash string) workflow.Command {
	var state State
	var q request
	switch {
	case c.Kind == workflow.KindStart && json.Unmarshal(c.Payload, &state) == nil:
		state.Declared = hash
		c.Payload, _ = json.Marshal(&state)
	case c.Reason != nil && json.Unmarshal(c.Reason.Details, &q) == nil:
		q.Declared = hash
		c.Reason.Details, _ = json.Marshal(q)
	}
	return c
}

// hashOf identifies the declaration of a schedule.
func hashOf(s workflow.Scheduled) string {
	s.Start.Fingerprint = ""
	raw, _ := json.Marshal(s) // it was validated
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// Pause makes a schedule start nothing until it is resumed, including ticks that wait for a run to end. See
// [workflow.By] and [workflow.Because]. The error wraps store.ErrNotFound if there is no such schedule.
func Pause(ctx context.Context, e Commander, name string, opts ...workflow.Option) error {
	return do(ctx, e, name, request{Do: doPause}, opts)
}

// Resume makes a paused schedule continue with the next tick. Ticks during the pause are skipped.
func Resume(ctx context.Context, e Commander, name string, opts ...workflow.Option) error {
	return do(ctx, e, name, request{Do: doResume}, opts)
}

// Run starts a run immediately, in addition to the ticks, even if the schedule is paused or another run is active.
func Run(ctx context.Context, e Commander, name string, opts ...workflow.Option) error {
	return do(ctx, e, name, request{Do: doRun}, opts)
}

// Backfill begins the ticks in [from, to) that have no run in the database, regardless of Start and End of the
// schedule. They begin one after the other, as runs end, or all at once if overlaps are allowed. The limit is
// MaxBackfill ticks.
func Backfill(ctx context.Context, e Commander, name string, from, to time.Time, opts ...workflow.Option) error {
	return do(ctx, e, name, request{Do: doBackfill, From: from, To: to}, opts)
}

// Remove ends a schedule. Its runs continue.
func Remove(ctx context.Context, e Commander, name string, opts ...workflow.Option) error {
	return do(ctx, e, name, request{Do: doRemove}, opts)
}

func do(ctx context.Context, e Commander, name string, q request, opts []workflow.Option) error {
	_, err := attempt(func() (workflow.Result, error) {
		found, c, err := commandFor(ctx, e, name, q, opts)
		if err != nil {
			return workflow.Result{}, err
		}
		result, err := e.Do(ctx, c)
		return result, misused(err, found, opts)
	})
	return err
}

// commandFor returns the command of a request for the current state of a schedule.
func commandFor(
	ctx context.Context, v store.Viewer, name string, q request, opts []workflow.Option,
) (found *Info, c workflow.Command, err error) {
	found, err = find(ctx, v, name)
	if err == nil && !found.live() && !found.knows(opts) {
		err = fmt.Errorf("schedule %q was removed: %w", name, store.ErrNotFound)
	}
	if key := workflow.With(workflow.Command{}, opts...).Key; err == nil && found.added(key) != nil {
		err = &misuseError{schedule: name, key: key}
	}
	if err == nil && q.Do == doBackfill && found.live() {
		err = checkBackfill(&found.State, q)
	}
	if err == nil {
		c, err = command(found, q, opts)
	}
	return found, c, err
}

// checkBackfill returns an error for a period with more ticks than may wait.
func checkBackfill(s *State, q request) error {
	table, err := s.Schedule.Compile()
	if err != nil {
		return err
	}
	switch n := len(backfilled(table, q.From, q.To)); {
	case n == 0:
		return fmt.Errorf("%w: schedule %q has no tick from %s to %s", workflow.ErrBadCommand, s.Schedule.Name,
			q.From.Format(time.RFC3339), q.To.Format(time.RFC3339))
	case n+len(s.Waiting) > MaxBackfill:
		return fmt.Errorf("%w: schedule %q has more than %d ticks from %s to %s, or in wait; backfill a shorter period",
			workflow.ErrBadCommand, s.Schedule.Name, MaxBackfill, q.From.Format(time.RFC3339), q.To.Format(time.RFC3339))
	}
	return nil
}

// knows reports whether a command with the idempotency key of the options is recorded.
func (i *Info) knows(opts []workflow.Option) bool {
	return !i.caseOfKey(workflow.With(workflow.Command{}, opts...).Key).IsZero()
}

// caseOfKey returns the case that a command with an idempotency key was for; zero if none is recorded.
func (i *Info) caseOfKey(key string) workitem.CaseID {
	if key != "" && i.ended.Key == key {
		return i.Case
	}
	return i.keyed(key)
}

// command returns the command of a request to the current case of a schedule. If its idempotency key is recorded, it is
// for the case of the first execution instead, in which the engine finds the stored result: another case is current by
// now.
func command(found *Info, q request, opts []workflow.Option) (workflow.Command, error) {
	c := workflow.With(workflow.Cancel(found.Case, nil), opts...)
	if on := found.caseOfKey(c.Key); !on.IsZero() {
		c.Case = on
	}
	c.Workflow, q.By, q.Key = Name, c.Actor, c.Key
	text := ""
	if c.Reason != nil {
		text = c.Reason.Message
	}
	var err error
	c.Reason, err = q.reason(text)
	return c, err
}

// CommandFor returns the command of "pause", "resume", "run", "remove" or "backfill" (of the period) for a program that
// sends it itself. Like that of [AddCommand], it fails if a tick comes first, with an error that wraps
// workflow.ErrInactive.
func CommandFor(
	ctx context.Context, v store.Viewer, name, what string, from, to time.Time, opts ...workflow.Option,
) (workflow.Command, error) {
	_, c, err := commandFor(ctx, v, name, request{Do: what, From: from, To: to}, opts)
	return c, err
}
