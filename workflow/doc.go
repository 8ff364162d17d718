// Package workflow says what a process is and what is asked of it, as values.
//
// A [Definition] is a verified workflow: its net, the data of its tasks, and the callbacks that its author wrote. Package
// builder makes it; it is immutable.
//
// A [Command] is one request to change something: start a case, act on a work item, send an event, cancel. Typed handles of
// package builder make commands, and so do the functions of this package:
//
//	workflow.Start("order", input, workflow.Key("order-17"))
//	workflow.Act(item, workitem.Complete, output, workflow.By("ann"))
//
// An engine, a transaction and another process execute the same values, through [Doer]. A command can be stored, compared
// and shown; an idempotency key stands for the [Command.Hash] of the command that first used it.
package workflow
