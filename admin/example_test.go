package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The examples of docs/events.md are those of this file: a test compares them.

var memory = sqlite.Memory

// Order is what a customer wants.
type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// Payment is what a bank says.
type Payment struct {
	Cents int `json:"cents" validate:"gt=0"`
}

// open opens an engine on an empty database.
func open(workflows ...engine.Workflow) *engine.Engine {
	return must(engine.Open(context.Background(), sqlite.Memory(), workflows...))
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example_await() {
	ship := func(ctx context.Context, o Order) (string, error) {
		paid, err := step.Await[Payment](ctx, "paid")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is paid with %d", o.ID, paid.Cents), nil
	}

	order := builder.MustFunc("order", ship)
	e, ctx := open(order), context.Background()
	defer e.Close()
	run := must(order.Run(ctx, e, Order{ID: "A-1", Cents: 100}))
	_, err := e.Do(ctx, workflow.Send(run.ID, "paid", Payment{Cents: 100}))
	fmt.Println(must(run.Result(ctx, e)), err)

	_, err = e.Do(ctx, workflow.Send(run.ID, "paid", Payment{Cents: 100}))
	fmt.Println("after the end:", errors.Is(err, engine.ErrInactive))
	_, err = e.Do(ctx, workflow.Send(workitem.CaseID{1}, "paid", nil))
	fmt.Println("to nobody:", errors.Is(err, engine.ErrNotFound))
	// Output:
	// A-1 is paid with 100 <nil>
	// after the end: true
	// to nobody: true
}

func Example_inOrder() {
	collect := func(ctx context.Context, n int) ([]int, error) {
		var parts []int
		for i := range n {
			p, err := step.Await[Payment](ctx, "paid", step.Named(fmt.Sprintf("part %d", i+1)))
			if err != nil {
				return nil, err
			}
			parts = append(parts, p.Cents)
		}
		return parts, nil
	}

	instalments := builder.MustFunc("instalments", collect)
	e, ctx := open(instalments), context.Background()
	defer e.Close()
	run := must(instalments.Run(ctx, e, 3, workflow.After(10*time.Millisecond)))
	for _, cents := range []int{10, 20, 30} { // before anybody waits
		must(e.Do(ctx, workflow.Send(run.ID, "paid", Payment{Cents: cents})))
	}
	fmt.Println(run.Result(ctx, e))
	// Output: [10 20 30] <nil>
}

func Example_timeout() {
	remind := func(ctx context.Context, o Order) (string, error) {
		_, err := step.Await[Payment](ctx, "paid", step.Timeout(20*time.Millisecond))
		if errors.Is(err, step.ErrTimeout) {
			return "a reminder goes out", nil
		}
		return "paid", err
	}

	order := builder.MustFunc("order", remind)
	e, ctx := open(order), context.Background()
	defer e.Close()
	fmt.Println(must(order.Run(ctx, e, Order{ID: "A-1"})).Result(ctx, e))
	// Output: a reminder goes out <nil>
}

func Example_race() {
	wait := func(ctx context.Context, o Order) (string, error) {
		paid := step.Go(ctx, func(ctx context.Context) (Payment, error) {
			return step.Await[Payment](ctx, "paid")
		})
		canceled := step.Go(ctx, func(ctx context.Context) (string, error) {
			return step.Await[string](ctx, "canceled")
		})
		first, err := step.Race(ctx, "paid or canceled", paid, canceled)
		if err != nil {
			return "", err
		}
		return []string{"ship it", "forget it"}[first], nil
	}

	order := builder.MustFunc("order", wait)
	e, ctx := open(order), context.Background()
	defer e.Close()
	run := must(order.Run(ctx, e, Order{ID: "A-1"}))
	must(e.Do(ctx, workflow.Send(run.ID, "canceled", "by mistake")))
	fmt.Println(run.Result(ctx, e))
	// Output: forget it <nil>
}

func Example_topics() {
	listen := func(ctx context.Context, who string) (string, error) {
		rate, err := step.Await[float64](ctx, "rates", step.Topic())
		return fmt.Sprintf("%s has heard of %.2f", who, rate), err
	}
	record := func(ctx context.Context, rate float64) (string, error) {
		return fmt.Sprintf("%.2f is in the books", rate), nil
	}

	trader := builder.MustFunc("trader", listen)
	books := builder.MustFunc("books", record, builder.On("rates"))
	e, ctx := open(trader, books), context.Background()
	defer e.Close()
	run := must(trader.Run(ctx, e, "Ann"))
	check(e.Drain(ctx)) // until she waits
	reached, err := e.Do(ctx, workflow.Broadcast("rates", 1.25))
	fmt.Println(reached.Count, "are reached", err)
	fmt.Println(run.Result(ctx, e))

	reached, err = e.Do(ctx, workflow.Broadcast("weather", "rain"))
	fmt.Println(reached.Count, "are reached", err)
	// Output:
	// 2 are reached <nil>
	// Ann has heard of 1.25 <nil>
	// 0 are reached <nil>
}

func ExampleWebhook() {
	pay := func(ctx context.Context, o Order) (int, error) {
		token, err := step.Token(ctx, "link", "paid")
		if err != nil {
			return 0, err
		}
		_, err = step.Do(ctx, "ask for payment", func(ctx context.Context) (any, error) {
			return nil, mailTo(o, "https://shop.example/hooks/"+token)
		})
		if err != nil {
			return 0, err
		}
		paid, err := step.Await[Payment](ctx, "paid", step.Timeout(14*24*time.Hour))
		return paid.Cents, err
	}

	order := builder.MustFunc("order", pay)
	e, ctx := open(order), context.Background()
	defer e.Close()
	mux := http.NewServeMux()
	mux.Handle("POST /hooks/", http.StripPrefix("/hooks/", admin.Webhook(e, 64<<10)))

	run := must(order.Run(ctx, e, Order{ID: "A-1", Cents: 100}))
	path := strings.TrimPrefix(<-mails, "https://shop.example")
	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(`{"cents":100}`)))
		fmt.Println(w.Code)
	}
	fmt.Println(run.Result(ctx, e))
	// Output:
	// 202
	// 404
	// 100 <nil>
}

var mails = make(chan string, 1)

func mailTo(_ Order, link string) error {
	mails <- link
	return nil
}

func Example_idempotencyKey() {
	order := builder.MustFunc("order", func(ctx context.Context, o Order) (int, error) {
		paid, err := step.Await[Payment](ctx, "paid")
		return paid.Cents, err
	})
	e, ctx := open(order), context.Background()
	defer e.Close()
	run := must(order.Run(ctx, e, Order{ID: "A-1"}))

	for range 3 { // as a caller does who is not sure
		_, err := e.Do(ctx, workflow.Send(run.ID, "paid", Payment{Cents: 100}, workflow.Key("transfer 4711")))
		fmt.Println(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// 100 <nil>
}

func Example_remembered() {
	attempts := 0
	order := builder.MustFunc("order", func(ctx context.Context, o Order) (int, error) {
		paid, err := step.Await[Payment](ctx, "paid")
		if err != nil {
			return 0, err
		}
		if attempts++; attempts < 3 {
			return 0, errors.New("the warehouse does not answer")
		}
		return paid.Cents, nil
	})
	e, ctx := open(order), context.Background()
	defer e.Close()
	run := must(order.Run(ctx, e, Order{ID: "A-1"}, builder.Retry(func(p *retry.Policy) { p.Initial = time.Millisecond })))
	must(e.Do(ctx, workflow.Send(run.ID, "paid", Payment{Cents: 100})))
	fmt.Println(run.Result(ctx, e))
	fmt.Println("in attempt", attempts)
	// Output:
	// 100 <nil>
	// in attempt 3
}

func Example_transaction() {
	transfers := domain.Collection[string, Payment]{Name: "transfers"}
	order := builder.MustFunc("order", func(ctx context.Context, o Order) (int, error) {
		paid, err := step.Await[Payment](ctx, "paid")
		return paid.Cents, err
	})
	e, ctx := open(order), context.Background()
	defer e.Close()
	run := must(order.Run(ctx, e, Order{ID: "A-1"}))

	p := Payment{Cents: 100}
	err := e.Update(ctx, func(tx *engine.Tx) error {
		if err := transfers.Put(ctx, tx.DB(), "4711", p); err != nil {
			return err
		}
		_, err := tx.Do(ctx, workflow.Send(run.ID, "paid", p))
		return err
	})
	fmt.Println(err)
	fmt.Println(run.Result(ctx, e))
	// Output:
	// <nil>
	// 100 <nil>
}
