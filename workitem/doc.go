// Package workitem defines work items: units of work of an activation of a task, done by a person, a program or a model.
//
// A new item is initialized, and moves through this table, the only one in the project (see [Next]):
//
//	             start      complete    fail     cancel     reset
//	initialized  started    -           -        canceled   -
//	started      -          completed   failed   canceled   initialized
//
// Completed, failed and canceled items are final and never change again. So a retry is a new item, with
// attempt + 1 and a link to its predecessor, and the history of every attempt remains readable.
//
// A [Policy] decides what an item's final state means for its task. The default policy looks at lineages: a failed item that
// has a successor does not count, so a process that retries needs no policy of its own.
//
// The package does no I/O and reads no clock: callers pass the time.
package workitem
