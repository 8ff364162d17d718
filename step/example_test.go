package step_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// Order is what the examples are about.
type Order struct {
	ID     string
	Amount int
	Email  string
}

// Receipt says what became of it.
type Receipt struct{ Charge string }

// The outside world of the examples. The database is down for the first two calls.
type world struct{ down int }

func (w *world) charge(_ context.Context, amount int, key string) (string, error) {
	fmt.Println("charged", amount, "once for", len(key) == 32)
	return "ch_1", nil
}

func (w *world) mail(_ context.Context, to string) (bool, error) {
	fmt.Println("mailed", to)
	return true, nil
}

func (w *world) save(context.Context, string) (bool, error) {
	if w.down--; w.down >= 0 {
		fmt.Println("the database is down")
		return false, errors.New("connection refused")
	}
	fmt.Println("saved")
	return true, nil
}

func (w *world) order(ctx context.Context, o Order) (Receipt, error) {
	charge, err := step.Do(ctx, "charge", func(ctx context.Context) (string, error) {
		return w.charge(ctx, o.Amount, step.Key(ctx, "charge"))
	})
	if err != nil {
		return Receipt{}, err
	}
	_, err = step.Do(ctx, "mail", func(ctx context.Context) (bool, error) { return w.mail(ctx, o.Email) })
	if err != nil {
		return Receipt{}, err
	}
	_, err = step.Do(ctx, "save", func(ctx context.Context) (bool, error) { return w.save(ctx, charge) },
		step.Retry(retry.Exponential(4, time.Minute)))
	return Receipt{charge}, err
}

// The order is saved at the third attempt. The customer is charged once, and gets one mail.
func Example() {
	w := &world{down: 2}
	job := steptest.New()
	out := job.Drive(context.Background(), func(ctx context.Context) error {
		receipt, err := w.order(ctx, Order{"A7", 20, "ann@example.com"})
		if err == nil {
			fmt.Println("receipt", receipt.Charge)
		}
		return err
	})
	fmt.Println(out.Err, "after", job.Now().Sub(job.Step("charge").Created))
	// Output:
	// charged 20 once for true
	// mailed ann@example.com
	// the database is down
	// the database is down
	// saved
	// receipt ch_1
	// <nil> after 3m0s
}

// In a process, the function is the Run of a task. Resume hands what was done to the next attempt of the item.
func Example_task() {
	w := &world{}
	b := builder.New[Order]("order")
	pay := builder.Task(b, "pay", builder.Work[Order, Receipt]{
		Input:                  builder.CaseInput(b),
		Run:                    w.order,
		OnWorkItemStateChanged: activities.Resume(retry.Exponential(5, time.Second)),
	})
	b.Path(b.Start(), pay, b.End())
	orders, err := b.Build()
	fmt.Println(orders.Name, err)
	// Output: order <nil>
}

// A test runs a function on a clock of its own, without an engine.
func Example_test() {
	ctx := context.Background()
	reminder := func(ctx context.Context) error {
		_, err := step.Await[bool](ctx, "read", step.Timeout(30*24*time.Hour))
		return err
	}
	job := steptest.New()
	out := job.Run(ctx, reminder) // until it must wait
	fmt.Println(out.Suspended)
	job.Advance(29 * 24 * time.Hour)
	fmt.Println(job.Ready())
	_ = job.Send("read", true)
	out = job.Run(ctx, reminder) // again, from the first line
	fmt.Println(out.Suspended, out.Err)
	fmt.Print(job)
	// Output:
	// true
	// false
	// false <nil>
	// read event done
}

// What fn writes, and that it was done, are committed together.
func ExampleTx() {
	enter := func(ctx context.Context, amount int) error {
		_, err := step.Tx(ctx, "enter", func(ctx context.Context, db domain.DB) (int, error) {
			_, err := db.ExecContext(ctx, "INSERT INTO ledger (amount) VALUES (?)", amount)
			return amount, err
		})
		return err
	}
	job := steptest.New() // which has no database
	fmt.Println(job.Run(context.Background(), func(ctx context.Context) error { return enter(ctx, 7) }).Err)
	// Output: step "enter": error: steptest: the job has no DB
}

func ExampleTimeout() {
	slow := func(ctx context.Context) (int, error) {
		<-ctx.Done() // a service that never answers
		return 0, ctx.Err()
	}
	out := steptest.New().Run(context.Background(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "ask", slow, step.Timeout(time.Millisecond))
		fmt.Println(errors.Is(err, step.ErrTimeout))
		return err
	})
	fmt.Println(out.Err)
	// Output:
	// true
	// step "ask": timeout: not done within 1ms: context deadline exceeded
}

// A receipt for 10 does not pass for one for 20.
func ExampleInput() {
	amount := 10
	charge := func(ctx context.Context) error {
		_, err := step.Do(ctx, "charge", func(context.Context) (string, error) { return "ch_1", nil },
			step.Input(amount))
		if err != nil {
			return err
		}
		return step.Sleep(ctx, "a while", time.Hour)
	}
	job := steptest.New()
	job.Run(context.Background(), charge)
	amount = 20
	err := job.Run(context.Background(), charge).Err
	fmt.Println(errors.Is(err, step.ErrChanged))
	// Output: true
}

func ExampleNow() {
	invoice := func(ctx context.Context) error {
		date, err := step.Now(ctx, "invoice date")
		if err != nil {
			return err
		}
		fmt.Println(date.Format(time.DateOnly))
		return step.Sleep(ctx, "a month", 30*24*time.Hour)
	}
	steptest.New().Drive(context.Background(), invoice)
	// Output:
	// 2030-01-01
	// 2030-01-01
}

// A loop names its steps by what each is about.
func ExampleDo() {
	syncUsers := func(ctx context.Context) error {
		users, err := step.Do(ctx, "fetch users", func(context.Context) ([]string, error) {
			return []string{"ann", "bob"}, nil
		})
		if err != nil {
			return err
		}
		for _, user := range users {
			_, err := step.Do(ctx, "sync "+user, func(context.Context) (int, error) {
				fmt.Println("sync", user)
				return 0, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	job := steptest.New()
	job.CrashAt(3, false) // before "sync bob" is recorded
	fmt.Println(job.Drive(context.Background(), syncUsers).Err)
	// Output:
	// sync ann
	// sync bob
	// sync bob
	// <nil>
}

// Code branches on the code of a failure, which is the same on every replay.
func ExampleError() {
	pay := func(ctx context.Context) error {
		_, err := step.Do(ctx, "pay", func(context.Context) (int, error) {
			return 0, &workitem.Failure{Code: "no-funds", Message: "the account is empty"}
		})
		var failed *step.Error
		if errors.As(err, &failed) && failed.Failure.Code == "no-funds" {
			fmt.Println("ask for another card")
			return nil
		}
		return err
	}
	fmt.Println(steptest.New().Run(context.Background(), pay).Err)
	// Output:
	// ask for another card
	// <nil>
}

func ExampleSleep() {
	remind := func(ctx context.Context) error {
		if err := step.Sleep(ctx, "a day", 24*time.Hour); err != nil {
			return err
		}
		fmt.Println("reminded")
		return nil
	}
	job := steptest.New()
	fmt.Println("suspended:", job.Run(context.Background(), remind).Suspended)
	job.Advance(24 * time.Hour)
	fmt.Println("suspended:", job.Run(context.Background(), remind).Suspended)
	// Output:
	// suspended: true
	// reminded
	// suspended: false
}

func ExampleAwait() {
	checkout := func(ctx context.Context) error {
		paid, err := step.Await[int](ctx, "paid", step.Timeout(24*time.Hour))
		switch {
		case errors.Is(err, step.ErrTimeout):
			fmt.Println("not paid in time")
			return nil
		case err != nil:
			return err
		}
		fmt.Println("paid", paid)
		return nil
	}
	job := steptest.New()
	job.Run(context.Background(), checkout)
	_ = job.Send("paid", 20)
	job.Run(context.Background(), checkout)

	job = steptest.New()
	job.Drive(context.Background(), checkout)
	// Output:
	// paid 20
	// not paid in time
}

func ExampleCall() {
	fulfil := func(ctx context.Context) error {
		parcel, err := step.Call[string](ctx, "ship", "shipping", Order{ID: "A7"})
		var child *step.ChildError
		switch {
		case errors.As(err, &child) && child.State == workitem.StepCanceled:
			fmt.Println("shipping was canceled")
			return nil
		case errors.As(err, &child):
			fmt.Println("shipping failed:", child.Failure)
			return nil
		case err != nil:
			return err
		}
		fmt.Println("sent as", parcel)
		return nil
	}
	job := steptest.New()
	job.Run(context.Background(), fulfil)
	_ = job.Complete("ship", "P-1")
	job.Run(context.Background(), fulfil)

	job = steptest.New()
	job.Run(context.Background(), fulfil)
	_ = job.Fail("ship", workitem.Failf("no-stock", "none left"))
	job.Run(context.Background(), fulfil)
	// Output:
	// sent as P-1
	// shipping failed: no-stock: none left
}

func ExampleToken() {
	approve := func(ctx context.Context) error {
		token, err := step.Token(ctx, "approval link", "approved")
		if err != nil {
			return err
		}
		_, err = step.Do(ctx, "mail the link", func(ctx context.Context) (bool, error) {
			fmt.Println("mailed a link with a token:", token != "")
			return true, nil
		})
		if err != nil {
			return err
		}
		ok, err := step.Await[bool](ctx, "approved")
		if err == nil {
			fmt.Println("approved:", ok)
		}
		return err
	}
	job := steptest.New()
	job.Run(context.Background(), approve)
	_ = job.Send("approved", true)
	job.Run(context.Background(), approve)
	// Output:
	// mailed a link with a token: true
	// approved: true
}

func ExampleAll() {
	gather := func(ctx context.Context) error {
		price := step.Go(ctx, func(ctx context.Context) (int, error) {
			return step.Do(ctx, "price", func(context.Context) (int, error) { return 20, nil })
		})
		stock := step.Go(ctx, func(ctx context.Context) (int, error) {
			return step.Await[int](ctx, "counted")
		})
		if err := step.All(ctx, price, stock); err != nil {
			return err
		}
		p, _ := price.Wait(ctx)
		s, _ := stock.Wait(ctx)
		fmt.Println(p, s)
		return nil
	}
	job := steptest.New()
	job.Run(context.Background(), gather)
	_ = job.Send("counted", 3)
	job.Run(context.Background(), gather)
	// Output: 20 3
}

func ExampleRace() {
	ask := func(ctx context.Context) error {
		answer := step.Go(ctx, func(ctx context.Context) (string, error) { return step.Await[string](ctx, "answer") })
		patience := step.Go(ctx, func(ctx context.Context) (bool, error) {
			return true, step.Sleep(ctx, "patience", time.Hour)
		})
		first, err := step.Race(ctx, "answered?", answer, patience)
		if err != nil {
			return err
		}
		if first == 1 {
			fmt.Println("no answer in an hour")
			return nil
		}
		text, err := answer.Wait(ctx)
		fmt.Println(text)
		return err
	}
	job := steptest.New()
	job.Drive(context.Background(), ask)
	// Output: no answer in an hour
}

func ExampleMap() {
	cities := []string{"Oslo", "Rome", "Lima"}
	weather := func(ctx context.Context) error {
		all, err := step.Map(ctx, cities, 2, func(ctx context.Context, _ int, city string) (string, error) {
			return step.Do(ctx, "weather in "+city, func(context.Context) (string, error) { return city + ": fine", nil })
		})
		fmt.Println(all)
		return err
	}
	steptest.New().Run(context.Background(), weather)
	// Output: [Oslo: fine Rome: fine Lima: fine]
}

// Jobs that began before there were two approvals end as they began.
func ExampleVersion() {
	old := func(ctx context.Context) error {
		_, err := step.Await[bool](ctx, "approved")
		return err
	}
	approvals := func(ctx context.Context) error {
		v, err := step.Version(ctx, "two approvals", 1)
		if err != nil {
			return err
		}
		if _, err := step.Await[bool](ctx, "approved"); err != nil {
			return err
		}
		if v >= 1 {
			if _, err := step.Await[bool](ctx, "approved", step.Named("approved again")); err != nil {
				return err
			}
		}
		fmt.Println("approved, version", v)
		return nil
	}
	job := steptest.New()
	job.Run(context.Background(), old)
	_ = job.Send("approved", true)
	job.Run(context.Background(), approvals)

	job = steptest.New()
	_ = job.Send("approved", true)
	_ = job.Send("approved", true)
	job.Run(context.Background(), approvals)
	// Output:
	// approved, version 0
	// approved, version 1
}

func ExampleRand() {
	pick := func(ctx context.Context) error {
		fmt.Println(step.Rand(ctx, "who").IntN(1000))
		return step.Sleep(ctx, "a while", time.Hour)
	}
	job := steptest.New()
	job.Info.Key = "draw 7"
	job.Drive(context.Background(), pick)
	// Output:
	// 988
	// 988
}

// A function of many steps gives its worker back when it is wanted, and continues later where it was.
func ExampleYield() {
	mails := []string{"ada", "ben", "cid"}
	send := func(to string) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			fmt.Println("to", to)
			return 0, nil
		}
	}
	sendAll := func(ctx context.Context) error {
		for i, mail := range mails {
			if err := step.Yield(ctx); err != nil {
				return err
			}
			if _, err := step.Do(ctx, fmt.Sprint("mail ", i), send(mail)); err != nil {
				return err
			}
		}
		return nil
	}
	job, asked := steptest.New(), 0
	job.Info.Yield = func() bool { asked++; return asked == 3 } // an engine asks whether it closes
	fmt.Println("yielded:", job.Run(context.Background(), sendAll).Yielded)
	fmt.Println("yielded:", job.Run(context.Background(), sendAll).Yielded)
	// Output:
	// to ada
	// to ben
	// yielded: true
	// to cid
	// yielded: false
}
