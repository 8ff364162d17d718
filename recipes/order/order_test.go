package order_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/order"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var books = domain.Collection[string, order.Receipt]{Name: "orders"}

// shop prints its calls. Saving fails as often as failures says.
type shop struct {
	failures int
	declined bool
	cutOff   chan struct{} // closed in the middle of the first call, which does not return
	told     func(format string, args ...any)
	keys     []string // of every call outside
}

func (s *shop) Charge(ctx context.Context, key string, o order.Order) (string, error) {
	s.keys = append(s.keys, key)
	if s.cutOff != nil && len(s.keys) == 1 {
		close(s.cutOff)
		<-ctx.Done()
		return "", ctx.Err()
	}
	if s.declined {
		return "", workitem.Fatal(workitem.Failf("declined", "the bank does not pay for %s", o.Email))
	}
	s.told("the bank charges %d cents", o.Cents)
	return "ch-1", nil
}

func (s *shop) Confirm(_ context.Context, key string, o order.Order) (string, error) {
	s.keys = append(s.keys, key)
	s.told("a mail goes to %s", o.Email)
	return "m-1", nil
}

func (s *shop) Save(ctx context.Context, db domain.DB, r order.Receipt) error {
	if err := books.Put(ctx, db, r.Order, r); err != nil {
		return err
	}
	if s.failures--; s.failures >= 0 {
		s.told("the order cannot be saved")
		return errors.New("the books are closed")
	}
	s.told("the order is saved")
	return nil
}

var pens = order.Order{ID: "A-1", Email: "ann@example.com", Cents: 49_90}

// Saving the order fails twice. The customer is charged once, and gets one mail.
func Example() {
	ctx := context.Background()
	s := &shop{failures: 2, told: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	recipe := must(order.New(s, retry.Exponential(5, time.Millisecond)))
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, pens))
	c := must(e.Wait(ctx, id))
	fmt.Println("the case is", c.State, "with", string(c.Output))
	// Output:
	// the bank charges 4990 cents
	// a mail goes to ann@example.com
	// the order cannot be saved
	// the order cannot be saved
	// the order is saved
	// the case is completed with {"order":"A-1","charge":"ch-1","message":"m-1"}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// run starts an order on an engine whose clock does not advance.
func run(t *testing.T, s *shop) (*enginetest.Engine, *order.Recipe, workitem.CaseID) {
	t.Helper()
	s.told = t.Logf
	recipe, err := order.New(s, retry.Exponential(3, time.Second))
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, pens)
	require.NoError(t, err)
	e.Drain()
	return e, recipe, id
}

func saved(t *testing.T, e *enginetest.Engine) (n int) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		n, err = books.Count(t.Context(), r.DB())
		return err
	}))
	return n
}

func TestRolledBackOrderIsNotSaved(t *testing.T) {
	s := &shop{failures: 1}
	e, _, _ := run(t, s)
	require.Zero(t, saved(t, e))
	e.Advance(time.Second)
	require.Equal(t, 1, saved(t, e))
	require.Len(t, s.keys, 2)
}

func TestTheKeyOfACallIsTheSameInEveryProcess(t *testing.T) {
	s := &shop{failures: 1}
	e, recipe, id := run(t, s)
	e.Crash(recipe)
	e.Advance(time.Second)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Len(t, s.keys, 2, "a crash between two attempts repeats nothing")
	require.NotEqual(t, s.keys[0], s.keys[1], "each step has its own")

	_, err = recipe.Start(t.Context(), e, pens)
	require.NoError(t, err)
	e.Drain()
	require.NotContains(t, s.keys[:2], s.keys[2], "each case has its own")
}

// The process dies when the bank has been called, and nothing of that is recorded yet.
func TestACallThatWasCutOffIsMadeAgainWithItsKey(t *testing.T) {
	s := &shop{cutOff: make(chan struct{}), told: t.Logf}
	recipe, err := order.New(s, retry.Policy{Attempts: 2})
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, pens)
	require.NoError(t, err)
	<-s.cutOff
	e.Crash()
	e.Drain()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Len(t, s.keys, 3)
	require.Equal(t, s.keys[0], s.keys[1], "by which the bank knows that it has been paid")
}

func TestADeclinedCardEndsIt(t *testing.T) {
	s := &shop{declined: true}
	e, _, id := run(t, s)
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "declined", c.Failure.Code)
	require.Len(t, s.keys, 1, "no mail")
	require.Zero(t, saved(t, e))
}

func TestTheLastFailureFailsTheCase(t *testing.T) {
	s := &shop{failures: 9}
	e, _, id := run(t, s)
	e.Advance(time.Hour)
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, 9-3, s.failures, "three attempts in all")
	require.Len(t, s.keys, 2, "one charge and one mail all the same")
}
