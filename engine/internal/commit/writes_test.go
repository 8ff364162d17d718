package commit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The indexes of a long list say what going through it would, after any additions, creations and cuts.
func TestWritesAgreeWithGoingThroughThem(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		ids := workitem.NewGenerator(rand.NewChaCha8([32]byte{byte(seed)}))
		var w writes
		var roots []workitem.CaseID
		var created []*state.Case // nil for one that is not created yet
		keys := []string{"", "a", "b", "c"}
		for range 60 {
			switch n := len(roots); {
			case random.IntN(12) == 0 && n > 0: // a savepoint is undone
				n = random.IntN(n + 1)
				w.cut(n)
				roots, created = roots[:n], created[:n]
			default:
				id := ids.NewCaseID(time.Unix(0, 0))
				c := &state.Case{ID: id, Root: id, Workflow: "w", Key: keys[random.IntN(len(keys))]}
				tree := &state.Tree{Root: id}
				if random.IntN(5) == 0 {
					c = nil
				} else {
					tree = state.NewTree(c)
				}
				w.add(&TreeWrite{Tree: tree})
				roots, created = append(roots, id), append(created, c)
			}
			for _, key := range keys {
				var want, got []workitem.CaseID
				for _, c := range created {
					if c != nil && c.Key == key {
						want = append(want, c.ID)
					}
				}
				for c := range w.withKey(businessKey{"w", key}) {
					got = append(got, c.ID)
				}
				require.Equal(t, want, got, "seed %d", seed)
			}
			for i, root := range roots {
				require.Same(t, w.list[i], w.of(root))
			}
			require.Nil(t, w.of(ids.NewCaseID(time.Unix(0, 0))))
			require.Len(t, w.list, len(roots))
		}
	}
}
