package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// The first two attempts fail. Waits would be 1ms and 2ms.
func ExampleDo() {
	page, err := retry.Do(context.Background(), retry.Exponential(5, time.Millisecond),
		func(ctx context.Context, attempt int) (string, error) {
			if attempt < 3 {
				return "", errors.New("connection refused")
			}
			return fmt.Sprintf("page, at attempt %d", attempt), nil
		})
	fmt.Println(page, err)
	// Output: page, at attempt 3 <nil>
}

// A model answers, but not in JSON. Another attempt may do better; if none does, the answers are still there.
func ExampleDo_check() {
	answers := []string{"Sure! Here you are:", "{..."}
	ask := func(ctx context.Context, attempt int) (string, error) { return answers[attempt-1], nil }
	isObject := func(s string) error {
		if !strings.HasPrefix(s, "{") || !strings.HasSuffix(s, "}") {
			return errors.New("not a JSON object")
		}
		return nil
	}

	_, err := retry.Do(context.Background(), retry.Constant(2, 0), ask, retry.Valid(isObject))
	fmt.Println(err)
	if invalid, ok := errors.AsType[*retry.ValidationError[string]](err); ok {
		fmt.Printf("%q\n", invalid.Results)
	}
	// Output:
	// no valid result in 2 attempts: not a JSON object
	// ["Sure! Here you are:" "{..."]
}

func ExampleCall() {
	call := retry.Call[int]{
		Name:   "charge order 7",
		Policy: retry.Constant(3, time.Millisecond),
	}
	_, err := call.Do(context.Background(), func(ctx context.Context, attempt int) (int, error) {
		return 0, retry.Permanent(errors.New("the card is stolen"))
	})
	fmt.Println(err, retry.IsPermanent(err))
	// Output: the card is stolen true
}

// A durable engine asks the policy when a work item has failed, and stores when the next one is due.
func ExamplePolicy_Next() {
	p := retry.Exponential(4, time.Second)
	p.MaxWait = 3 * time.Second

	refused := errors.New("connection refused")
	busy := retry.After(time.Minute, errors.New("429 Too Many Requests"))
	for attempt, err := range []error{refused, refused, busy, refused} {
		wait, again := p.Next(retry.Failure{Attempt: attempt + 1, Err: err})
		fmt.Println(attempt+1, wait, again)
	}
	// Output:
	// 1 1s true
	// 2 2s true
	// 3 1m0s true
	// 4 0s false
}

func ExamplePolicy_filter() {
	quota := errors.New("quota")
	p := retry.Policy{
		Attempts: 5,
		Initial:  time.Second,
		MaxWait:  time.Minute,
		Jitter:   retry.JitterFull,
		Filters: []retry.Filter{
			retry.On(context.DeadlineExceeded),
			func(f retry.Failure) bool { return errors.Is(f.Err, quota) && f.Elapsed < time.Hour },
		},
	}
	_, again := p.Next(retry.Failure{Attempt: 1, Elapsed: 2 * time.Hour, Err: quota})
	fmt.Println(again)
	fmt.Println(p)
	// Output:
	// false
	// 5 attempts, exponential 1s x2, at most 1m0s, full jitter, filters: 2
}

func ExampleFibonacci() {
	p := retry.Fibonacci(6, time.Second)
	for n := range 5 {
		fmt.Print(p.Wait(n+1), " ")
	}
	// Output: 1s 1s 2s 3s 5s
}
