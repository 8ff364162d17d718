package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
)

// ErrForeign is the error for a database of another program, in which a demo must not register its recipes.
var ErrForeign = errors.New("the database belongs to another program")

// claims marks a database as one of a demo. A record has the name of the demo that created it.
var claims = domain.Collection[string, bool]{Name: "tasq-demo"}

const claimed = "claimed"

// Made reports whether a demo created the database, so that the recipes can run on it.
func Made(ctx context.Context, r store.Reader) (bool, error) { return claims.Has(ctx, r.DB(), claimed) }

// Claim marks the database as one of the demo, if it is new or has no workflows yet. The error wraps [ErrForeign] if it
// has those of another program. Call it before an engine registers the recipes: if the process dies in between, the
// next one must not take the database for that of another program.
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
