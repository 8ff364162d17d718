// Package engine is the API of a running system: it opens a store, starts cases, takes actions, runs jobs, keeps time, and
// answers queries.
//
//	e, err := engine.Open(ctx, sqlite.File("article.db"), article)
//	id, err := article.Start(ctx, e, Prompt{Text: "Why Petri nets?"})
//	err = review.Complete(ctx, e, item, Verdict{OK: true})
//	c, err := e.Wait(ctx, id)
//
// A command goes down once and its results come up once. Each line is a package, and knows only those below it:
//
//	engine                 Do(ctx, command), Config, errors with codes
//	  internal/command     what each command does, within a transaction of commit
//	    internal/kernel    (definition, tree, command, now) -> changes, callbacks on the way
//	  internal/commit      one writer: queue, savepoint for each command, one commit for all of them
//	    store              journal entries and rows of sqlite or postgres
//	  after the commit, to each observer:
//	    internal/notify    who waits for a case or watches it
//	    internal/dispatch  what is due now: claims, workers, timers; their results are requests of the same queue
//	    internal/retention what may be removed, and when
//
// Commands queue to one writer. It takes all that is queued, runs each through the kernel against the cases in memory,
// and commits them together; a command is acknowledged when it is durable, and a failing one undoes itself alone. Jobs
// go to a worker the moment their transaction has committed. Nothing polls: with nothing due, nothing runs.
//
// What Tasq promises, in these words: exactly-once state transitions; at-least-once effects outside; exactly-once effects
// inside your own transaction on the same database.
package engine
