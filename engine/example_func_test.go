package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Purchase and Receipt are what goes into an action and comes out of it.
type Purchase struct {
	Order  string `json:"order" validate:"required"`
	Amount int    `json:"amount" validate:"gt=0"`
}

type Receipt struct {
	Number string `json:"number"`
}

var errBankClosed = errors.New("the bank is closed")

// bank is the world outside.
type bank struct{ calls, fails int }

func (b *bank) charge(_ context.Context, p Purchase) (Receipt, error) {
	if b.calls++; b.calls <= b.fails {
		return Receipt{}, errBankClosed
	}
	return Receipt{Number: "R-" + p.Order}, nil
}

// example opens an engine in memory for an example.
func example(ctx context.Context, workflows ...engine.Workflow) *engine.Engine {
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, sqlite.Memory(), workflows...)
	if err != nil {
		panic(err)
	}
	return e
}

func Example_func() {
	ctx, bank := context.Background(), &bank{fails: 2}

	charge, err := builder.Func("charge", func(ctx context.Context, p Purchase) (Receipt, error) {
		return bank.charge(ctx, p)
	})
	if err != nil {
		panic(err)
	}
	e := example(ctx, charge)
	defer e.Close()

	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100})
	if err != nil {
		panic(err)
	}
	receipt, err := run.Result(ctx, e)
	fmt.Println(receipt.Number, err, bank.calls, "calls")
	// Output: R-7 <nil> 3 calls
}

func Example_funcOptions() {
	ctx, bank := context.Background(), &bank{}
	charge := builder.MustFunc("charge", bank.charge,
		builder.Retry(func(p *retry.Policy) {
			p.Attempts, p.Initial, p.MaxWait = 6, time.Second, time.Minute
			p.Jitter = retry.JitterFull
		}),
		builder.OnQueue("payments"),
		builder.AttemptTimeout(30*time.Second),
		builder.Keep(30*24*time.Hour),
		builder.Version("2"),
	)
	e := example(ctx, charge)
	defer e.Close()

	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100},
		workflow.Key("order-7"),
		workflow.After(10*time.Minute),
		workflow.Priority(5),
		builder.Retry(func(p *retry.Policy) { p.Attempts, p.Base = 3, 4 }),
	)
	if err != nil {
		panic(err)
	}
	s, err := run.Status(ctx, e)
	fmt.Println(s.State, s.Next.Sub(s.Created), err)
	// Output: scheduled 10m0s <nil>
}

func Example_funcStatus() {
	ctx, bank := context.Background(), &bank{fails: 100}
	charge := builder.MustFunc("charge", bank.charge, builder.Retry(func(p *retry.Policy) { p.Attempts, p.Initial = 2, 0 }))
	e := example(ctx, charge)
	defer e.Close()
	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100})
	if err != nil {
		panic(err)
	}

	receipt, err := run.Result(ctx, e)
	var failure *workitem.Failure
	switch {
	case errors.Is(err, builder.ErrCanceled):
		fmt.Println("canceled")
	case errors.As(err, &failure):
		fmt.Println("failed:", failure.Code, failure.Message)
	case err == nil:
		fmt.Println("charged:", receipt.Number)
	}

	s, err := charge.Of(run.ID).Status(ctx, e)
	fmt.Println(s.State, s.Attempt, err)
	// Output:
	// failed: error the bank is closed
	// failed 2 <nil>
}

func Example_funcInTransaction() {
	ctx, bank := context.Background(), &bank{}
	charge := builder.MustFunc("charge", bank.charge)
	e := example(ctx, charge)
	defer e.Close()
	purchase := Purchase{Order: "7", Amount: 100}
	createOrders := "CREATE TABLE orders (id TEXT, run TEXT)"

	var run builder.Run[Receipt]
	err := e.Update(ctx, func(tx *engine.Tx) (err error) {
		if _, err = tx.DB().ExecContext(ctx, createOrders); err != nil {
			return err
		}
		if run, err = charge.Run(ctx, tx, purchase); err != nil {
			return err
		}
		_, err = tx.DB().ExecContext(ctx, "INSERT INTO orders VALUES (?, ?)", purchase.Order, run.ID.String())
		return err
	})
	if err != nil {
		panic(err)
	}
	receipt, err := run.Result(ctx, e)
	fmt.Println(receipt.Number, err)
	// Output: R-7 <nil>
}

func Example_onComplete() {
	ctx, bank := context.Background(), &bank{}

	saved := builder.Handler("saved", func(ctx context.Context, c *builder.Completion[Receipt], order string) error {
		_, err := c.DB().ExecContext(ctx, "INSERT INTO receipts VALUES (?, ?, ?)", order, string(c.State), c.Value.Number)
		return err
	})
	mailed := builder.LaterHandler("mailed", func(ctx context.Context, ended builder.Ended[Receipt], to string) error {
		fmt.Println("mail to", to, "about", ended.Value.Number)
		return nil
	}, builder.JobOptions{Retry: retry.Exponential(8, time.Second)})

	charge := builder.MustFunc("charge", bank.charge, builder.Handles(saved, mailed))
	e := example(ctx, charge)
	defer e.Close()
	if err := e.Update(ctx, func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, "CREATE TABLE receipts (id TEXT, state TEXT, number TEXT)")
		return err
	}); err != nil {
		panic(err)
	}

	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100},
		builder.OnComplete(saved, "7"),
		builder.OnCompleteLater(mailed, "ann@example.org", builder.Only(workflow.RunCompleted)),
	)
	if err != nil {
		panic(err)
	}
	if _, err := run.Result(ctx, e); err != nil {
		panic(err)
	}
	if err := e.Drain(ctx); err != nil {
		panic(err)
	}
	// Output: mail to ann@example.org about R-7
}

func Example_rounds() {
	ctx, pause := context.Background(), time.Duration(0)

	var poll *builder.FuncRef[int, int]
	var again *builder.HandlerRef[struct{}]
	again = builder.Handler("again", func(ctx context.Context, c *builder.Completion[int], _ struct{}) error {
		fmt.Println(c.State, "after round", c.Value)
		if c.State != workflow.RunCompleted || c.Value >= 300 {
			return nil
		}
		_, err := poll.Run(ctx, c, c.Value, builder.OnComplete(again, struct{}{}))
		return err
	})
	poll = builder.MustFunc("poll", func(ctx context.Context, round int) (int, error) {
		for last := round + 100; round < last; round++ {
			if err := step.Sleep(ctx, fmt.Sprint("pause ", round), pause); err != nil {
				return 0, err
			}
		}
		return round, nil
	}, builder.Handles(again))

	e := example(ctx, poll)
	defer e.Close()
	if _, err := poll.Run(ctx, e, 0, builder.OnComplete(again, struct{}{})); err != nil {
		panic(err)
	}
	if err := e.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// completed after round 100
	// completed after round 200
	// completed after round 300
}

func Example_cancelAndCleanup() {
	ctx, bank := context.Background(), &bank{}
	charge := builder.MustFunc("charge", bank.charge)
	e := example(ctx, charge)
	defer e.Close()
	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100}, workflow.After(time.Hour))
	if err != nil {
		panic(err)
	}

	canceled, err := run.Cancel(ctx, e, workitem.Failf("changed", "the customer changed her mind"))
	fmt.Println(canceled, err)
	canceled, err = run.Cancel(ctx, e, nil)
	fmt.Println(canceled, err)

	if err := run.Cleanup(ctx, e); err != nil {
		panic(err)
	}
	_, err = run.Status(ctx, e)
	fmt.Println(errors.Is(err, engine.ErrNotFound))
	// Output:
	// true <nil>
	// false <nil>
	// true
}

func Example_restart() {
	ctx, charges, full := context.Background(), 0, true

	buy := builder.MustFunc("buy", func(ctx context.Context, p Purchase) (Receipt, error) {
		receipt, err := step.Do(ctx, "charge", func(context.Context) (Receipt, error) {
			charges++
			return Receipt{Number: "R-" + p.Order}, nil
		})
		if err != nil {
			return Receipt{}, err
		}
		return step.Do(ctx, "save", func(context.Context) (Receipt, error) {
			if full {
				return Receipt{}, errors.New("the disk is full")
			}
			return receipt, nil
		})
	})
	e := example(ctx, buy)
	defer e.Close()
	run, err := buy.Run(ctx, e, Purchase{Order: "7", Amount: 100},
		builder.Retry(func(p *retry.Policy) { p.Initial = 0 }))
	if err != nil {
		panic(err)
	}
	_, err = run.Result(ctx, e)
	fmt.Println(err != nil, charges, "charge")

	full = false
	again, err := run.Restart(ctx, e)
	if err != nil {
		panic(err)
	}
	receipt, err := again.Result(ctx, e)
	fmt.Println(receipt.Number, err, charges, "charge")

	again, err = run.Restart(ctx, e, workflow.FromStep("charge"))
	if err != nil {
		panic(err)
	}
	receipt, err = again.Result(ctx, e)
	fmt.Println(receipt.Number, err, charges, "charges")
	// Output:
	// true 1 charge
	// R-7 <nil> 1 charge
	// R-7 <nil> 2 charges
}

func Example_keep() {
	ctx, bank := context.Background(), &bank{}
	charge := builder.MustFunc("charge", bank.charge, builder.Keep(0))
	b := builder.New[Purchase]("order", builder.Keep(90*24*time.Hour))
	b.Path(b.Start(), builder.Task(b, "ship", builder.Work[any, any]{Queue: "warehouse"}), b.End())
	order := b.MustBuild()
	e := example(ctx, charge, order)
	defer e.Close()

	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100})
	if err != nil {
		panic(err)
	}
	if err := e.Drain(ctx); err != nil {
		panic(err)
	}
	_, err = run.Status(ctx, e)
	fmt.Println(errors.Is(err, engine.ErrNotFound))
	// Output: true
}

// Visits are counted by a function that may be called again, so many of them share a transaction.
func ExampleRepeatable() {
	ctx, page := context.Background(), "/prices"
	e := example(ctx)
	defer e.Close()
	create := func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, "CREATE TABLE visits (page TEXT)")
		return err
	}
	if err := e.Update(ctx, create); err != nil {
		panic(err)
	}
	err := e.Update(ctx, func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, "INSERT INTO visits VALUES (?)", page)
		return err
	}, engine.Repeatable())
	fmt.Println(err)
	// Output: <nil>
}
