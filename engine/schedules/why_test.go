package schedules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
)

// A schedule whose workflow no open engine has says so, before its tick is due and after: the doctor lists it, with the repair.
func TestAScheduleSaysThatNoEngineHasItsWorkflow(t *testing.T) {
	b := newBench(t, hourly("digest"))
	prints := []string{b.f.Untyped().Fingerprint, b.s.Untyped().Fingerprint}
	explain := func(here why.Here) why.Wait {
		t.Helper()
		var answer *why.Answer
		id := b.info("digest").Case
		require.NoError(t, b.View(t.Context(), func(r store.Reader) (err error) {
			answer, err = why.Read(t.Context(), r, id, b.Now(), here)
			return err
		}))
		require.Len(t, answer.Waits, 1)
		return answer.Waits[0]
	}
	// What a process without an engine knows.
	knows := func(prints ...string) why.Here {
		return why.Here{Known: func(f string) bool { return slices.Contains(prints, f) }, Opened: b.Now()}
	}
	stranded := func(here why.Here) (list []why.StrandedCase) {
		t.Helper()
		for s, err := range why.Stranded(t.Context(), b, why.Search{Now: b.Now(), Here: here}) {
			require.NoError(t, err)
			list = append(list, s)
		}
		return list
	}
	require.Empty(t, explain(b.Here()).Blocked)
	require.Empty(t, explain(knows(prints...)).Blocked)
	require.Empty(t, explain(why.Here{}).Blocked, "nothing is known of engines")
	require.Empty(t, stranded(b.Here()))

	check := func(here why.Here) {
		t.Helper()
		w := explain(here)
		require.Equal(t, why.NotLoaded, w.Blocked)
		require.Equal(t, &why.Missing{Workflow: "digest"}, w.Missing)
		require.Contains(t, w.Text, "no open engine has workflow digest, which it starts")
		found := stranded(here)
		require.Len(t, found, 1)
		require.Equal(t, why.CauseNotLoaded, found[0].Cause)
		require.Equal(t, "open an engine with workflow digest; tasq definitions shows it", found[0].Repair)
	}
	check(knows(prints[1]))
	b.Crash(b.s)
	check(b.Here())
	b.Advance(2 * time.Hour) // the engine that lacks the workflow tries the tick, and fails
	require.NotNil(t, b.info("digest").State.Latest.Error)
	check(b.Here())
	check(knows(prints[1]))

	b.Crash(b.f, b.s)
	b.Advance(time.Minute)
	require.Empty(t, explain(b.Here()).Blocked)
	require.Empty(t, stranded(b.Here()))
	require.NotEmpty(t, b.calls.take())
}
