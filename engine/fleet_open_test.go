package engine_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// slowOpener opens a store whose first view takes as long as the test likes.
type slowOpener struct {
	store.Opener
	goOn chan struct{}
}

type slowFleet struct {
	*postgres.Store
	once sync.Once
	goOn chan struct{}
}

func (o slowOpener) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := o.Opener.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &slowFleet{Store: s.(*postgres.Store), goOn: o.goOn}, nil
}

func (s *slowFleet) View(ctx context.Context, f func(store.Reader) error) error {
	s.once.Do(func() { <-s.goOn })
	return s.Store.View(ctx, f)
}

// An engine whose opening takes long sends heartbeats meanwhile, or the others would declare it dead. There is no other one here, as a busy
// machine might delay a heartbeat.
func TestAnEngineThatTakesLongToOpenStaysAlive(t *testing.T) {
	f := newFleet(t)
	o := slowOpener{postgres.Open(f.dsn), make(chan struct{})}
	opened := make(chan error, 1)
	var e *engine.Engine
	go func() {
		var err error
		e, err = engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), o, release("1"))
		opened <- err
	}()
	f.until("SELECT count(*) FROM tasq.processes WHERE state = 'live'", exactly(1))
	id := f.sql("SELECT max(id)::int FROM tasq.processes")
	for range 3 {
		f.sql("UPDATE tasq.pulses SET beat = beat - interval '1 hour'")
		f.until("SELECT count(*) FROM tasq.pulses WHERE clock_timestamp() - beat < interval '30 min'", exactly(1))
	}
	close(o.goOn)
	require.NoError(t, <-opened)
	require.Equal(t, id, f.sql("SELECT max(id)::int FROM tasq.processes"))
	require.Equal(t, `completed: "1: 5"`, ends(t, e, sent(t, e)))
	require.NoError(t, e.Close())
}
