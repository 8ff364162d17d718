package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// helpOfBulk is the part of the help of each command that starts a bulk action.
const helpOfBulk = "The action is a case of the workflow " + bulk.Name + ", which resumes after an interruption (tasq bulk); if the program that owns the " +
	"database does not have that workflow, it gets one command for each target."

// bulk is the command "bulk".
func (a *app) bulk() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bulk", Short: "list, show, pause, resume or cancel bulk actions", Args: cobra.ArbitraryArgs, RunE: a.group,
		Long: paragraph("A bulk action sends one command for each of its targets. The commands with --all start one (tasq incident, tasq " +
			"case, tasq item, tasq redrive), and so do the pages. It is a case of the workflow " + bulk.Name + ", and resumes after an interruption."),
	}
	cmd.AddCommand(a.bulkList(), a.bulkShow(),
		a.bulkCommand("pause", "pause a bulk action: it stops before its next target", "Pause a bulk action. The command that it executes now ends; no other "+
			"one begins until it is resumed, not even after a restart."),
		a.bulkCommand("resume", "resume a bulk action where it stopped", "Resume a bulk action where it stopped: one that is paused, or that was interrupted. If no process owns the "+
			"database, tasq executes it, until it ends."),
		a.bulkCommand("cancel", "cancel a bulk action", "Cancel a bulk action. What it has done stays done."))
	return cmd
}

func (a *app) bulkList() *cobra.Command {
	p := store.Page{Desc: true}
	cmd := &cobra.Command{Use: "list", Short: "list bulk actions, newest first", Args: exactly()}
	cmd.Flags().IntVar(&p.Limit, "limit", 20, "at most `n`; 0 for all")
	w := watch{a: a}
	w.flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, &p.Limit, nil); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return w.run(ctx, func(ctx context.Context, r store.Reader) error { return a.listBulk(ctx, r, p) })
		})(cmd, args)
	}
	return cmd
}

func (a *app) listBulk(ctx context.Context, r store.Reader, p store.Page) error {
	all := p.Limit == 0
	t, none := a.table("ID", "ACTION", "STATE", "TARGETS", "DONE", "REFUSED", "STARTED", "BY", "REASON"), true
	for {
		found, err := bulk.List(ctx, r, p)
		if err != nil {
			return err
		}
		for _, i := range found {
			none, p.After = false, i.ID.String()
			if a.output == "json" {
				if err := a.object(i); err != nil {
					return err
				}
				continue
			}
			t.add(p.After, i.Command(), i.State, number(int64(i.Targets)), number(int64(i.Done)), number(int64(i.Refused)), printable.Time(i.Started), i.Actor, i.Reason)
		}
		if !all || len(found) < store.DefaultLimit {
			break
		}
	}
	if a.output == "json" {
		return nil
	}
	if none {
		a.remark("no bulk actions")
	}
	return t.flush()
}

func (a *app) bulkShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "show a bulk action: its progress, and what was refused so far", Args: exactly("the ID of a bulk action"),
		Long: paragraph("Show a bulk action: how many targets are done, and each that was refused with its error, also while the action runs."),
	}
	w := watch{a: a}
	w.flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, new(int), nil); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, args []string) error {
			return w.run(ctx, func(ctx context.Context, r store.Reader) error {
				i, err := bulkOf(ctx, r, args[0])
				if err != nil {
					return err
				}
				return a.showBulk(i)
			})
		})(cmd, args)
	}
	return cmd
}

// bulkOf returns a bulk action by its id, or the beginning of it.
func bulkOf(ctx context.Context, r store.Reader, word string) (*bulk.Info, error) {
	if err := checkID(caseIDs, word); err != nil {
		return nil, err
	}
	var id workitem.CaseID
	if err := resolve(ctx, r, caseIDs, word, &id); err != nil {
		return nil, err
	}
	i, err := bulk.InfoOf(ctx, store.ViewerOf(r), id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, exit(ExitNotFound, "there is no bulk action %s; tasq bulk list has all", word)
	}
	return i, err
}

func (a *app) showBulk(i *bulk.Info) error {
	if a.output == "json" {
		return a.object(i)
	}
	if a.output == "csv" {
		t := a.table("TARGET", "CODE", "ERROR")
		for _, r := range i.Refusals {
			t.add(r.Target, r.Code, r.Error)
		}
		return t.flush()
	}
	by := ""
	if i.Actor != "" {
		by = ", by " + i.Actor
	}
	if i.Reason != "" {
		by += " (" + i.Reason + ")"
	}
	err := a.say("bulk action %s: %s, %s%s: %d of %d done, %d refused", i.ID, i.Command(), i.State, printable.Line(by), i.Done, i.Targets, i.Refused)
	for _, r := range i.Refusals {
		err = errors.Join(err, a.say("  %s: %s", r.Target, printable.Line(r.Error)))
	}
	return err
}

func (a *app) bulkCommand(word, short, long string) *cobra.Command {
	q := &asking{a: a}
	cmd := &cobra.Command{Use: word + " ID", Short: short, Long: paragraph(long), Args: exactly("the ID of a bulk action")}
	q.reasoned(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		i, err := a.infoOf(ctx, args[0])
		if err != nil {
			return err
		}
		if word != "resume" || i.State == bulk.Paused || !i.Ended.IsZero() {
			if q.command, err = bulk.Command(i.ID, word, workflow.By(q.command.Actor), workflow.Key(q.command.Key)); err != nil {
				return err
			}
			q.about = i.ID.String()
			o := owning{a: a}
			if _, err = o.do(ctx, q); err != nil || q.left() {
				return err
			}
		}
		if word == "resume" {
			o := owning{a: a}
			_, err = o.bulk(ctx, func(ctx context.Context, b *bulk.Bulk, _ workflow.Doer) (bulkRun, error) { return b.Of(i.ID), nil })
			if err != nil && !errors.Is(err, store.ErrOwned) {
				return err
			}
		}
		if i, err = a.infoOf(ctx, i.ID.String()); err != nil {
			return err
		}
		return a.showBulk(i)
	})
	return cmd
}

func (a *app) infoOf(ctx context.Context, word string) (i *bulk.Info, err error) {
	err = a.view(ctx, func(r store.Reader) (err error) {
		i, err = bulkOf(ctx, r, strings.TrimSpace(word))
		return err
	})
	return i, err
}

// withBulk adds the workflow of bulk actions to the code of this process, for a command on one.
func (a *app) withBulk(code []*workflow.Definition, on *state.Case) []*workflow.Definition {
	if on == nil || on.Workflow != bulk.Name {
		return code
	}
	return append(code, bulk.New(engine.Code).Untyped())
}
