package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// listed is a reader of cases that counts the pages that are read.
type listed struct {
	store.Reader
	ids   []workitem.CaseID
	pages int
}

func (l *listed) Cases(_ context.Context, f store.CaseFilter) (found []*state.Case, err error) {
	l.pages++
	order := slices.Values(l.ids)
	if f.Desc {
		order = func(yield func(workitem.CaseID) bool) {
			for _, id := range slices.Backward(l.ids) {
				if !yield(id) {
					return
				}
			}
		}
	}
	for id := range order {
		if after := id.String() > f.After; len(found) < f.Limit && id.String() != f.After && after != f.Desc {
			found = append(found, &state.Case{ID: id})
		}
	}
	return found, nil
}

// shortest returns the short form of an id by a comparison with all others.
func (l *listed) shortest(id workitem.CaseID) string {
	for _, whole := range idParts {
		text := id.String()[:whole]
		if !slices.ContainsFunc(l.ids, func(other workitem.CaseID) bool { return other != id && other.String()[:whole] == text }) {
			return text
		}
	}
	return id.String()
}

// A list of all rows reads its short ids in pages, and not the neighbours of each one by itself; whatever the order, they are the shortest.
func TestShortIDsOfAListAreReadInPages(t *testing.T) {
	l := new(listed)
	for n := range 1500 {
		id, err := workitem.ParseID(fmt.Sprintf("0197a3c4-%04x-7%03x-8000-%012x", n/7, n/3%2, n))
		require.NoError(t, err)
		l.ids = append(l.ids, workitem.CaseID(id))
	}
	slices.SortFunc(l.ids, func(a, b workitem.CaseID) int { return strings.Compare(a.String(), b.String()) })
	want := make(map[workitem.CaseID]string)
	for _, id := range l.ids {
		want[id] = l.shortest(id)
	}
	backward, mixed := slices.Clone(l.ids), slices.Clone(l.ids)
	slices.Reverse(backward)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for name, c := range map[string]struct {
		order []workitem.CaseID
		most  int
	}{"forward": {l.ids, 30}, "backward": {backward, 30}, "mixed": {mixed, 2 * len(l.ids)}} {
		l.pages = 0
		n := namer{ctx: t.Context(), r: l}
		for _, id := range c.order {
			require.Equal(t, want[id], n.of(id), name)
		}
		require.NoError(t, n.err)
		require.LessOrEqual(t, l.pages, c.most, name)
	}
}

// The names of a long list are not all kept.
func TestNamesInMemoryAreBounded(t *testing.T) {
	var names map[workitem.CaseID]string
	for n := range 3 * maxNames {
		keep(&names, workitem.CaseID{byte(n), byte(n >> 8), byte(n >> 16)}, "x")
		require.LessOrEqual(t, len(names), maxNames)
	}
}
