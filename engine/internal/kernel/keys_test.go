package kernel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// others are the other root cases with a business key.
type others struct {
	holders []workitem.CaseID
	live    map[workitem.CaseID]bool
	starts  []store.KeyStart
}

func (o *others) KeyHolders(*state.Case) ([]workitem.CaseID, error)          { return o.holders, nil }
func (o *others) KeyStarts(*state.Case, time.Time) ([]store.KeyStart, error) { return o.starts, nil }
func (o *others) IsLive(id workitem.CaseID) (bool, error)                    { return o.live[id], nil }
func (o *others) require(r workflow.KeyRequirements) *keys                   { return &keys{cases: o, required: r} }

// rootCase is a root case with a business key.
func rootCase(id byte, key string) *state.Case {
	c := &state.Case{ID: workitem.CaseID{id}, Workflow: "w", Key: key}
	c.Root = c.ID
	return c
}

// A key is unique if the definition or the start says so, and then one case holds it.
func TestKeysAreHeldByOneCase(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	o := &others{holders: []workitem.CaseID{{1}}}
	free := rootCase(2, "C-1")
	require.NoError(t, o.require(workflow.KeyRequirements{}).claim(free, false, now, true))
	require.False(t, free.Unique)

	var taken *workflow.KeyTakenError
	require.ErrorAs(t, o.require(workflow.KeyRequirements{}).claim(rootCase(2, "C-1"), true, now, true), &taken)
	require.Equal(t, workitem.CaseID{1}, taken.Case)
	require.ErrorAs(t, o.require(workflow.KeyRequirements{Unique: true}).claim(rootCase(2, "C-1"), false, now, true), &taken)
	except := workflow.KeyRequirements{Unique: true, Except: []workitem.CaseID{{1}}}
	require.NoError(t, o.require(except).claim(rootCase(2, "C-1"), false, now, true))

	none := rootCase(2, "")
	require.NoError(t, o.require(workflow.KeyRequirements{}).claim(none, true, now, true))
	require.False(t, none.Unique, "a case without a key holds none")
	require.ErrorIs(t, o.require(workflow.KeyRequirements{Unique: true}).claim(none, true, now, true), workflow.ErrBadCommand)
}

// The window of a start is part of its key.
func TestKeysHaveTheirWindow(t *testing.T) {
	c := rootCase(2, "C-1")
	k := new(others).require(workflow.KeyRequirements{Unique: true, Window: "2026-11-23"})
	require.NoError(t, k.claim(c, false, time.Time{}, true))
	require.Equal(t, "C-1 2026-11-23", c.Key)
	require.True(t, c.Unique)
}

// A queued case waits while another one is live, unless it takes over steps, which cannot wait.
func TestKeysAreQueued(t *testing.T) {
	queued := workflow.KeyRequirements{Unique: true, Queued: true}
	o := &others{holders: []workitem.CaseID{{1}, {3}}, live: map[workitem.CaseID]bool{{1}: true}}
	k := o.require(queued)
	require.NoError(t, k.claim(rootCase(4, "C-1"), false, time.Time{}, true))
	require.True(t, k.mustWait)

	var taken *workflow.KeyTakenError
	require.ErrorAs(t, o.require(queued).claim(rootCase(4, "C-1"), false, time.Time{}, false), &taken)

	o.live = nil
	k = o.require(queued)
	require.NoError(t, k.claim(rootCase(4, "C-1"), false, time.Time{}, true))
	require.False(t, k.mustWait, "those before it have ended")

	o.live = map[workitem.CaseID]bool{{3}: true}
	require.ErrorIs(t, o.require(queued).claim(rootCase(2, "C-1"), false, time.Time{}, true), ErrBefore)
}

// A throttled key has so many starts within a window, and says when the next one is possible.
func TestKeysAreThrottled(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	o := &others{starts: []store.KeyStart{{Case: workitem.CaseID{1}, At: now.Add(-50 * time.Minute)}}}
	limit := workflow.KeyRequirements{Throttle: 2, Within: time.Hour}
	require.NoError(t, o.require(limit).claim(rootCase(4, "C-1"), false, now, true))
	o.starts = append(o.starts, store.KeyStart{Case: workitem.CaseID{2}, At: now.Add(-5 * time.Minute)})
	var throttled *workflow.ThrottledError
	require.ErrorAs(t, o.require(limit).claim(rootCase(4, "C-1"), false, now, true), &throttled)
	require.Equal(t, 10*time.Minute, throttled.Wait)
	require.Equal(t, workitem.CaseID{2}, throttled.Case)
	require.ErrorIs(t, o.require(limit).claim(rootCase(4, ""), false, now, true), workflow.ErrBadCommand)
}
