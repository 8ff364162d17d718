// Package engine is the door to run time: it opens a store, starts cases, takes actions, runs jobs, keeps time, and
// answers queries.
//
//	e, err := engine.Open(ctx, sqlite.File("article.db"), article)
//	id, err := article.Start(ctx, e, Prompt{Text: "Why Petri nets?"})
//	err = review.Complete(ctx, e, item, Verdict{OK: true})
//	c, err := e.Wait(ctx, id)
//
// Commands queue to one writer. It takes all that is queued, runs each through the kernel against the cases in memory,
// and commits them together; a command is acknowledged when it is durable, and a failing one undoes itself alone. Jobs
// go to a worker the moment their transaction has committed. Nothing polls: with nothing due, nothing runs.
//
// What Tasq promises, in these words: exactly-once state transitions; at-least-once effects outside; exactly-once effects
// inside your own transaction on the same database.
package engine
