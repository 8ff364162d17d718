package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A setting that means nothing is refused before the store is opened, since somebody relies on it. The error names the field, its value, and what is
// allowed.
func TestAConfigurationThatMeansNothingIsRefused(t *testing.T) {
	for want, cfg := range map[string]engine.Config{
		"Config.Lease is -1s: give 100ms or more, or 0 for 30s":                           {Lease: -time.Second},
		"Config.Lease is 1ms: give 100ms or more, or 0 for 30s":                           {Lease: time.Millisecond},
		"Config.CallbackTimeout is -1ns: give more than 0, or 0 for 10s":                  {CallbackTimeout: -1},
		"Config.Grace is -1m0s: give more than 0, or 0 for 10s":                           {Grace: -time.Minute},
		"Config.Aging is -1ns: give more than 0, or 0 for no aging":                       {Aging: -1},
		"Config.MaxRunning is -3: give 1 or more, or 0 for no limit":                      {MaxRunning: -3},
		"Config.CacheCases is -1: give 1 or more, or 0 for 10000":                         {CacheCases: -1},
		"Config.MaxPayload is -1: give 1 or more bytes, or 0 for 1048576":                 {MaxPayload: -1},
		"Config.MaxPayload is 1048577 bytes, and no payload has more than 1048576":        {MaxPayload: domain.MaxSize + 1},
		`Config.MaxPending of queue "mail" is -1: give 0 or more`:                         {MaxPending: map[string]int{"mail": -1}},
		"the name of a queue of Config.MaxPending: invalid text: not UTF-8":               {MaxPending: map[string]int{"\xff": 1}},
		"the name of a queue of Config.Queues: invalid text: it contains a NUL":           {Queues: map[string]int{"\x00": 1}},
		"the owner of Config.Owner: invalid text: it contains a NUL":                      {Owner: "\x00"},
		`Config.Limits: invalid limit "db": N is -1: use 0 to pause, or up to 1000000000`: {Limits: []limit.Limit{limit.Resource("db", -1)}},
	} {
		_, err := cfg.Open(t.Context(), notOpened{t})
		require.ErrorIs(t, err, engine.ErrConfig)
		require.Equal(t, "bad-config", engine.Code(err))
		require.ErrorContains(t, err, want)
	}
	cfg := engine.Config{Lease: 100 * time.Millisecond, CallbackTimeout: time.Second, Grace: 1, Aging: 1, MaxRunning: 1, CacheCases: 1, MaxPayload: 1000,
		Workers: -1, Steps: -1, Queues: map[string]int{"": 1, "mail": -1}, MaxPending: map[string]int{"": 0}}
	e, err := cfg.Open(t.Context(), sqlite.Memory())
	require.NoError(t, err, "what the fields allow")
	require.NoError(t, e.Close())
}

// notOpened is a store that must not be opened.
type notOpened struct{ t *testing.T }

func (n notOpened) Open(context.Context, store.Options) (store.Store, error) {
	n.t.Error("the store is opened")
	return nil, errors.New("it is not to be opened")
}

// A nil context is a mistake of the program, and a panic that says so.
func TestANilContextPanicsWithItsFunction(t *testing.T) {
	e := opened(t)
	var none context.Context
	for of, call := range map[string]func(){
		"engine.Open":              func() { _, _ = engine.Open(none, sqlite.Memory()) },
		"Engine.Do":                func() { _, _ = e.Do(none, workflow.Queues()) },
		"Engine.Update":            func() { _ = e.Update(none, func(*engine.Tx) error { return nil }) },
		"Engine.View":              func() { _ = e.View(none, func(store.Reader) error { return nil }) },
		"Acquire of engine.Limits": func() { _, _ = engine.Limits(e).Acquire(none) },
	} {
		require.PanicsWithValue(t, "tasq: "+of+" is given a nil context: pass that of the caller, or context.Background()", call)
	}
}
