package dispatch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/workitem"
)

// A heap gives out what it was given, the first first, however pushes and pops alternate.
func TestEntriesComeInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap entries
		var sorted []entry // what the heap holds
		for n := range rapid.IntRange(1, 40).Draw(t, "rounds") {
			for range rapid.IntRange(0, 300).Draw(t, "pushed") {
				n := entry{due: rapid.Int64Range(0, 50).Draw(t, "due"), job: workitem.JobID{byte(n), byte(len(sorted))}}
				heap.push(n, byDue)
				sorted = append(sorted, n)
			}
			slices.SortFunc(sorted, compareDue)
			for range rapid.IntRange(0, len(sorted)).Draw(t, "popped") {
				if got := heap.pop(byDue); compareDue(got, sorted[0]) != 0 {
					t.Fatalf("popped %v before %v", got, sorted[0])
				}
				sorted = sorted[1:]
			}
			if len(heap) != len(sorted) {
				t.Fatalf("%d entries of %d", len(heap), len(sorted))
			}
		}
	})
}

func compareDue(a, b entry) int {
	switch {
	case byDue(&a, &b):
		return -1
	case byDue(&b, &a):
		return 1
	}
	return 0
}

func TestEntriesGiveBackMemory(t *testing.T) {
	var heap entries
	for i := range 100_000 {
		heap.push(entry{due: int64(-i)}, byDue)
	}
	for range 99_000 {
		heap.pop(byDue)
	}
	require.Less(t, cap(heap), 10_000)
	require.Equal(t, int64(-999), heap[0].due)
}
