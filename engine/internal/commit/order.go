package commit

import (
	"cmp"
	"slices"
)

// A worker starts with a claim before it is committed, so what it records may be in the same transaction. If that is rolled back, the record
// must not run before the claim: it would be refused, as the job has no worker then.
//
//	batch: claim, record ──▶ the connection ends as the record runs: it is to run alone
//	batch: claim         ──▶ the case has changed: the claim is to run alone, too
//	claim ──▶ record         in the order in which they first ran

// inOrder sorts requests by when they first ran.
func inOrder(requests []*Request) {
	slices.SortStableFunc(requests, func(a, b *Request) int { return cmp.Compare(a.number, b.number) })
}

// splitAfter returns the requests that first ran before a given one, and those that ran after it: these must not run again before it does.
func splitAfter(requests []*Request, r *Request) (before, after []*Request) {
	for _, other := range requests {
		if other.number > r.number {
			after = append(after, other)
		} else {
			before = append(before, other)
		}
	}
	return before, after
}
