// Package step makes a job durable: its parts are named, what each of them returned is remembered, and a job that runs
// again goes on where it was.
//
//	func order(ctx context.Context, o Order) (Receipt, error) {
//		charge, err := step.Do(ctx, "charge", func(ctx context.Context) (Charge, error) { return pay(ctx, o) })
//		if err != nil {
//			return Receipt{}, err
//		}
//		if err := step.Sleep(ctx, "a day", 24*time.Hour); err != nil {
//			return Receipt{}, err
//		}
//		...
//	}
//
// A job that must wait, for a time, an event or a child case, is given up: the call returns [ErrSuspended], the
// function hands that on like any error, and nothing of the job stays in memory. When what it waits for is there, the
// function is called again, from its first line; the steps that are done return what they returned before, without
// being done again.
package step
