// Package onboarding is the recipe for a function that waits for a user. A person who signs up gets a welcome mail
// with a link and has until a deadline to follow it, gets a page written by a model that is often busy, and, a
// little later, an account.
//
// While the function waits, for the person, for the model's next attempt, or for a time, it is not in memory:
// it returns, and is called again from its first line when the wait is over; completed steps return their
// recorded results. The link holds a token, with which its holder can send one event, once (see
// admin.Webhook). If the person follows the link before the function waits for the event, the event is kept.
package onboarding

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// Verified is the name of the event that the person brings about.
const Verified = "emailVerified"

// The steps, in their order. The wait for the event is a step of the event's name.
const (
	StepLink     = "verification-link"
	StepWelcome  = "send-welcome"
	StepGenerate = "generate-content"
	StepPause    = "pause"
	StepComplete = "complete-onboarding"
)

// Accounts are the people who have come to the end.
var Accounts = domain.Collection[string, Account]{Name: "accounts"}

// Person is who signs up.
type Person struct {
	ID    string `json:"id"    validate:"required"`
	Email string `json:"email" validate:"required"`
}

// Letter is the welcome mail. The holder of the token verifies the address.
type Letter struct {
	Person Person
	Token  string
	Key    string // for the mail server, which sends one mail for each key
}

// Account is what is written in the end, the result of a case.
type Account struct {
	Person  Person    `json:"person"`
	Content string    `json:"content" validate:"required"`
	Since   time.Time `json:"since"`
}

// World is what the function needs from outside. Both are called at least once.
type World interface {
	Welcome(context.Context, Letter) error
	Generate(context.Context, Person) (string, error)
}

// Times says how long things take.
type Times struct {
	Verify time.Duration // how long a person has to verify the address; then the case fails with the code "not-verified"
	Pause  time.Duration // between the page and the account
	Retry  retry.Policy  // of the model
}

// New defines the workflow.
func New(w World, t Times) (*builder.Workflow[Person], error) {
	b := builder.New[Person]("onboarding", builder.Describe("a person signs up, and verifies an address"))
	whole := builder.Task(b, "onboard", builder.Work[Person, Account]{
		Input: builder.CaseInput(b),
		Run:   func(ctx context.Context, p Person) (Account, error) { return onboard(ctx, w, t, p) },
	})
	b.Path(b.Start(), whole, b.End())
	b.Result(builder.Output(whole))
	return b.Build()
}

func onboard(ctx context.Context, w World, t Times, p Person) (Account, error) {
	none := Account{}
	token, err := step.Token(ctx, StepLink, Verified)
	if err != nil {
		return none, err
	}
	_, err = step.Do(ctx, StepWelcome, func(ctx context.Context) (any, error) {
		return nil, w.Welcome(ctx, Letter{Person: p, Token: token, Key: step.Key(ctx, StepWelcome)})
	})
	if err != nil {
		return none, err
	}
	_, err = step.Await[any](ctx, Verified, step.Timeout(t.Verify))
	if errors.Is(err, step.ErrTimeout) {
		return none, workitem.Fatal(workitem.Failf("not-verified", "%s was not verified within %s", p.Email, t.Verify))
	}
	if err != nil {
		return none, err
	}
	content, err := step.Do(ctx, StepGenerate, func(ctx context.Context) (string, error) { return w.Generate(ctx, p) },
		step.Retry(t.Retry))
	if err != nil {
		return none, err
	}
	if err := step.Sleep(ctx, StepPause, t.Pause); err != nil {
		return none, err
	}
	since, err := step.Now(ctx, "since")
	if err != nil {
		return none, err
	}
	return step.Tx(ctx, StepComplete, func(ctx context.Context, db domain.DB) (Account, error) {
		a := Account{Person: p, Content: content, Since: since}
		return a, Accounts.Put(ctx, db, p.ID, a)
	})
}
