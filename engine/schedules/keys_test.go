package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Each command cancels the present case of the schedule, so one that is sent again finds another case there.
func TestACommandThatIsSentAgainWithItsKeyDoesNothing(t *testing.T) {
	b, ctx := newBench(t, hourly("digest")), t.Context()
	b.Advance(150 * time.Minute)
	b.calls.take()
	fresh := builder.Schedule(schedule.Schedule{Name: "digest", Every: 2 * time.Hour}, b.f, "updated")
	commands := []struct {
		name string
		send func(e schedules.Commander, opts ...workflow.Option) error
	}{
		{"pause", func(e schedules.Commander, opts ...workflow.Option) error {
			return schedules.Pause(ctx, e, "digest", opts...)
		}},
		{"resume", func(e schedules.Commander, opts ...workflow.Option) error {
			return schedules.Resume(ctx, e, "digest", opts...)
		}},
		{"run", func(e schedules.Commander, opts ...workflow.Option) error {
			return schedules.Run(ctx, e, "digest", opts...)
		}},
		{"backfill", func(e schedules.Commander, opts ...workflow.Option) error {
			return schedules.Backfill(ctx, e, "digest", at(-2, 0), at(0, 0), opts...)
		}},
		{"update", func(e schedules.Commander, opts ...workflow.Option) error {
			_, err := schedules.Add(ctx, e, fresh, opts...)
			return err
		}},
		{"remove", func(e schedules.Commander, opts ...workflow.Option) error {
			return schedules.Remove(ctx, e, "digest", opts...)
		}},
	}
	for k, c := range commands {
		opts := []workflow.Option{workflow.Key("key of " + c.name), workflow.By("ann"), workflow.Because("a test")}
		require.NoError(t, c.send(b, opts...), c.name)
		if b.Drain(); c.name != "remove" {
			b.backfilled()
		}
		cases := b.cases()
		for _, before := range commands[:k+1] { // also after others
			opts[0] = workflow.Key("key of " + before.name)
			require.NoError(t, before.send(b, opts...), "%s after %s", before.name, c.name)
			require.Equal(t, cases, b.cases(), "%s after %s", before.name, c.name)
		}
		other := commands[(k+1)%len(commands)]
		once := &counted{Commander: b}
		require.ErrorIs(t, c.send(once, opts[0], workflow.By("bob")), workflow.ErrKeyReused, c.name)
		err := other.send(once, opts...)
		require.ErrorIs(t, err, workflow.ErrKeyReused, "%s with the key of %s", other.name, c.name)
		require.ErrorContains(t, err, `key "key of `+c.name+`" was first used for another command on schedule "digest"`)
		require.Equal(t, 2, once.commands, "each is tried once: it would be refused again")
	}
	require.ErrorIs(t, schedules.Remove(ctx, b, "digest", workflow.Key("another")), store.ErrNotFound)
}

// counted counts the commands that are executed.
type counted struct {
	schedules.Commander
	commands int
}

func (c *counted) Do(ctx context.Context, command workflow.Command) (workflow.Result, error) {
	c.commands++
	return c.Commander.Do(ctx, command)
}

// cases counts the cases that were started.
func (b *bench) cases() (n int) {
	b.t.Helper()
	for _, err := range store.AllCases(b.t.Context(), b, store.CaseFilter{}) {
		require.NoError(b.t, err)
		n++
	}
	return n
}

// The case that a removal ends has nothing that continues it: no completion is tried in vain, which would end as an incident.
func TestARemovedScheduleLeavesNoJob(t *testing.T) {
	b := newBench(t, hourly("digest"))
	require.NoError(t, schedules.Remove(t.Context(), b, "digest"))
	b.Drain()
	for j, err := range store.AllJobs(t.Context(), b, store.JobFilter{}) {
		require.NoError(t, err)
		require.False(t, j.Ended.IsZero(), "%s job %s: %s", j.State, j.Name, j.Failure)
	}
}

// The command that starts a schedule is remembered by its key as the others are, though its case ends with the first tick.
func TestAnAddThatStartedAScheduleIsKnownByItsKey(t *testing.T) {
	b, ctx := newBench(t), t.Context()
	every := func(d time.Duration) workflow.Scheduled {
		return builder.Schedule(schedule.Schedule{Name: "digest", Every: d}, b.f, "x")
	}
	add := func(d time.Duration, opts ...workflow.Option) error {
		_, err := schedules.Add(ctx, b, every(d), opts...)
		b.Drain()
		return err
	}
	key, by := workflow.Key("k"), workflow.By("ann")
	require.NoError(t, add(time.Hour, key, by))
	for range 3 {
		b.Advance(90 * time.Minute)
		cases := b.cases()
		require.NoError(t, add(time.Hour, key, by))
		require.Equal(t, cases, b.cases(), "sent again it does nothing")
		for _, err := range []error{add(2*time.Hour, key, by), add(time.Hour, key), schedules.Pause(ctx, b, "digest", key, by)} {
			require.ErrorIs(t, err, workflow.ErrKeyReused)
			require.ErrorContains(t, err, `key "k" was first used to add schedule "digest"`)
		}
		_, err := schedules.AddCommand(ctx, b, every(2*time.Hour), key, by)
		require.ErrorIs(t, err, workflow.ErrKeyReused)
		_, err = schedules.CommandFor(ctx, b, "digest", "pause", time.Time{}, time.Time{}, key)
		require.ErrorIs(t, err, workflow.ErrKeyReused)
		require.Equal(t, cases, b.cases())
	}
	require.NoError(t, add(2*time.Hour), "without a key it is an update")
	require.NoError(t, add(time.Hour, key, by))
	found, err := schedules.Find(ctx, b, "digest")
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, found.Schedule.Every, "and sent again it takes back no update")
}
