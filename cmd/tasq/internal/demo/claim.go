package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
)

// ErrForeign is for a database that another program made: the demo's recipes are kept out of it.
var ErrForeign = errors.New("the database belongs to another program")

// claims is the collection by which a database of the demo is known: a record says which demo made it.
var claims = domain.Collection[string, bool]{Name: "tasq-demo"}

const claimed = "claimed"

// Made reports whether a demo made the database, so that the recipes may run on it.
func Made(ctx context.Context, r store.Reader) (bool, error) { return claims.Has(ctx, r.DB(), claimed) }

// Claim makes the database one of the demo, if it is new or holds no workflow yet. The error wraps [ErrForeign] if it
// holds those of another program. It is called before an engine registers the recipes, so that a process that dies
// between leaves nothing that the next one would take for another program's.
func Claim(ctx context.Context, o store.Opener) (err error) {
	s, err := o.Open(ctx, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	made, foreign := false, ""
	err = s.View(ctx, func(r store.Reader) error {
		if made, err = Made(ctx, r); err != nil {
			return err
		}
		defs, err := r.Definitions(ctx)
		if len(defs) > 0 {
			foreign = defs[0].Name
		}
		return err
	})
	switch {
	case err != nil || made:
		return err
	case foreign != "":
		return fmt.Errorf("%w: it holds the workflow %s, and the demo keeps its own apart; give it another file with -d",
			ErrForeign, foreign)
	}
	return s.Update(ctx, func(tx store.Tx) error { return claims.Put(ctx, tx.DB(), claimed, true) })
}
