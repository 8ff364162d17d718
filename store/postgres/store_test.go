package postgres_test

import (
	"testing"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) })
}

func TestFleet(t *testing.T) {
	t.Parallel()
	storetest.RunFleet(t, func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) })
}
