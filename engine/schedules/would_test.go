package schedules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
)

// What a command on a schedule would start is said before it is sent, and is what it starts then.
func TestWhatACommandOnAScheduleWouldStart(t *testing.T) {
	s := hourly("digest")
	s.Overlap = schedule.OverlapAllow
	b := newBench(t, s)
	would := func(what string) string {
		t.Helper()
		words, err := b.info("digest").Would(what, at(2, 0), at(9, 0), b.Now())
		require.NoError(t, err)
		require.Len(t, words, 1)
		return words[0]
	}
	day := at(0, 0).Format("2006-01-02 ")
	require.Equal(t, "7 runs of digest, all at once, but for ticks that have a run: "+day+"02:00:00 UTC, "+day+"03:00:00 UTC, "+day+"04:00:00 UTC, "+
		day+"05:00:00 UTC, "+day+"06:00:00 UTC and 2 more", would("backfill"))
	require.Equal(t, "a run of digest starts now", would("run"))
	require.Equal(t, "it is not paused", would("resume"))
	next := "the tick of " + day + "01:00:00 UTC"
	require.Equal(t, "no run starts from now on, also "+next+" does not", would("pause"))
	require.Equal(t, "no run starts from now on; "+next+" is dropped, and 0 ticks that wait", would("remove"))
	require.NoError(t, schedules.Backfill(t.Context(), b, "digest", at(2, 0), at(9, 0)))
	b.Drain()
	require.Len(t, b.calls.take(), 7)

	require.NoError(t, schedules.Pause(t.Context(), b, "digest"))
	require.Equal(t, "it is paused already", would("pause"))
	require.Equal(t, "the next run is that of "+next, would("resume"))
	require.Contains(t, would("backfill"), "all at once, once the schedule is resumed")
	words, err := b.info("digest").Would("backfill", at(0, 1), at(0, 2), b.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"no run starts: the period has no tick"}, words)
	words, err = b.info("digest").Would("backfill", at(0, 0), at(24*60, 0), b.Now())
	require.NoError(t, err)
	require.Contains(t, words[0], "it is refused: the period has more than 1000 ticks")
}
