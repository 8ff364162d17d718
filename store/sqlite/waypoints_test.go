package sqlite

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workitem"
)

// The histories of these tests are short, and have waypoints nevertheless.
func init() { wayApart = 2 }

// A waypoint lies as far after a position as was asked for; walks that follow replace what they have met again.
func TestWaypointsLieBehindWhatIsAskedFor(t *testing.T) {
	var p waypoints
	root := workitem.CaseID{1}
	p.note(root, []int64{1, 2, 3})
	require.Zero(t, p.beyond(root, 0, 1), "the walk was short")
	p.note(root, []int64{10, 20, 30, 40, 50, 60, 70, 80, 90}) // waypoints at 20, 40, 60, 80
	require.EqualValues(t, 40, p.beyond(root, 0, 1))
	require.EqualValues(t, 40, p.beyond(root, 19, 2))
	require.EqualValues(t, 60, p.beyond(root, 20, 2), "the one at the position is not after it")
	require.EqualValues(t, 80, p.beyond(root, 35, 4))
	require.Zero(t, p.beyond(root, 60, 3), "there are not so many")
	require.Zero(t, p.beyond(root, 60, math.MaxInt), "nor as many as there can be")
	p.note(root, []int64{50, 60, 70, 80, 90, 100, 110, 120}) // 20, 40, and 60, 80, 100, 120
	require.EqualValues(t, 120, p.beyond(root, 81, 2))
	require.EqualValues(t, 60, p.beyond(root, 30, 2))
	for i := range byte(wayRoots) {
		p.note(workitem.CaseID{2, i}, []int64{1, 2, 3, 4, 5, 6, 7, 8})
	}
	require.Zero(t, p.beyond(root, 0, 1), "others were used since")
	require.Len(t, p.roots, wayRoots)
}

// What lies between two walks that began at the newest entry then is walked once: that leaves waypoints too, and those behind are kept.
func TestWaypointsBetweenTwoWalks(t *testing.T) {
	var p waypoints
	root := workitem.CaseID{1}
	count := func(from, to int64) (all []int64) {
		for seq := from; seq <= to; seq++ {
			all = append(all, seq)
		}
		return all
	}
	p.note(root, count(1, 8))       // 2, 4, 6, 8
	p.note(root, count(1001, 1100)) // and 1002, 1004, ...
	require.EqualValues(t, 1004, p.beyond(root, 8, 1), "what lies between was never walked")
	p.note(root, count(9, 1004))
	require.EqualValues(t, 12, p.beyond(root, 8, 1))
	require.EqualValues(t, 1008, p.beyond(root, 1004, 1))
}
