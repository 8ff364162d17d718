package workitem_test

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/workitem"
)

// A failure that is an error's cause is what is kept of the error; a literal that does not say so is not tried again.
func ExampleFailureOf() {
	declined := &workitem.Failure{Code: "declined", Message: "no funds"}
	f := workitem.FailureOf(fmt.Errorf("charge order 7: %w", declined))
	fmt.Println(f.Code, f.Retryable, "-", f)

	f = workitem.FailureOf(errors.New("connection refused"))
	fmt.Println(f.Code, f.Retryable, "-", f)

	f = workitem.FailureOf(workitem.Fatal(errors.New("there is no such customer")))
	fmt.Println(f.Code, f.Retryable, "-", f)
	// Output:
	// declined false - declined: charge order 7: no funds
	// error true - error: connection refused
	// error false - error: there is no such customer
}

// Two of three reports are enough: the task completes with the second, and the live item is canceled.
func ExampleQuorum() {
	p := workitem.Quorum(2)
	var tally workitem.Tally
	for range 3 {
		tally.Add(workitem.Started, false)
	}
	for range 2 {
		tally.Remove(workitem.Started, false)
		tally.Add(workitem.Completed, false)
		verdict, err := p.Decide(workitem.Outcome{State: workitem.Completed, Tally: tally})
		fmt.Println(tally.Completed, "of", tally.Total(), verdict, err)
	}
	// Output:
	// 1 of 3 continue <nil>
	// 2 of 3 complete <nil>
}
