// Package retry decides whether failed work is retried, and when.
//
//	answer, err := retry.Do(ctx, retry.Exponential(5, time.Second), func(ctx context.Context, attempt int) (Answer, error) {
//		return call(ctx)
//	})
//
// A [Policy] is plain data: the number of attempts, the backoff between them and its maximum, the jitter, and the filters
// that select retryable errors. Its only decision, [Policy.Next], is a function of its argument, so one policy serves two
// purposes:
//
//   - [Do] runs a function in this process, and waits in this process.
//   - A durable activity calls Next when a work item has failed, and creates a new item that is due after the wait. The
//     wait survives the process.
//
// The number of attempts includes the first one, here and everywhere in Tasq: retry.Exponential(5, time.Second)
// calls at most five times, and waits at most four times. The wait after attempt n (before attempt n+1) grows with n. For
// an initial wait of one second:
//
//	after attempt   1   2   3   4    5
//	exponential     1s  2s  4s  8s  16s    initial * base^(n-1), base 2
//	linear          1s  2s  3s  4s   5s    initial * n
//	fibonacci       1s  1s  2s  3s   5s    initial * fib(n)
//	constant        1s  1s  1s  1s   1s
//	table           what the table says; its last entry repeats
//
// The wait is limited to MaxWait, then spread by the jitter, then limited to MaxWait again, so MaxWait is never exceeded. A
// wait too long for a [time.Duration] becomes the longest one, about 292 years; it does not overflow.
//
// [Permanent] marks an error as non-retryable. [After] carries the delay that a server asked for, such as a Retry-After
// header. It replaces the computed wait, and neither MaxWait nor jitter changes it. Only MaxElapsed applies: if the delay
// would exceed it, there is no further attempt.
//
// A value can also be wrong without an error, as the answers of a language model often are. A Check rejects such a value,
// which counts as a failed attempt. If the last value is rejected, the caller gets a *ValidationError with every rejected
// value and the reasons.
package retry
