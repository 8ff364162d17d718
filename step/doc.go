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
//
// Effects belong into steps. The code between steps computes and no more: it decides the way, by what steps have returned. It
// sends nothing, writes nothing and starts nothing, since it runs again whenever the job does, and since what it has read of the
// step before may not be durable yet. A result is durable before the next effect, not before the next line: [Do] returns while its
// record is under way, and the next step, also one of a branch, and the end of the function wait until it is durable. So the
// function computes while the disk works, and its last step and its end share a commit. If the process dies in between, the step
// is done again, and nothing that came after it has happened. Beside other branches that have not returned, Do returns once its
// record is durable.
package step
