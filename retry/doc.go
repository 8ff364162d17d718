// Package retry decides whether failed work is tried again, and when.
//
// A [Policy] is plain data: how many attempts in all, how the waits between them grow, where the growth stops, how
// chance spreads them, and which errors are worth another attempt. Its one decision, [Policy.Next], is a function of
// its argument, so the same policy serves two users:
//
//   - [Do] runs a function in this process, and waits in this process.
//   - A durable activity asks Next when a work item has failed, and makes a fresh item that is due after the wait. The
//     wait then outlives the process.
//
// Attempts are counted in all, the first one included, here and everywhere in Tasq: retry.Exponential(5, time.Second)
// calls at most five times, and waits at most four times. The wait after attempt n (which is the wait before attempt
// n+1) grows with n. For an initial wait of one second:
//
//	after attempt   1   2   3   4    5
//	exponential     1s  2s  4s  8s  16s    initial * base^(n-1), base 2
//	linear          1s  2s  3s  4s   5s    initial * n
//	fibonacci       1s  1s  2s  3s   5s    initial * fib(n)
//	constant        1s  1s  1s  1s   1s
//	table           what the table says; its last entry repeats
//
// That wait is cut to MaxWait, then spread by the jitter, then cut to MaxWait again, so that MaxWait is a promise. A
// wait too long for a [time.Duration] is the longest one that there is, about 292 years; nothing wraps around.
//
// Errors have a say. [Permanent] marks one that no further attempt can correct. [After] carries the delay that a server
// asked for, which replaces the computed wait: a server that says "in 90 seconds" has no use for us in 30, so neither
// MaxWait nor jitter touches it. Only MaxElapsed does: if the delay would cross it, there is no other attempt.
//
// A value may also be wrong without an error, as the answers of a language model often are. A [Check] refuses such a
// value, which counts as a failed attempt. If the last attempt is refused, the caller gets a [*ValidationError] with
// every refused value and the reasons, and may still take the best of them.
package retry
