package steptest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
)

// onboard mails a link, waits a day for an answer, and another day before it says goodbye.
func onboard(ctx context.Context) error {
	_, err := step.Do(ctx, "mail", func(context.Context) (bool, error) {
		fmt.Println("a mail is sent")
		return true, nil
	})
	if err != nil {
		return err
	}
	if _, err := step.Await[any](ctx, "verified", step.Timeout(24*time.Hour)); errors.Is(err, step.ErrTimeout) {
		fmt.Println("nobody has answered")
		return nil
	} else if err != nil {
		return err
	}
	if err := step.Sleep(ctx, "a day", 24*time.Hour); err != nil {
		return err
	}
	fmt.Println("welcome")
	return nil
}

// A function is called from its first line whenever there is something to continue with; its steps are done once.
func ExampleJob() {
	ctx, job := context.Background(), steptest.New()
	fmt.Println(job.Run(ctx, onboard).Suspended)
	if err := job.Send("verified", nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println(job.Run(ctx, onboard).Suspended)
	job.Advance(24 * time.Hour)
	fmt.Println(job.Run(ctx, onboard).Suspended, job.Err())
	fmt.Print(job)
	// Output:
	// a mail is sent
	// true
	// true
	// welcome
	// false <nil>
	// mail do done
	// verified event done
	// a day sleep done
}

// Drive runs a job to its end, and lets the time pass that it waits for.
func ExampleJob_Drive() {
	job := steptest.New()
	begun := job.Now()
	out := job.Drive(context.Background(), onboard)
	fmt.Println(out.Err, job.Now().Sub(begun))
	// Output:
	// a mail is sent
	// nobody has answered
	// <nil> 24h0m0s
}

// The process dies as the mail is recorded: before that, so the mail is sent again.
func ExampleJob_CrashAt() {
	job := steptest.New()
	job.CrashAt(1, false)
	out := job.Run(context.Background(), onboard)
	fmt.Println(errors.Is(out.Err, steptest.ErrCrashed))
	fmt.Println(job.Run(context.Background(), onboard).Suspended)
	// Output:
	// a mail is sent
	// true
	// a mail is sent
	// true
}
