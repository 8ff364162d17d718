package postgres

import (
	"context"
	"errors"
)

// Drop removes a schema of the store with everything in it. It does nothing if the schema does not exist. Stop all
// engines that have it open first. The error wraps [store.ErrUnavailable] if the server cannot be reached.
func Drop(ctx context.Context, dsn string, opts ...Option) error {
	db, err := Open(dsn, opts...).(opener).database()
	if err != nil {
		return err
	}
	c, err := db.connect(ctx)
	if err != nil {
		return db.explain(err)
	}
	err = c.transaction(ctx, func() error { return c.exec(ctx, "SET LOCAL lock_timeout = '5s'; DROP SCHEMA IF EXISTS @ CASCADE") })
	return errors.Join(db.explain(err), c.close())
}
