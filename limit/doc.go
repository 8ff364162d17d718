// Package limit implements rate limits, concurrency limits and circuit breakers. They can be used in plain Go code, in memory; and
// since their state is plain data, a store can keep it and share a limit between processes.
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
// [Do] does the same around a function. The limits of a [Set] are acquired all together or not at all, in the order of the requests.
// [Keys] has a set for each of many keys, [Pool] uses any of several sets, and [Breaker] is a circuit breaker, which admits nothing
// while too many calls fail.
//
// # Algorithms
//
// A rate of n during the time per admits the following amounts, where a window is the interval from any time t up to, but not
// including, t+per ([Limit.AnyWindow] computes the bound):
//
//	algorithm       any window sees    at once     under load, of n    memory
//	SlidingWindow   n                  n           98 % or more        16 bytes an entry, about 100 at most
//	GCRA            n                  n/20 + 1    95 % or more        one time
//	LeakyBucket     n                  1           100 %               one time
//	TokenBucket     2n - 1             n           100 %               one time
//	FixedWindow     2n                 n           100 %               a time and a number
//
// An acquisition of more than GCRA or LeakyBucket admits at once waits until the limit is idle, and then exceeds the bound by the
// difference: if most is the largest amount of an acquisition, a window sees up to n + most - (n/20 + 1) with GCRA, and n + most - 1
// with LeakyBucket. The sliding window has no such case, which is why it is the default: it admits the whole limit of an API at
// once, and never more, whatever window the API counts.
//
// Every algorithm refunds what Lease.Commit reports as unused, if it still counts: in a sliding or fixed window until the
// acquisition has left the window, in the others until the refill has made up for it. The bounds hold for what was used. If more was
// used than acquired, the difference is a debt, which is charged even if it exceeds the limit, and which the bounds do not include.
//
// # Time
//
// Times are measured with the monotonic clock of retry.SystemClock, so setting the machine's clock has no effect. Tests set another
// clock in [Config], or run in a testing/synctest bubble.
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
// A [Grant] is stored with the admitted work. When the work ends, or its lease expires because the holder has died, a transaction
// calls [Limit.Commit] if the used amount is known, and [Limit.Give]. A change of the definition is an update of its row.
package limit
