// Package process runs work in another process: a program that reads its input as JSON from standard input and writes its
// result as JSON to standard output. It is for work that needs another language, may crash, or has to be ended for sure.
//
//	render := process.Command{
//		Argv: []string{"/usr/bin/python3", "render.py"},
//		Dir:  "/srv/render",
//		Env:  []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
//	}
//	picture, err := process.Call[Picture](ctx, render, page)
//
// Nothing is taken over from the calling process but what the command says: the folder and the environment are those
// of the command.
//
// When the context ends (a canceled run, a lost lease, a timeout), the program and all that it started, as far as that is in
// its process group, get SIGTERM, and after [Command.Grace] SIGKILL. What is left of the group when the program ends is
// killed too. On systems without process groups only the program itself is ended, at once.
//
// A program that fails exits with another code than 0 and says why on standard error, the end of which is part of the
// [*ExitError]. Exit codes of [Command.Permanent] end retries.
package process
