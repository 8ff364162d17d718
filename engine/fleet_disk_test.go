package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// The disk with a table of the user is full for more statements than a function has attempts. The step is tried again until there is space, as
// if the table were one of Tasq: no attempt fails, and each effect is there once. A caller gets the error.
func TestAFullDiskFailsNoStep(t *testing.T) {
	f := newFleet(t)
	f.sql("CREATE TABLE effects (n int)")
	f.sql("CREATE SEQUENCE inserts")
	f.sql("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('inserts') < 7 THEN " +
		"RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$")
	f.sql("CREATE TRIGGER full_disk BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION full_disk()")
	insert := func(ctx context.Context, db domain.DB) (int, error) {
		_, err := db.ExecContext(ctx, "INSERT INTO effects VALUES (1)")
		return 1, err
	}
	saves, _ := function(t, "saves", func(ctx context.Context, _ int) (int, error) { return step.Tx(ctx, "save", insert) })
	e := f.open(engine.Config{Workers: 2}, saves)
	err := e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := insert(t.Context(), tx.DB())
		return err
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "the disk of the server is full, so nothing of this happened; free some space there and try again")
	r, err := e.Do(t.Context(), workflow.Start("saves", []byte("0")))
	require.NoError(t, err)
	require.Equal(t, "completed: 1", ends(t, e, r.Case))
	require.Equal(t, 1, f.sql("SELECT count(*) FROM effects"))
	require.Equal(t, 1, f.sql("SELECT count(*) FROM tasq.work_items"), "attempts")
	require.Equal(t, 7, f.sql("SELECT last_value::int FROM inserts"))
}
