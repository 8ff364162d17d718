package builder

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/process"
)

// Exec defines a function that is an external program: it runs in a process of its own, reads its input as JSON from
// standard input and writes its result as JSON to standard output. Attempts, options and runs work as in [Func].
//
//	render, err := builder.Exec[Page, Picture]("render", process.Command{
//		Argv: []string{"/usr/bin/python3", "render.py"}, Dir: "/srv/render", Env: []string{"LANG=C.UTF-8"},
//	})
//
// An exit code other than 0 fails the attempt with the code "exit" and the end of standard error as its details; exit codes
// listed in Permanent are not retried. The program and its child processes are terminated when the run is canceled, its
// lease is lost or its timeout has passed; see package process. If the engine's process is killed they keep running: the
// next attempt, after the lease has expired, may run beside them. A command that cannot be run is a problem with the code
// [BadProcess].
func Exec[In, Out any](name string, command process.Command, opts ...FuncOption) (*FuncRef[In, Out], error) {
	opts = append(slices.Clone(opts), funcOption(func(s *funcSpec) { s.wrong = command.Validate() }))
	return newFunc(name, caller(), Work[In, Out]{Run: func(ctx context.Context, in In) (Out, error) {
		return process.Call[Out](ctx, command, in)
	}}, opts)
}
