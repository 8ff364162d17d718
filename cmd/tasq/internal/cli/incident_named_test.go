package cli_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workitem"
)

// An incident is named by the id that tasq incidents prints, whole or shortened, whatever it is about: its work item is retried, skipped or
// given up, and its timer is fired, also if the item of the timer is named. Only a work item is skipped. An item whose timer was given up has not failed,
// and is not retried with others.
func TestAnIncidentIsNamedByItsID(t *testing.T) {
	t.Parallel()
	for name, open := range bothStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, at := open(t)
			var down atomic.Bool
			down.Store(true)
			up := func() error {
				if down.Load() {
					return errors.New("no connection")
				}
				return nil
			}
			b := builder.New[int]("paid")
			b.Path(b.Start(), builder.Task(b, "pay", builder.Work[int, int]{Input: builder.CaseInput(b), Policy: workitem.Incident(workitem.Default()),
				Run: func(_ context.Context, n int) (int, error) { return n, up() }}), b.End())
			c := builder.New[int]("timed")
			c.Path(c.Start(), builder.Task(c, "wait", builder.Work[int, int]{Input: builder.CaseInput(c), Timers: []activities.Timer{
				{Name: "remind", After: time.Minute, Item: func(context.Context, *activities.Item) error { return up() }}}}), c.End())
			paid, timed := b.MustBuild(), c.MustBuild()
			t.Run("they arise", func(t *testing.T) {
				e := enginetest.Open(t, db, engine.Config{}, paid, timed)
				for range 3 {
					_, err := paid.Start(t.Context(), e, 1)
					require.NoError(t, err)
				}
				_, err := timed.Start(t.Context(), e, 1)
				require.NoError(t, err)
				e.Advance(24 * time.Hour)
				e.Drain()
			})
			says := func(want int, args ...string) (out, errs string) {
				code, out, errs := call(t.Context(), append(args, "--db", at)...)
				require.Equal(t, want, code, out+errs)
				return out, errs
			}
			// id returns an id of a kind as the table has it.
			id := func(n int, kind string) string {
				out, _ := says(cli.ExitOK, "incidents", "--kind", kind)
				return strings.Fields(strings.Split(out, "\n")[1+n])[0]
			}
			out, errs := says(cli.ExitOK, "incident", "retry")
			require.Equal(t, "3 incidents would be acted on; repeat the command with --all\n", out)
			require.Contains(t, errs, "1 incident of timers, functions, handlers or child cases not counted here; act on them with --kind timer\n")
			_, errs = says(cli.ExitRefused, "incident", "skip", id(0, "timer"))
			require.Contains(t, errs, "(timer) is about a timer, which cannot be skipped or given up; tasq incident retry ")
			out, _ = says(cli.ExitOK, "incidents", "--kind", "timer", "-o", "csv")
			item := strings.Split(strings.Split(out, "\n")[1], ",")[4]
			_, errs = says(cli.ExitRefused, "incident", "skip", item, "--data", "1")
			require.Contains(t, errs, "(timer) is about a timer, which cannot be skipped or given up; tasq incident retry ")

			e, err := engine.Config{Workers: -1}.Open(t.Context(), db, paid, timed)
			require.NoError(t, err)
			gone := id(2, "attempts")
			out, _ = says(cli.ExitOK, "incident", "give-up", gone)
			require.Contains(t, out, "(paid/pay.1.1) is failed")
			_, errs = says(cli.ExitNotFound, "incident", "give-up", gone)
			require.Contains(t, errs, "(attempts) has ended; tasq incidents lists those that are open")
			out, _ = says(cli.ExitOK, "incident", "skip", id(1, "attempts"), "--data", "2")
			require.Contains(t, out, "(paid/pay.1.2) is completed")
			out, _ = says(cli.ExitOK, "incidents", "--kind", "attempts", "-o", "csv")
			whole, _, _ := strings.Cut(strings.Split(out, "\n")[1], ",")
			out, _ = says(cli.ExitOK, "incident", "retry", whole)
			require.Contains(t, out, "(paid/pay.1.2) is initialized, attempt 2")
			down.Store(false)
			out, _ = says(cli.ExitOK, "incident", "retry", item, "--dry-run")
			require.Contains(t, out, "job timer remind of wait.1.1 scheduled", "its timer is the only incident of the item")
			out, _ = says(cli.ExitOK, "incident", "retry", id(0, "timer"))
			require.Contains(t, out, " is tried again\n")
			_, errs = says(cli.ExitOK, "incidents")
			require.Contains(t, errs, "no incidents")
			require.NoError(t, e.Close())
			says(cli.ExitOK, "doctor")
		})
	}
}
