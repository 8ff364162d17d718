package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workitem"
)

// ticking is a clock on which a microsecond goes by whenever somebody looks at it.
type ticking struct {
	*virtual.Clock
	looks atomic.Int64
}

func (c *ticking) Now() time.Time {
	return c.Clock.Now().Add(time.Duration(c.looks.Add(1)) * time.Microsecond)
}

func TestATimeoutIsNamedAsItWasAskedFor(t *testing.T) {
	never, _ := function(t, "never", func(ctx context.Context, _ string) (string, error) {
		return step.Await[string](ctx, "tomorrow")
	})
	waits, _ := function(t, "waits", func(ctx context.Context, event string) (string, error) {
		return step.Await[string](ctx, event, step.Timeout(20*time.Millisecond))
	})
	calls, _ := function(t, "calls", func(ctx context.Context, in string) (string, error) {
		return step.Call[string](ctx, "child", never.Name, in, step.Timeout(20*time.Millisecond))
	})
	clock := &ticking{Clock: virtual.NewClock()}
	e, err := engine.Config{Clock: clock}.Open(t.Context(), sqlite.Memory(), never, waits, calls)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()

	first, err := waits.Start(t.Context(), e, "paid")
	require.NoError(t, err)
	second, err := calls.Start(t.Context(), e, "x")
	require.NoError(t, err)
	require.NoError(t, e.Drain(t.Context()))
	clock.Set(clock.Now().Add(30 * time.Millisecond))
	require.NoError(t, e.Drain(t.Context()))

	for _, id := range []workitem.CaseID{first, second} {
		c, err := e.Case(t.Context(), id)
		require.NoError(t, err)
		require.NotNil(t, c.Failure)
		require.True(t, strings.HasSuffix(c.Failure.Message, " within 20ms"), c.Failure.Message)
	}
}

// Whatever becomes of a step, its name is said once.
func TestAnErrorNamesItsStepOnce(t *testing.T) {
	broke := errors.New("broke")
	child, _ := function(t, "child", func(context.Context, string) (string, error) { return "", broke })
	inBranch := func(ctx context.Context, f func(context.Context) (string, error)) error {
		return step.All(ctx, step.Go(ctx, f), step.Go(ctx, func(context.Context) (string, error) { return "", nil }))
	}
	do := func(f func(context.Context) (string, error)) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return step.Do(ctx, "it", f) }
	}
	tx := func(f func(context.Context, domain.DB) (string, error)) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return step.Tx(ctx, "it", f) }
	}
	fails := func(context.Context) (string, error) { return "", broke }
	long := func(context.Context) (string, error) { return strings.Repeat("x", 200), nil }
	for name, test := range map[string]struct {
		does func(context.Context) (string, error)
		want string
	}{
		"do":         {do(fails), `error: step "it": broke`},
		"do, a code": {do(func(context.Context) (string, error) { return "", &workitem.Failure{Code: "no-funds"} }), `no-funds: step "it"`},
		"do, too long": {do(long), `too-large: step "it": the result has 202 bytes, and the limit is 100; ` +
			`store it elsewhere and return its address`},
		"tx": {tx(func(context.Context, domain.DB) (string, error) { return "", broke }), `error: step "it": broke`},
		"tx, SQL": {tx(func(ctx context.Context, db domain.DB) (string, error) {
			_, err := db.ExecContext(ctx, "DELETE FROM nothing")
			return "", err
		}), ``},
		"tx, not encodable": {func(ctx context.Context) (string, error) {
			_, err := step.Tx(ctx, "it", func(context.Context, domain.DB) (any, error) { return make(chan int), nil })
			return "", err
		}, ``},
		"await": {func(ctx context.Context) (string, error) { return step.Await[string](ctx, "it", step.Timeout(0)) },
			`timeout: step "it": event "it" did not come within 0s`},
		"call":            {func(ctx context.Context) (string, error) { return step.Call[string](ctx, "it", "child", "") }, ``},
		"call, not there": {func(ctx context.Context) (string, error) { return step.Call[string](ctx, "it", "nobody", "") }, ``},
		"in a branch": {func(ctx context.Context) (string, error) { return "", inBranch(ctx, do(fails)) },
			`error: step "it": broke`},
		"a transaction in a branch": {func(ctx context.Context) (string, error) {
			return "", inBranch(ctx, tx(func(context.Context, domain.DB) (string, error) { return "", broke }))
		}, `error: step "it": broke`},
		"a call in a branch": {func(ctx context.Context) (string, error) {
			return "", inBranch(ctx, func(ctx context.Context) (string, error) { return step.Call[string](ctx, "it", "child", "") })
		}, ``},
		"the same name twice": {func(ctx context.Context) (string, error) {
			if _, err := step.Do(ctx, "it", long); err != nil {
				return "", err
			}
			return step.Do(ctx, "it", long)
		}, ``},
		"a step in a step": {do(func(ctx context.Context) (string, error) { return step.Do(ctx, "inner", fails) }), ``},
	} {
		t.Run(name, func(t *testing.T) {
			var said error
			w, _ := function(t, "w", func(ctx context.Context, _ string) (string, error) {
				s, err := test.does(ctx)
				if !errors.Is(err, step.ErrSuspended) {
					said = err
				}
				return s, err
			})
			e := enginetest.Open(t, enginetest.Store(t), engine.Config{MaxPayload: 100}, w, child)
			id := start(t, e, w, "")
			got := outcome(t, e, id)
			t.Log(got)
			t.Log(said)
			require.Equal(t, 1, strings.Count(got, `step "it"`), got)
			require.Equal(t, 1, strings.Count(said.Error(), `step "it"`), said.Error())
			if test.want != "" {
				require.Equal(t, "failed: "+test.want, got)
			}
		})
	}
}
