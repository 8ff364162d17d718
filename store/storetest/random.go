package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Random does one step of a random history, and reports what it did.
func (b *Batch) Random(rng *rand.Rand) {
	b.T.Helper()
	var live [][2]workitem.CaseID
	var ended workitem.CaseID
	for _, root := range b.known() {
		if b.tree(root).Ended() && !pending(b.tree(root)) {
			ended = root
		}
		b.tree(root).Each(func(c *state.Case) {
			if c.Workflow == "article" && c.State == state.CaseStarted {
				live = append(live, [2]workitem.CaseID{root, c.ID})
			}
		})
	}
	if n := rng.IntN(10); n < 2 || len(live) == 0 {
		b.Start(`{"n":` + string('0'+rune(n)) + `}`)
		return
	} else if n == 2 {
		b.StartIssue()
		return
	} else if n == 3 && !ended.IsZero() {
		b.Remove(ended)
		return
	}
	at := live[rng.IntN(len(live))]
	_, it, _ := b.live(at[0], at[1])
	switch {
	case rng.IntN(12) == 0 && b.tree(at[0]).Case(at[1]).Suspended != nil:
		b.ContinueCase(at[0], at[1])
	case rng.IntN(12) == 0:
		b.SuspendCase(at[0], at[1], []string{"", "an \"audit\""}[rng.IntN(2)])
	case it.State == workitem.Started && rng.IntN(2) == 0:
		b.randomStep(at[0], at[1], rng)
	case rng.IntN(20) == 0:
		b.Cancel(at[0], at[1], &workitem.Failure{Code: "stopped"})
	case it.State == workitem.Initialized:
		b.Claim(at[0], at[1])
	case rng.IntN(4) == 0:
		b.Fail(at[0], at[1], &workitem.Failure{Code: "io", Message: "connection lost", Retryable: true, Filtered: true,
			After: time.Second})
	default:
		b.Complete(at[0], at[1], `{"text":"…"}`, rng.IntN(3) == 0)
	}
}

// known lists the root cases that are under way, those of this batch among them, in the order of their creation.
func (b *Batch) known() []workitem.CaseID {
	roots := slices.Clone(b.Want.Roots)
	for _, e := range b.entries {
		if !slices.Contains(roots, e.Root) {
			roots = append(roots, e.Root)
		}
	}
	roots = slices.DeleteFunc(roots, func(root workitem.CaseID) bool { return slices.Contains(b.removed, root) })
	if len(roots) > 8 {
		roots = roots[len(roots)-8:]
	}
	return roots
}

// pending reports whether a tree has a job that is still to be done.
func pending(tree *state.Tree) bool {
	found := false
	tree.Each(func(c *state.Case) { found = found || c.Jobs.Len() > 0 })
	return found
}
