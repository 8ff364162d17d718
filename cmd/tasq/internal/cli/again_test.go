package cli

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// failing opens an engine whose functions fail, with a case that has failed, and an incident of one that has not. It returns the id of the
// case and that of the work item of the incident.
func failing(t *testing.T, db store.Opener) (failed workitem.CaseID, item workitem.ID) {
	t.Helper()
	run := func(_ context.Context, n int) (int, error) {
		return n, &workitem.Failure{Code: "declined", Message: "the card is declined"}
	}
	charge := builder.MustFunc("charge", run)
	b := builder.New[int]("order")
	b.Path(b.Start(), builder.Task(b, "pay", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run, Policy: workitem.Incident(workitem.Default())}), b.End())
	order := b.MustBuild()
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, charge, order)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	first, err := charge.Run(t.Context(), e, 1)
	require.NoError(t, err)
	_, err = order.Start(t.Context(), e, 1)
	require.NoError(t, err)
	require.NoError(t, e.Drain(t.Context()))
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		item = i.Item
	}
	return first.ID, item
}

// Work that fails again at once is an error that says why, and of which work item.
func TestWorkThatFailsAgainAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		failed, _ := failing(t, db)
		// The function may fail just after the command has looked: then the next one says so.
		untilItFails := func(args func() []string) (out, errs string) {
			require.Eventually(t, func() bool {
				var code int
				code, out, errs = tasq(t, at, args()...)
				return code == ExitNo
			}, 40*time.Second, 10*time.Millisecond)
			return out, errs
		}
		_, errs := untilItFails(func() []string { return []string{"case", "resume", failed.String()} })
		require.Regexp(t, `^tasq: case `+failed.String()+` of charge failed again: declined: the card is declined; work item \S+ \(charge/run\.1\.\d+\)\n$`, errs)
		out, errs := untilItFails(func() []string { return []string{"case", "resume", failed.String(), "-o", "json"} })
		require.Contains(t, out, `"state":"failed"`)
		require.Contains(t, errs, "failed again: declined")
		for _, command := range []string{"item", "incident"} {
			_, errs = untilItFails(func() []string { return []string{command, "retry", latest(t, at)} })
			require.Regexp(t, `^tasq: work item \S+ \(order/pay\.1\.\d+\) failed again, attempt \d+: declined: the card is declined\n$`, errs)
		}
		code, out, errs := tasq(t, at, "incident", "give-up", latest(t, at))
		require.Zero(t, code, errs)
		require.Contains(t, out, "is failed, attempt")
	})
}

// latest returns the id of the work item of the incident.
func latest(t *testing.T, at string) string {
	t.Helper()
	var id string
	require.Eventually(t, func() bool { // until the attempt has become an incident
		code, out, errs := tasq(t, at, "incidents", "-o", "csv")
		require.Zero(t, code, errs)
		for line := range strings.Lines(out) {
			if fields := strings.Split(line, ","); fields[1] == "attempts" {
				id = fields[4]
			}
		}
		return id != ""
	}, 40*time.Second, 10*time.Millisecond)
	return id
}

// A command that needs a payload names the flag that gives it.
func TestAMissingPayloadNamesItsFlag(t *testing.T) {
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		_, item := failing(t, db)
		for _, args := range [][]string{{"incident", "skip", item.String()}, {"item", "skip", item.String()}, {"case", "start", "order"}} {
			code, _, errs := tasq(t, at, args...)
			require.Equal(t, ExitUsage, code)
			require.Contains(t, errs, "the payload is missing; give it with --data\n")
		}
		code, out, errs := tasq(t, at, "incident", "skip", item.String(), "--data", "3")
		require.Zero(t, code, errs)
		require.Contains(t, out, "is completed")
	})
}
