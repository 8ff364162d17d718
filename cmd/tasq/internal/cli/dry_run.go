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
	"github.com/tasq-dev/tasq/workflow"
)

// dryRun prints what a command would do. The process that owns the database tries it, or this one if there is no other.
func (o *owning) dryRun(ctx context.Context, q *asking) error {
	if q.queue {
		return errTriedAndLeft()
	}
	var p engine.Preview
	tried := *q
	tried.command = workflow.DryRun(q.command)
	answer, answered, err := o.askOwner(ctx, &tried, func() (owned bool, err error) {
		e, err := engine.Config{Workers: -1, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, o.db.Opener(), o.defs...)
		if errors.Is(err, store.ErrOwned) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if o.lacks != "" {
			return false, errors.Join(exit(ExitRefused, "workflow %s is code that tasq does not have, and no program that has it owns %s, so the "+
				"command cannot be tried; run the program", o.lacks, o.db.Name()), e.Close())
		}
		p, err = e.DryRun(ctx, q.command)
		return false, errors.Join(err, e.Close())
	})
	if err == nil && answered {
		err = o.a.view(ctx, func(r store.Reader) error {
			p, err = engine.ReadPreview(ctx, r, answer.Preview)
			return err
		})
	}
	if err != nil {
		return err
	}
	return o.a.preview(p)
}

// errTriedAndLeft returns the error of --dry-run with --queue.
func errTriedAndLeft() error {
	return usagef("--dry-run and --queue cannot be combined: a queued command cannot be tried")
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
		s.AddTree(t.Before)
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
