// Package builder is how a Go program defines a workflow: statements that declare its parts, typed handles that join
// them, and literals that say what each part does.
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
// A misspelt task is an undeclared variable, and a task that is given the wrong payload does not compile. What a
// compiler cannot know, [Builder.Build] finds: it checks the whole definition, and reports every problem at once,
// each with the file and line of the call that is to blame. Nothing is reported before that, so the calls that
// declare need no error handling, and loops and helper functions may define parts of a workflow.
//
// # Choices
//
// No gate is chosen silently: a task with several flows in needs a Join, one with several flows out a Split. A Split
// of [Xor] or [Or] needs to know where to go, in one of three ways: conditions on the flows ([FlowRef.When],
// [FlowRef.If], [FlowRef.Otherwise] and [FlowRef.WithoutOutput]), one function for the task (Route), or the caller that completes the work item
// (RouteByCaller).
//
// # Payloads
//
// Payloads cross the edge of a process as JSON, and this package is the one place where JSON becomes a Go type and
// back. What comes in is read strictly: a field that the type does not have is refused, since it may be a misspelt
// one, and the rules in validate tags are applied (see package domain). A missing payload is taken for the zero value
// of a struct, if that obeys its rules, and for nothing where the type is an interface, a map, a slice or
// json.RawMessage; it is refused for every other type.
//
// # What cannot be seen
//
// A definition is data and code. The data is written to its Document, whose hash is the Fingerprint; of the code only
// its presence is known, so give a workflow whose code changes its meaning a new [Version].
package builder
