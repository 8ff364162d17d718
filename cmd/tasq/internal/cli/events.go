package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

func (a *app) events() *cobra.Command {
	l := listing{a: a, what: "events"}
	var f store.MessageFilter
	cmd := &cobra.Command{
		Use: "events", Short: "list the events that were sent to cases",
		Long: paragraph("List the events that were sent to cases, oldest first, with the time at which a step took each. An event that no " +
			"step has taken is kept for the next step that asks for it."),
		Example: `  tasq events --unread
  tasq events --case 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071`,
		Args: exactly(),
	}
	l.pageFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Name, "name", "", "only those of this `name`")
	flags.BoolVar(&f.Unread, "unread", false, "only those that no step has taken")
	l.caseFlag(cmd, ofCase)
	l.runs(cmd, &f.Root, nil, nil, func(ctx context.Context, r store.Reader) error { return l.events(ctx, r, f) })
	return cmd
}

func (l *listing) events(ctx context.Context, r store.Reader, f store.MessageFilter) (err error) {
	if f.Root, f.Case, err = within(ctx, r, f.Root); err != nil {
		return err
	}
	at, names := now(), l.a.namer(ctx, r)
	since := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return printable.Duration(at.Sub(t)) + " ago"
	}
	t := l.a.table("EVENT", "NAME", "CASE", "SENT", "BY", "TAKEN", "VALUE")
	read := func(p store.Page) ([]*state.Message, error) {
		f.Page = p
		return r.Messages(ctx, f)
	}
	id := func(m *state.Message) string { return m.ID.String() }
	return rows(l, t, read, id, record.OfEvent, func(m *state.Message) ([]string, error) {
		cells := []string{names.event(m.ID), m.Name, names.of(m.Case), since(m.Sent), m.By, since(m.Taken), l.a.brief(m.Value, 40)}
		return cells, names.err
	})
}
