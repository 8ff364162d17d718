package bizretry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/recipes/bizretry"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// company answers each charge with the next of its answers, the last one again and again, and keeps a diary.
type company struct {
	clock   retry.Clock
	mu      sync.Mutex // workers are many
	answers []error
	diary   []string
}

var noFunds = workitem.Failf(bizretry.Declined, "no funds")

func (c *company) note(format string, args ...any) {
	day := c.clock.Now().Sub(virtual.Epoch).Hours() / 24
	c.diary = append(c.diary, fmt.Sprintf("day %2.0f: ", day)+fmt.Sprintf(format, args...))
}

func (c *company) Charge(context.Context, bizretry.Renewal) (bizretry.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	c.note("charge: %v", answer)
	return bizretry.Receipt{Reference: "R-1"}, answer
}

func (c *company) Write(_ context.Context, l bizretry.Letter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("letter %d to %s", l.Attempt, l.Customer)
	return nil
}

func (c *company) Suspend(context.Context, bizretry.Renewal) (struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("suspend")
	return struct{}{}, nil
}

// A customer whose account stays empty for two weeks. The clock is a virtual one; in a test of your own, it comes with
// enginetest.New.
func Example() {
	ctx, clock := context.Background(), virtual.NewClock()
	company := &company{clock: clock, answers: []error{noFunds}}
	recipe, err := bizretry.New(company)
	if err != nil {
		panic(err)
	}
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), recipe)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	id, err := recipe.Start(ctx, e, bizretry.Renewal{Customer: "Ann", Cents: 9_90})
	if err != nil {
		panic(err)
	}
	if err := clock.Advance(ctx, e, 30*24*time.Hour); err != nil {
		panic(err)
	}
	slices.Sort(company.diary) // what is due at one moment is done side by side
	for _, line := range company.diary {
		fmt.Println(line)
	}
	c, err := e.Wait(ctx, id)
	fmt.Println("the case is", c.State, err)
	// Output:
	// day  0: charge: declined: no funds
	// day  0: letter 1 to Ann
	// day  3: charge: declined: no funds
	// day  3: letter 2 to Ann
	// day  8: charge: declined: no funds
	// day  8: letter 3 to Ann
	// day 15: charge: declined: no funds
	// day 15: letter 4 to Ann
	// day 15: suspend
	// the case is completed <nil>
}

// charge runs a renewal for a while, and returns its work items.
func charge(t *testing.T, d time.Duration, answers ...error) ([]string, state.CaseState) {
	t.Helper()
	c := &company{answers: answers}
	recipe, err := bizretry.New(c)
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	c.clock = e.Clock()
	id, err := recipe.Start(t.Context(), e, bizretry.Renewal{Customer: "Ann", Cents: 9_90}, workflow.By("calendar"))
	require.NoError(t, err)
	e.Advance(d)
	k, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	return e.States(id), k.State
}

func TestACustomerWhoPaysLaterKeepsTheSubscription(t *testing.T) {
	items, ended := charge(t, 72*time.Hour, noFunds, nil)
	require.Equal(t, []string{"charge.1.1 failed", "charge.1.2 completed"}, items)
	require.Equal(t, state.CaseCompleted, ended)
}

func TestACallToAnUnreachableBankIsRetried(t *testing.T) {
	items, ended := charge(t, 3*time.Second, errors.New("no line"), errors.New("no line"), nil)
	require.Equal(t, []string{"charge.1.1 failed", "charge.1.2 failed", "charge.1.3 completed"}, items)
	require.Equal(t, state.CaseCompleted, ended)
}

func TestARefusalIsNotHurried(t *testing.T) {
	items, ended := charge(t, 71*time.Hour, noFunds)
	require.Equal(t, []string{"charge.1.1 failed", "charge.1.2 initialized"}, items)
	require.Equal(t, state.CaseStarted, ended, "a refusal with a further attempt ahead ends nothing")
}

func TestAStolenCardIsNotChargedAgain(t *testing.T) {
	items, ended := charge(t, time.Hour, workitem.Fatal(workitem.Failf(bizretry.Declined, "card stolen")))
	require.Equal(t, []string{"charge.1.1 failed", "suspend.1.1 completed"}, items)
	require.Equal(t, state.CaseCompleted, ended)
}
