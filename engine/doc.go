// Package engine runs workflows: it opens a store, starts cases, executes commands, runs jobs and timers, and answers
// queries.
//
//	e, err := engine.Open(ctx, sqlite.File("article.db"), article)
//	id, err := article.Start(ctx, e, Prompt{Text: "Why Petri nets?"})
//	err = review.Complete(ctx, e, item, Verdict{OK: true})
//	c, err := e.Wait(ctx, id)
//
// # Architecture
//
// A command goes down once, and its result comes up once. Each line is a package, which uses only those below it:
//
//	engine                 Do(ctx, command), Config, errors with codes
//	  internal/command     what each command does, within a transaction of commit
//	    internal/kernel    (definition, tree, command, now) -> changes, callbacks on the way
//	  internal/commit      one writer: queue, savepoint for each command, one commit for all of them
//	    store              journal entries and rows of sqlite or postgres
//	  after the commit, to each observer:
//	    internal/notify    callers that wait for a case or watch it
//	    internal/dispatch  due work: claims, workers, timers; their results are requests of the same queue
//	    internal/retention removes cases when their retention time is over
//
// A single writer executes commands. It takes all commands that are queued, runs each through the kernel against the cases in
// memory, and commits them together. A command is acknowledged when it is durable; a command that fails is rolled back alone.
// Jobs are passed to a worker as soon as their transaction has committed. The engine does not poll for due work: it sleeps
// until the next job is due.
//
// # Guarantees
//
// Exactly-once state transitions; at-least-once effects outside; exactly-once effects inside your own transaction on the same
// database. So a function that a worker runs should be idempotent, or use an idempotency key (see package step).
package engine
