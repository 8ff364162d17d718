// Package process runs work in another process: a program that reads its input as JSON from standard input and writes its
// result as JSON to standard output. Use it for work in another language, and for work that may crash or must be killed reliably.
//
//	render := process.Command{
//		Argv: []string{"/usr/bin/python3", "render.py"},
//		Dir:  "/srv/render",
//		Env:  []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
//	}
//	picture, err := process.Call[Picture](ctx, render, page)
//
// The program inherits nothing from the calling process: the folder and the environment are those
// of the command.
//
// When the context ends (a canceled run, a lost lease, a timeout), the process group of the program gets SIGTERM, and after
// [Command.Grace] SIGKILL. Processes of the group that remain when the program ends are
// killed, too. On systems without process groups, only the program itself is killed, at once.
//
// A program that fails exits with a code other than 0 and writes the reason to standard error, the end of which is part of the
// [*ExitError]. Exit codes of [Command.Permanent] are non-retryable.
package process
