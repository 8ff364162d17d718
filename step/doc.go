// Package step makes a function durable. The function is divided into named steps, the result of each step is recorded, and a
// function that runs again resumes where it stopped.
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
// A function that has to wait for a time, an event or a child case is suspended: the call returns [ErrSuspended], the function
// returns it like any error, and nothing of the function stays in memory. When the wait is over, the function is called again,
// from its first line; completed steps return their recorded results without being executed again.
//
// Steps are executed at least once: if the process crashes after a step's function was called and before its result is recorded,
// the function is called again. For an effect that must happen once, pass [Key] as an idempotency key to the other service, or
// use [Tx] for your own tables.
//
// # Code between steps
//
// Effects belong in steps. Code between steps must only compute, and must be deterministic: it decides what to do next, from the
// results of steps. It must not send, write or start anything, since it runs again whenever the function does, and since
// the results that it has read may not be durable yet.
//
// A result is durable before the next effect, not before the next line. Do returns while its record is still being written; the
// next step, also in a branch, and the end of the function wait until it is durable. So the function computes while the disk
// writes, and the last step and the end of the function share a commit. If the process crashes in between, the step is executed
// again, and nothing after it has happened. While other branches are running, Do returns only when its record is durable.
package step
