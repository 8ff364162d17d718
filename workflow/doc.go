// Package workflow contains definitions and commands: the description of a process, and the requests to change it, as values.
//
// A [Definition] is a verified workflow: its net, the data of its tasks, and the callbacks of its author. Package
// builder makes definitions; they are immutable.
//
// A [Command] is a request to change something: start a case, act on a work item, send an event, cancel. The typed handles of
// package builder make commands, and so do the functions of this package:
//
//	workflow.Start("order", input, workflow.Key("order-17"))
//	workflow.Act(item, workitem.Complete, output, workflow.By("ann"))
//
// Engines, transactions and other processes execute commands through the interface [Doer]. Since a command is a value, it can
// be stored, compared and displayed. An idempotency key is stored with the [Command.Hash] of the command that first used it.
package workflow
