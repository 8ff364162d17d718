package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/recipes/order"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The defaults of [OrderOptions].
const (
	DefaultOrderDB = "tasq-order.db"
	orderAttempts  = 5 // in all
)

// OrderOptions configure the demo of an order. With the zero value saving succeeds at once; the command line lets it
// fail twice.
type OrderOptions struct {
	Setting
	Failures int // how often saving the order fails; with five failures the order fails
}

// RunOrder runs the recipe order on a file: a customer is charged and gets a mail, and the order is saved, which fails
// first. It continues the cases that are running in the file, starts one if there is none, and returns when they have
// ended. When the context ends, it stops at once and returns the error of the context; the cases stay in the file.
func RunOrder(ctx context.Context, out io.Writer, o OrderOptions) error {
	o.DB = cmp.Or(o.DB, DefaultOrderDB)
	p := &process{Setting: o.Setting, stepDemo: &orderDemo{o: o}, name: "order", out: out}
	return p.run(ctx)
}

// books has the saved orders.
var books = domain.Collection[string, order.Receipt]{Name: "orders"}

// orderDemo implements stepDemo and order.Shop.
type orderDemo struct {
	o        OrderOptions
	services *services
	recipe   *order.Recipe
}

func (p *orderDemo) workflow(w *services) (_ engine.Workflow, err error) {
	p.services = w
	p.recipe, err = order.New(p, retry.Exponential(orderAttempts, p.o.waits(time.Second)))
	return p.recipe, err
}

func (p *orderDemo) start(ctx context.Context, e *engine.Engine) (workitem.CaseID, error) {
	return p.recipe.Start(ctx, e, order.Order{ID: "A-" + rand.Text()[:6], Email: "ann@example.com", Cents: 49_90},
		workflow.By("demo"))
}

func (p *orderDemo) title(input json.RawMessage) (about, title string) {
	o, err := domain.Restore[order.Order](input)
	if err != nil {
		return "", string(input)
	}
	return o.ID, fmt.Sprintf("order %s of %s, %s", o.ID, o.Email, euros(o.Cents))
}

func euros(cents int64) string { return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100) }

func (p *orderDemo) parts() []part {
	return []part{{order.StepCharge, "bank"}, {order.StepConfirm, "mail server"}, {order.StepSave, "shop"}}
}

// Charge implements order.Shop.
func (p *orderDemo) Charge(ctx context.Context, key string, o order.Order) (string, error) {
	c, err := p.services.call(ctx, call{Party: "bank", About: o.ID, Key: key}, idempotent("ch-"))
	return c.Says, err
}

// Confirm implements order.Shop.
func (p *orderDemo) Confirm(ctx context.Context, key string, o order.Order) (string, error) {
	c, err := p.services.call(ctx, call{Party: "mail server", About: o.ID, Key: key}, idempotent("m-"))
	return c.Says, err
}

// Save implements order.Shop. It fails after the write, so that the write is rolled back.
func (p *orderDemo) Save(ctx context.Context, db domain.DB, r order.Receipt) error {
	if err := books.Put(ctx, db, r.Order, r); err != nil {
		return err
	}
	c, err := p.services.log.record(call{Party: "shop", About: r.Order}, failFirst(p.o.Failures, "saved"))
	if err == nil && !c.Did {
		err = workitem.Failf("busy", "the shop's books are closed for now")
	}
	return err
}

func (p *orderDemo) result(s *workitem.Step, about string) string {
	switch s.Name {
	case order.StepCharge:
		return p.answered("bank", about, s.Result, "charged, as %s", "charged")
	case order.StepConfirm:
		return p.answered("mail server", about, s.Result, "mailed, as %s", "mailed")
	case order.StepSave:
		return "saved"
	}
	return ""
}

// answered describes the answer of a service, and its calls if there were several.
func (p *orderDemo) answered(party, about string, result json.RawMessage, format, did string) string {
	reference, err := domain.Restore[string](result)
	if err != nil {
		return string(result)
	}
	text := fmt.Sprintf(format, reference)
	if called, n := p.services.log.count(party, about); called > 1 {
		text += fmt.Sprintf(" (called %s, %s %s)", times(called), did, times(n))
	}
	return text
}

func (p *orderDemo) live(context.Context, *process, *progress) error { return nil }

func (p *orderDemo) summary(ctx context.Context, e *engine.Engine, s *progress) (string, error) {
	_, charged := p.services.log.count("bank", s.about)
	_, mailed := p.services.log.count("mail server", s.about)
	saved := 0
	err := e.View(ctx, func(r store.Reader) error {
		has, err := books.Has(ctx, r.DB(), s.about)
		if has {
			saved = 1
		}
		return err
	})
	return fmt.Sprintf("The customer was charged %s and got %s; the order was saved %s, and tried %s.",
		times(charged), count(mailed, "mail"), times(saved), times(s.attempt)), err
}

func (p *orderDemo) explore(id workitem.CaseID) []string {
	return []string{
		fmt.Sprintf("tasq items -d %s --case %s", printable.Word(database.Of(p.o.DB).Name()), id),
		recordsOf(p.o.DB, books.Name),
	}
}
