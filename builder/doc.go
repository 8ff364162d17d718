// Package builder is the DSL in which a Go program defines workflows. Statements declare the parts of a workflow, typed
// handles connect them, and struct literals describe their work.
//
//	b := builder.New[Prompt]("article")
//	draft := builder.Task(b, "draft", builder.Work[Prompt, Draft]{
//		Input: builder.CaseInput(b),
//		Run:   generate, // func(context.Context, Prompt) (Draft, error): a job, outside the transaction
//	})
//	review := builder.Task(b, "review", builder.Work[Draft, Verdict]{
//		Input: builder.Output(draft),
//		Queue: "editors", // no Run: a person completes it
//	})
//	b.Path(b.Start(), draft, review, b.End())
//	article, err := b.Build()
//
// [Func] defines a workflow that consists of one function, and [Batch] one whose function takes several inputs in one
// call.
//
// A misspelled task is an undeclared variable, and a wrong payload type does not compile. What the compiler cannot check,
// [Builder.Build] does: it checks the whole definition, verifies that the net is sound, and reports every problem at
// once, with the file and line of the call that caused it. The declaring calls return no errors, so loops and helper
// functions can define parts of a workflow.
//
// # Joins and splits
//
// Joins and splits have no default where it matters: a task with several incoming flows needs a Join, a task with several
// outgoing flows a Split. A Split of [Xor] or [Or] chooses among its flows in one of three ways: by conditions on the
// flows ([FlowRef.When], [FlowRef.If], [FlowRef.Otherwise] and [FlowRef.WithoutOutput]), by a function of the task
// (Route), or by the caller that completes the work item (RouteByCaller).
//
// # Payloads
//
// Payloads enter and leave a process as JSON; only this package converts between JSON and Go types. Input is decoded
// strictly: an unknown field is an error, since it may be misspelled, and validate tags are applied (see package domain).
// A missing payload decodes to the zero value of a struct, if that is valid, and to nil for an interface, a map, a slice
// or json.RawMessage; for every other type it is an error.
//
// # Versions
//
// A definition consists of data and code. The data is written to its Document, whose hash is the Fingerprint. Of the code,
// the document only records that it is there: if a change of the code changes what the workflow means, give the workflow a
// new [Version].
package builder
