package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

// dryRun prints what a command would do. It owns the database for that time, so no other process may own it.
func (o *owning) dryRun(ctx context.Context, q *asking) error {
	if q.queue {
		return usagef("--dry-run and --queue cannot be combined: a queued command cannot be tried")
	}
	if o.lacks != "" {
		return exit(ExitRefused, "workflow %s is code that tasq does not have, so the command cannot be tried here", o.lacks)
	}
	e, err := engine.Config{Workers: -1, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, o.db.Opener(), o.defs...)
	if errors.Is(err, store.ErrOwned) {
		return exit(ExitDatabase, "%s belongs to another process, and a command is tried by the owner only: stop it, or try the command in a "+
			"copy (tasq backup): %w", o.db.Name(), err)
	}
	if err != nil {
		return err
	}
	p, err := e.DryRun(ctx, q.command)
	if err == nil {
		err = o.a.preview(p)
	}
	return errors.Join(err, e.Close())
}

// preview prints what a command would do, in the form of the history.
func (a *app) preview(p engine.Preview) error {
	if len(p.Trees) == 0 && len(p.Settings) == 0 {
		return a.say("the command would change nothing")
	}
	for _, s := range p.Settings {
		line, err := record.SettingChange(s.Name, s.From, s.To)
		if err != nil {
			return err
		}
		if err := a.say("would change the setting of %s", line); err != nil {
			return err
		}
	}
	for _, t := range p.Trees {
		s := describe.New(t.Tree, t.Tree.Root)
		s.AddTree(t.Tree)
		if err := a.say("would change case %s of %s:", t.Tree.Root, t.Tree.Case(t.Tree.Root).Workflow); err != nil {
			return err
		}
		for _, c := range t.Changes {
			line, _ := s.Describe(c, now())
			if err := a.say("    %s", printable.Line(line)); err != nil {
				return err
			}
		}
	}
	return nil
}
