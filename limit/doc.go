// Package limit restricts concurrency and rates: how much work may be done at a time, and how often. It serves plain code, and
// its decisions are data that a store can keep.
//
//	limits := limit.Must(limit.NewSet(
//		limit.Resource("connections", 5),                                // 5 at a time
//		limit.Rate("tokens", 60_000, time.Minute, limit.SlidingWindow),  // in any minute
//	))
//	lease, err := limits.Acquire(ctx, limit.Take("tokens", 4000))        // one connection and 4000 tokens, or nothing
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//	answer, err := call(ctx)
//	lease.Commit("tokens", answer.Tokens)                                // what was not used is free again
//
// [Do] does the same around a function. A [Set] is acquired as a whole or not at all, in the order of the requests. [Keys] has a set
// for each of many keys, [Pool] uses any of several sets, and [Breaker] is a circuit breaker: a limit that failures close.
//
// # Algorithms
//
// A rate of n during a time per admits, where most is the largest amount that is taken at once ([Limit.AnyWindow]
// computes it; a window is the times from t up to, but without, t+per):
//
//	algorithm       any window sees    at once     under load, of n    memory
//	SlidingWindow   n                  n           98 % or more        16 bytes an entry, about 100 at most
//	GCRA            n                  n/20 + 1    95 % or more        one time
//	LeakyBucket     n                  1           100 %               one time
//	TokenBucket     2n - 1             n           100 %               one time
//	FixedWindow     2n                 n           100 %               a time and a number
//
// Amounts above what GCRA and LeakyBucket admit at once wait until all else is worked off, and exceed the bound by the
// difference: their windows see up to n + most - (n/20 + 1), and n + most - 1. The sliding window has no such case, which is
// why it is the default: it admits an API's whole limit at once, and never more, in whatever window the API counts.
//
// Each algorithm refunds what [Lease.Commit] reports as unused, as far as it still counts: a sliding or fixed
// window until the acquisition has left it, the others until its share of time has passed. The bounds hold for what
// was used. If more was used than acquired, the difference is a debt: it is charged even if there is no room, and no bound counts
// it.
//
// # Time
//
// Times are measured with the monotonic clock of [retry.SystemClock], so setting the machine's clock changes nothing.
// Tests put another clock into [Config], or run in a testing/synctest bubble.
//
// # Limits in a store
//
// The decision of a limit is a function of three values: the [Limit], which is a definition; a [State], with a short binary
// form; and the time. Sets and keys keep states in memory. A store that shares a limit between processes stores a row for
// each limit: its name, its definition and the bytes of its state. An acquisition is then one transaction:
//
//	read the rows of all limits of the set
//	for each:  wait := l.Wait(&state, now, n)    now is the time of the database
//	if all are 0:  grants[i] = l.Take(&state, now, n), for each
//	otherwise:     the work is due again after the longest wait, or at the next release if that is Unknown
//	write the rows back whose state has changed
//
// A [Grant] is stored with the admitted work. Its end, or the end of its lease after its holder has died, is a
// transaction with [Limit.Give], and [Limit.Commit] before it. A change of a definition is an update of its row.
package limit
