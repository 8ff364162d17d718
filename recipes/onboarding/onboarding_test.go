package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/onboarding"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// world hands the letters out, and has a model that is busy for its first calls.
type world struct {
	letters chan onboarding.Letter
	busy    int
	calls   int
}

func (w *world) Welcome(_ context.Context, l onboarding.Letter) error {
	w.letters <- l
	return nil
}

func (w *world) Generate(_ context.Context, p onboarding.Person) (string, error) {
	if w.calls++; w.calls <= w.busy {
		return "", errors.New("too many people sign up")
	}
	return "Welcome, " + p.Email, nil
}

var ann = onboarding.Person{ID: "ann", Email: "ann@example.com"}

// Ann follows the link of her mail; the model is busy twice.
func Example() {
	ctx := context.Background()
	w := &world{letters: make(chan onboarding.Letter, 1), busy: 2}
	signUp := must(onboarding.New(w, onboarding.Times{
		Verify: 24 * time.Hour, Pause: time.Millisecond, Retry: retry.Exponential(4, time.Millisecond),
	}))
	e := must(engine.Open(ctx, sqlite.Memory(), signUp))
	defer e.Close()
	id := must(signUp.Start(ctx, e, ann))

	letter := <-w.letters
	fmt.Println("a mail goes to", letter.Person.Email)
	if err := enginetest.Do(ctx, e, workflow.SendToken(letter.Token, nil)); err != nil {
		log.Fatal(err)
	}
	c := must(e.Wait(ctx, id))
	fmt.Println("the case is", c.State, "after", w.calls, "calls of the model")
	// Output:
	// a mail goes to ann@example.com
	// the case is completed after 3 calls of the model
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func start(t *testing.T) (*enginetest.Engine, *world, *builder.Workflow[onboarding.Person], workitem.CaseID) {
	t.Helper()
	w := &world{letters: make(chan onboarding.Letter, 9), busy: 2}
	signUp, err := onboarding.New(w, onboarding.Times{
		Verify: 24 * time.Hour, Pause: time.Hour, Retry: retry.Exponential(3, time.Second),
	})
	require.NoError(t, err)
	enginetest.Sound(t, signUp)
	e := enginetest.New(t, signUp)
	id, err := signUp.Start(t.Context(), e, ann)
	require.NoError(t, err)
	e.Drain()
	return e, w, signUp, id
}

func account(t *testing.T, e *enginetest.Engine) (a onboarding.Account, err error) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		a, err = onboarding.Accounts.Get(t.Context(), r.DB(), "ann")
		return nil
	}))
	return a, err
}

func TestEachWaitOutlivesTheProcess(t *testing.T) {
	e, w, _, id := start(t)
	begun := e.Now()
	e.Crash()
	e.Advance(time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, onboarding.Verified, nil)))
	e.Drain()
	require.Equal(t, 1, w.calls)
	e.Crash() // before the model's second attempt
	e.Advance(time.Second)
	require.Equal(t, 2, w.calls)
	e.Advance(2 * time.Second)
	require.Equal(t, 3, w.calls)
	e.Crash() // in the pause
	e.Advance(time.Hour)
	a, err := account(t, e)
	require.NoError(t, err)
	require.Equal(t, begun.Add(2*time.Hour+3*time.Second), a.Since)
	require.Len(t, w.letters, 1, "one mail")
}

func TestLateVerificationFails(t *testing.T) {
	e, w, _, id := start(t)
	e.Advance(24 * time.Hour)
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "not-verified", c.Failure.Code)
	letter := <-w.letters
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken(letter.Token, nil)), engine.ErrNotFound, "the link is dead")
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(id, onboarding.Verified, nil)), engine.ErrInactive)
	_, err = account(t, e)
	require.Error(t, err)
}

func TestALinkServesOnce(t *testing.T) {
	e, w, _, _ := start(t)
	letter := <-w.letters
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SendToken(letter.Token, nil)))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken(letter.Token, nil)), engine.ErrNotFound)
	e.Advance(2 * time.Hour)
	_, err := account(t, e)
	require.NoError(t, err)
}

// A person may be faster than the function: the link is followed while the mail server has not answered yet.
func TestAnEventThatComesEarlyIsKept(t *testing.T) {
	e, w, signUp, _ := start(t)
	w.letters = make(chan onboarding.Letter)
	id, err := signUp.Start(t.Context(), e, onboarding.Person{ID: "bob", Email: "bob@example.com"})
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, onboarding.Verified, nil)))
	<-w.letters
	e.Drain()
	require.Equal(t, 1, w.calls, "the model is asked at once")
}
