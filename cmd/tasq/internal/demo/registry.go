package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/approval"
	"github.com/tasq-dev/tasq/recipes/bizretry"
	"github.com/tasq-dev/tasq/recipes/compensate"
	"github.com/tasq-dev/tasq/recipes/deferredchoice"
	"github.com/tasq-dev/tasq/recipes/fanout"
	"github.com/tasq-dev/tasq/recipes/loop"
	"github.com/tasq-dev/tasq/recipes/nested"
	"github.com/tasq-dev/tasq/recipes/onboarding"
	"github.com/tasq-dev/tasq/recipes/order"
	"github.com/tasq-dev/tasq/recipes/timeout"
	"github.com/tasq-dev/tasq/retry"
)

// Registry returns the workflows of all recipes, so that a command can start their cases and act on their work items,
// in databases that a demo created (see [Made]). It does not include the services, such as banks and models: open the
// engine with engine.Config{Workers: -1}, so that it runs no jobs and leaves them to the program with the services. A
// job that is run nevertheless fails with an error that says so.
func Registry() ([]engine.Workflow, error) {
	var all []engine.Workflow
	var problems []error
	add := func(w engine.Workflow, err error) {
		all, problems = append(all, w), append(problems, err)
	}
	add(airetry.New(absent{}, retry.Exponential(5, time.Second)))
	add(approval.New(office{}, 5_000))
	add(bizretry.New(company{}))
	add(compensate.New(agency{}, agency{}, agency{}))
	add(deferredchoice.New(missing[deferredchoice.Offer, struct{}], deferredchoice.Valid))
	add(fanout.New())
	add(loop.New(bureau{}, 90, 5))
	add(nested.New())
	add(onboarding.New(absent{}, onboarding.Times{Verify: DefaultTimeout}))
	add(newPurchasing(absent{}, time.Second))
	add(order.New(absent{}, retry.Exponential(orderAttempts, time.Second)))
	add(timeout.New(timeout.Office, missing[timeout.Question, struct{}]))
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("recipes: %w", err)
	}
	return all, nil
}

// errMissing is the error of all services here.
var errMissing = errors.New("this program has no connection to the party that does this work; run the program that has")

func missing[In, Out any](context.Context, In) (Out, error) {
	var none Out
	return none, errMissing
}

type absent struct{}

func (absent) Complete(context.Context, string) (chat.Reply, error) { return chat.Reply{}, errMissing }

func (absent) Charge(context.Context, string, order.Order) (string, error) { return "", errMissing }

func (absent) Confirm(context.Context, string, order.Order) (string, error) { return "", errMissing }

func (absent) Save(context.Context, domain.DB, order.Receipt) error { return errMissing }

func (absent) Welcome(context.Context, onboarding.Letter) error { return errMissing }

func (absent) Generate(context.Context, onboarding.Person) (string, error) { return "", errMissing }

func (absent) price(ctx context.Context, p purchase) (price, error) {
	return missing[purchase, price](ctx, p)
}

func (absent) buy(ctx context.Context, p price) (parcel, error) {
	return missing[price, parcel](ctx, p)
}

type office struct{}

func (office) Pay(ctx context.Context, c approval.Claim) (approval.Payment, error) {
	return missing[approval.Claim, approval.Payment](ctx, c)
}

func (office) Notify(ctx context.Context, r approval.Rejection) (struct{}, error) {
	return missing[approval.Rejection, struct{}](ctx, r)
}

type company struct{}

func (company) Charge(ctx context.Context, r bizretry.Renewal) (bizretry.Receipt, error) {
	return missing[bizretry.Renewal, bizretry.Receipt](ctx, r)
}

func (company) Write(context.Context, bizretry.Letter) error { return errMissing }

func (company) Suspend(ctx context.Context, r bizretry.Renewal) (struct{}, error) {
	return missing[bizretry.Renewal, struct{}](ctx, r)
}

type agency struct{}

func (agency) Book(ctx context.Context, t compensate.Trip) (compensate.Booking, error) {
	return missing[compensate.Trip, compensate.Booking](ctx, t)
}

func (agency) Cancel(ctx context.Context, b compensate.Booking) (struct{}, error) {
	return missing[compensate.Booking, struct{}](ctx, b)
}

type bureau struct{}

func (bureau) Translate(ctx context.Context, r loop.Round) (loop.Translation, error) {
	return missing[loop.Round, loop.Translation](ctx, r)
}

func (bureau) Proofread(ctx context.Context, t loop.Translation) (loop.Marks, error) {
	return missing[loop.Translation, loop.Marks](ctx, t)
}
