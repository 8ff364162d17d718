package cli

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/store"
)

// neighbours are ids of one kind that follow one another in the database, lowest first: what an id is shortened to depends on the id
// before it and the id after it. In a list of all rows, the next id that is asked for is that after the last one, so more and more
// ids are read at a time:
//
//	asked for   read                 ids
//	3           2; 4                 2 3 4
//	4           3; 5 6               3 4 5 6
//	5                                         (known)
//	6           5; 7 8 9 10          5 6 7 8 9 10
type neighbours struct {
	ids         []string
	first, last bool // there is none before them, or after them
	ahead       int  // how many were read in the direction of the list
}

// maxAhead bounds how many ids are read at a time; they are read with their rows.
const maxAhead = 512

// short returns the shortest form of an id that distinguishes it from all others of its kind, by whole parts.
func (b *neighbours) short(ctx context.Context, r store.Finder, kind idKind, text string) (string, error) {
	i, found := slices.BinarySearch(b.ids, text)
	if !found || i == 0 && !b.first || i == len(b.ids)-1 && !b.last {
		if err := b.read(ctx, r, kind, text, found && i == 0, found && i > 0); err != nil {
			return text, err
		}
		i, _ = slices.BinarySearch(b.ids, text)
	}
	n := 1
	if i > 0 {
		n = max(n, 1+same(text, b.ids[i-1]))
	}
	if i < len(b.ids)-1 {
		n = max(n, 1+same(text, b.ids[i+1]))
	}
	for _, whole := range idParts {
		if n <= whole {
			return text[:whole], nil
		}
	}
	return text, nil
}

// read replaces the ids by those around one; down and up say in which direction the list continues, if it is known.
func (b *neighbours) read(ctx context.Context, r store.Finder, kind idKind, text string, down, up bool) error {
	below, above := 1, 1
	if b.ahead = min(2*b.ahead, maxAhead); !down && !up {
		b.ahead = 1
	}
	if down {
		below = b.ahead
	} else {
		above = b.ahead
	}
	lower, err := kind.page(ctx, r, store.Page{After: text, Desc: true, Limit: below})
	if err != nil {
		return err
	}
	higher, err := kind.page(ctx, r, store.Page{After: text, Limit: above})
	if err != nil {
		return err
	}
	b.ids, b.first, b.last = b.ids[:0], len(lower) < below, len(higher) < above
	for _, c := range slices.Backward(lower) {
		b.ids = append(b.ids, c.id)
	}
	b.ids = append(b.ids, text)
	for _, c := range higher {
		b.ids = append(b.ids, c.id)
	}
	return nil
}
