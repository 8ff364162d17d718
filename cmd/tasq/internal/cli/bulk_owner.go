package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// many acts on every target: with --queue by commands for the next owner of the database; otherwise by a durable bulk action, in this process if it can own the
// database, and otherwise in its owner, or by one command each if that has no bulk actions. what is the noun for one.
func (a *app) many(ctx context.Context, q *asking, targets []string, what string) error {
	if err := q.complete(); err != nil {
		return err
	}
	o := owning{a: a}
	action := bulk.Action{Kind: q.command.Kind, Do: q.command.Action, Payload: q.command.Payload, Reason: q.reason, Actor: q.command.Actor, Retry: q.command.Retry,
		FromStep: q.command.FromStep, Force: q.force}
	if q.command.Kind == workflow.KindAct && q.command.Action != workitem.Reset && q.command.Reason != nil { // which says that a failure is retryable
		payload, err := json.Marshal(q.command.Reason)
		if err != nil {
			return err
		}
		action.Payload = payload
	}
	if q.queue {
		return o.leaveAll(ctx, action, targets)
	}
	result, err := inParts(targets, bulk.MaxTargets, func(part []string) (bulk.Result, error) {
		one, err := o.bulk(ctx, func(ctx context.Context, b *bulk.Bulk, e workflow.Doer) (bulkRun, error) {
			return b.Start(ctx, e, action, part)
		})
		if errors.Is(err, store.ErrOwned) {
			one, err = o.atOwner(ctx, q, action, part)
		}
		for _, r := range one.Refused {
			a.remark("%s: %s", r.Target, r.Error)
		}
		return one, err
	})
	if err != nil {
		return err
	}
	refused := len(result.Refused) + result.More
	if a.output == "json" {
		err = a.object(result)
	} else {
		err = a.say("%s done, %d refused", printable.Plural(result.Done, what), refused)
	}
	if err == nil && refused > 0 {
		err = &exitError{ExitRefused, errors.New("")}
	}
	return err
}

// inParts acts on targets in as many actions as it takes, one after the other, and returns their results together. It stops at the first error.
func inParts(targets []string, most int, act func([]string) (bulk.Result, error)) (all bulk.Result, err error) {
	for part := range slices.Chunk(targets, most) {
		one, err := act(part)
		all = bulk.Result{Done: all.Done + one.Done, Refused: append(all.Refused, one.Refused...), More: all.More + one.More}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// bulkRun is the handle of a bulk action.
type bulkRun = builder.Run[bulk.Result]

// bulk executes the action that begin starts or names in this process. The error wraps store.ErrOwned if another process owns the database.
func (o *owning) bulk(ctx context.Context, begin func(context.Context, *bulk.Bulk, workflow.Doer) (bulkRun, error)) (result bulk.Result, err error) {
	if o.db, err = o.a.database(); err != nil {
		return result, err
	}
	err = o.read(ctx, func(r store.Reader) error {
		known, err := namesOf(ctx, r)
		if err != nil {
			return err
		}
		code, err := o.a.codeFor(ctx, r)
		if err != nil {
			return err
		}
		return o.gatherAll(known.defs, code)
	})
	if err != nil {
		return result, err
	}
	repairs := bulk.New(engine.Code)
	e, err := engine.Config{Workers: -1, Queues: map[string]int{bulk.Name: 1}, Logger: slog.New(slog.NewTextHandler(o.a.Err,
		&slog.HandlerOptions{Level: slog.LevelError}))}.Open(ctx, o.db.Opener(), append(o.defs, repairs)...)
	if err != nil {
		return result, err
	}
	run, err := begin(ctx, repairs, e)
	if err == nil {
		result, err = run.Result(ctx, e)
	}
	return result, errors.Join(err, e.Close())
}

// atOwner has the process that owns the database execute the action, and waits for its end.
func (o *owning) atOwner(ctx context.Context, q *asking, action bulk.Action, targets []string) (result bulk.Result, err error) {
	has := false
	err = o.read(ctx, func(r store.Reader) error {
		known, err := namesOf(ctx, r)
		has = known.newest(bulk.Name) != nil
		return err
	})
	if err != nil {
		return result, err
	}
	if !has {
		return o.each(ctx, q, action, targets, engine.ErrUnknown)
	}
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	run, err := bulk.New(engine.Code).Start(limited, posting{o}, action, targets, workflow.By(action.Actor))
	switch {
	case errors.Is(err, engine.ErrUnknown), errors.Is(err, engine.ErrTooLarge), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return o.each(ctx, q, action, targets, err)
	case err != nil:
		return result, err
	}
	o.a.remark("bulk action %s is started in the program that owns %s; it continues there after Ctrl-C (tasq bulk show)", run.ID, o.db.Name())
	return o.a.endOf(ctx, run)
}

// notDurable says that the targets get a command each, and why there is no bulk action.
func (o *owning) notDurable(q *asking, targets int, err error) {
	reason := "has no bulk actions"
	switch {
	case errors.Is(err, engine.ErrTooLarge):
		reason = "refused a bulk action of this size"
	case errors.Is(err, context.DeadlineExceeded):
		reason = fmt.Sprintf("did not start a bulk action within %s (--timeout): it may be busy, or have none", q.timeout)
	}
	o.a.remark("the program that owns %s %s, so this command sends %s, and does not send the rest if it is interrupted; run it again "+
		"then, or leave the commands with --queue", o.db.Name(), reason, printable.Plural(targets, "command"))
}

// endOf waits until an action of another process has ended.
func (a *app) endOf(ctx context.Context, run bulkRun) (result bulk.Result, err error) {
	err = a.withStore(ctx, func(s store.Store) error {
		for _, err := range moves(ctx, s, retry.SystemClock, 0) {
			if err != nil {
				return err
			}
			i, err := bulk.InfoOf(ctx, s, run.ID)
			if err != nil {
				return err
			}
			if i.Ended.IsZero() {
				continue
			}
			result = bulk.Result{Done: i.Done, Refused: i.Refusals}
			if i.State != state.CaseCompleted.String() {
				return exit(ExitRefused, "bulk action %s is %s: %d of %d done, %d refused", i.ID, i.State, i.Done, i.Targets, i.Refused)
			}
			return nil
		}
		return ctx.Err()
	})
	return result, err
}

// posting sends commands to the process that owns the database.
type posting struct{ o *owning }

// Do implements workflow.Doer.
func (p posting) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	command, err := json.Marshal(c)
	if err != nil {
		return workflow.Result{}, err
	}
	for {
		result, err := p.o.post(ctx, command)
		if !errors.Is(err, errUnowned) {
			return result, err
		}
	}
}

// leaveAll leaves a command for each target to the process that owns the database next.
func (o *owning) leaveAll(ctx context.Context, action bulk.Action, targets []string) (err error) {
	if o.db, err = o.a.database(); err != nil {
		return err
	}
	for i, target := range targets {
		c, err := action.Command(target, "")
		if err != nil {
			return err
		}
		command, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := o.db.Inbox().Leave(ctx, command); err != nil {
			return &exitError{ExitDatabase, fmt.Errorf("%s of %d left: %w", printable.Plural(i, "command"), len(targets), err)}
		}
	}
	o.a.remark("%s left in %s for the program that owns it next", printable.Plural(len(targets), "command"), o.db.Name())
	return nil
}

// each leaves a command for each target to the process that owns the database, and says so. reason says why it does not
// execute them as a bulk action.
func (o *owning) each(ctx context.Context, q *asking, action bulk.Action, targets []string, reason error) (result bulk.Result, err error) {
	o.notDurable(q, len(targets), reason)
	for _, target := range targets {
		c, err := action.Command(target, "")
		if err != nil {
			return result, err
		}
		limited, cancel := context.WithTimeout(ctx, q.timeout)
		_, err = posting{o}.Do(limited, c)
		cancel()
		switch remote := (*engine.RemoteError)(nil); {
		case err == nil:
			result.Done++
		case errors.As(err, &remote):
			result.Refused = append(result.Refused, bulk.Refusal{Target: target, Code: remote.Code, Error: remote.Text})
		default:
			return result, err
		}
	}
	return result, nil
}
