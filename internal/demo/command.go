package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

const usage = `Usage: tasq demo [flags] [prompt]

A prompt goes to a model that fails several times, and is asked again after 1 s, 2 s, 4 s, ... or when it says. You
review the draft. Everything is in a SQLite file: stop the demo at any moment, and the same command goes on.

The model is a local server, unless OPENAI_BASE_URL (or OPENAI_API_KEY) and OPENAI_MODEL, or -url and -model, name
another one.

Flags:
`

// Command runs the demo with the arguments that follow its name on a command line. The error wraps [ErrUsage] if they
// cannot be understood; asked for help, Command prints it and returns nil.
func Command(ctx context.Context, in io.Reader, out, errs io.Writer, args []string) error {
	o := Options{In: in, Err: errs, Terminal: terminal(out), Plain: os.Getenv("NO_COLOR") != ""}
	yes := !terminal(in) || !o.Terminal
	f := flag.NewFlagSet("tasq demo", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.DB, "db", DefaultDB, "the database `file`; a case that still runs in it goes on")
	f.StringVar(&o.DB, "d", DefaultDB, "the same as -db")
	f.StringVar(&o.URL, "url", "", "base `address` of an OpenAI-compatible endpoint")
	f.StringVar(&o.Model, "model", "", "`name` of the endpoint's model")
	f.StringVar(&o.Key, "key", "", "API `key` of the endpoint; who may list processes sees it, unlike OPENAI_API_KEY")
	f.StringVar(&o.Faults, "faults", "", "`script` of the local server, a word for each attempt: ok, limit 2s, error,\n"+
		"refuse, hang, slow 1s, cut, drop, garbage, shape, empty (default \""+DefaultFaults+"\")")
	f.BoolVar(&o.Fast, "fast", false, "make short waits of long ones")
	f.BoolVar(&yes, "yes", yes, "approve the draft without asking; the default unless a person is at a terminal.\n"+
		"With -yes=false the answer is a line of the input: y, or n and then a line that says why")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w; see tasq demo -h", ErrUsage, err)
	}
	o.Ask = !yes
	o.Prompt = strings.Join(f.Args(), " ")
	return Run(ctx, out, o)
}

// terminal reports whether a stream is a person's.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
