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
       tasq demo order [flags]
       tasq demo onboarding [flags]
       tasq demo incident [flags]
       tasq demo limits [flags]
       tasq demo fleet [-d postgres://...]

Demos, each on a database that it leaves to be explored. Stop one at
any moment, also by kill -9, and the same command goes on.

  tasq demo             A prompt goes to a model that fails several times, and
                        is asked again after 1 s, 2 s, 4 s, ... or when it
                        says. You review the draft.
  tasq demo order       A customer is charged, gets a mail, and the order is
                        saved, which fails twice. The order is tried again;
                        the customer is charged once.
  tasq demo onboarding  A function that sends a mail, waits for the answer,
                        asks a model that is busy, and sleeps.
  tasq demo incident    A supplier is down, and forty purchases fail alike.
                        One is skipped, one goes on a step earlier, and one
                        command has the others tried again.
  tasq demo limits      200 calls to a model that answers 429 beyond 50 a minute
                        and 5 at once, by three keys: none is refused. It
                        needs no database, and leaves nothing behind.
  tasq demo fleet       Three processes on one PostgreSQL server, of which one
                        is killed. It leaves nothing behind.

`

const usageOfPrompt = `For tasq demo, the model is a local server, unless OPENAI_BASE_URL (or
OPENAI_API_KEY) and OPENAI_MODEL, or -url and -model, name another one. A
prompt that begins with the word of another demo goes behind --.

Flags of tasq demo; the others have their own, see tasq demo order -h:
`

const usageOfOrder = `Usage: tasq demo order [flags]

An order is charged, confirmed by mail, and saved, as steps of one function.
Saving fails twice, and each time the whole order is tried again, with what was
done remembered. Kill the demo in the middle of a call: the bank is called
again, and knows the call by its key. What the bank and the mail server were
asked is in a file that ends in ".calls".

Flags:
`

const usageOfOnboarding = `Usage: tasq demo onboarding [flags]

A function sends a mail, waits for the event emailVerified, asks a model that
is busy twice, pauses, and saves an account in a transaction. While it waits it
is not in memory, and the wait outlives the process.

Flags:
`

// Command runs the demo with the arguments that follow its name on a command line; the first one may name another demo.
// The error wraps [ErrUsage] if they cannot be understood; asked for help, Command prints it and returns nil.
func Command(ctx context.Context, in io.Reader, out, errs io.Writer, args []string) error {
	s := Setting{Err: errs, Terminal: terminal(out), Plain: os.Getenv("NO_COLOR") != ""}
	if len(args) > 0 {
		switch args[0] {
		case "order":
			return commandOrder(ctx, out, args[1:], s)
		case "onboarding":
			return commandOnboarding(ctx, out, args[1:], s)
		case "incident":
			return commandIncident(ctx, out, args[1:], s)
		case "limits":
			return commandLimits(ctx, out, args[1:], s)
		case "fleet":
			return commandFleet(ctx, out, args[1:])
		}
	}
	o := Options{Setting: s, In: in}
	yes := !terminal(in) || !o.Terminal
	f := flags("tasq demo", DefaultDB, &o.Setting)
	f.StringVar(&o.URL, "url", "", "base `address` of an OpenAI-compatible endpoint")
	f.StringVar(&o.Model, "model", "", "`name` of the endpoint's model")
	f.StringVar(&o.Key, "key", "", "API `key` of the endpoint; who may list processes sees it, unlike OPENAI_API_KEY")
	f.StringVar(&o.Faults, "faults", "", "`script` of the local server, a word for each attempt: ok, limit 2s, error,\n"+
		"refuse, hang, slow 1s, cut, drop, garbage, shape, empty (default \""+DefaultFaults+"\")")
	f.BoolVar(&yes, "yes", yes, "approve the draft without asking; the default unless a person is at a terminal.\n"+
		"With -yes=false the answer is a line of the input: y, or n and then a line that says why")
	if helped, err := parse(f, out, usage+usageOfPrompt, args); helped || err != nil {
		return err
	}
	o.Ask = !yes
	o.Prompt = strings.Join(f.Args(), " ")
	return Run(ctx, out, o)
}

const usageOfIncident = `Usage: tasq demo incident [flags]

A supplier is down: forty purchases fail alike, and wait as incidents. One is
skipped with an output, one goes on a step earlier, and one command has the
others tried again once the supplier is back. The history shows who and why.

Flags:
`

func commandIncident(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := IncidentOptions{Setting: s}
	f := flags("tasq demo incident", DefaultIncidentDB, &o.Setting)
	if helped, err := parse(f, out, usageOfIncident, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunIncident(ctx, out, o)
}

const usageOfLimits = `Usage: tasq demo limits [flags]

A model server on this machine answers 429 beyond 50 calls a minute and 5 at
once for each of three API keys. 200 calls are made; each takes the key that
admits it first, or waits. In the end the server says what it has counted. The
exit code is 1 if it refused a call, or if less than 95 % of what it can serve
in that time was used.

Flags:
`

func commandLimits(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := LimitsOptions{Terminal: s.Terminal, Plain: s.Plain}
	f := flag.NewFlagSet("tasq demo limits", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.Fast, "fast", false, "with seconds instead of a minute; the utilisation is printed and not judged")
	if helped, err := parse(f, out, usageOfLimits, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunLimits(ctx, out, o)
}

const usageOfFleet = `Usage: tasq demo fleet [flags]

Three processes share the work on one PostgreSQL database. One of them is
killed; the others finish what it had begun, and the books balance.

Flags:
`

func commandFleet(ctx context.Context, out io.Writer, args []string) error {
	var o FleetOptions
	f := flag.NewFlagSet("tasq demo fleet", flag.ContinueOnError)
	f.StringVar(&o.DSN, "d", "", "connection string of a PostgreSQL `database`; by default a server is started")
	f.StringVar(&o.Member, "member", "", "`name` of a process, as the demo starts it")
	if helped, err := parse(f, out, usageOfFleet, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunFleet(ctx, out, o)
}

func commandOrder(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := OrderOptions{Setting: s}
	f := flags("tasq demo order", DefaultOrderDB, &o.Setting)
	f.IntVar(&o.Failures, "failures", 2, "how often saving the order fails; 5 is more than the order is tried")
	if helped, err := parse(f, out, usageOfOrder, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunOrder(ctx, out, o)
}

func commandOnboarding(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := OnboardingOptions{Setting: s}
	f := flags("tasq demo onboarding", DefaultOnboardingDB, &o.Setting)
	f.BoolVar(&o.Interactive, "interactive", false, "leave the event to you: say how it is sent, by a command or by HTTP")
	f.StringVar(&o.Listen, "listen", DefaultListen, "`address` of the webhook of -interactive")
	f.DurationVar(&o.Timeout, "timeout", DefaultTimeout, "how `long` a new case waits for the event, such as 90s or 24h")
	if helped, err := parse(f, out, usageOfOnboarding, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunOnboarding(ctx, out, o)
}

// flags are those that every demo has.
func flags(name, dbDefault string, s *Setting) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.DB, "db", dbDefault, "the `database`: a file, or postgres://...; a case that still runs in it goes on")
	f.StringVar(&s.DB, "d", dbDefault, "the same as -db")
	f.BoolVar(&s.Fast, "fast", false, "make short waits of long ones")
	f.BoolVar(&s.Serve, "serve", false, "show the demo in the browser, live; it ends with Ctrl-C then")
	f.StringVar(&s.ServeAt, "serve-at", "", "`address` of the pages (default \"127.0.0.1:7070\")")
	return f
}

// parse reads the arguments, and prints the help if that is what they ask for.
func parse(f *flag.FlagSet, out io.Writer, usage string, args []string) (helped bool, err error) {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%w: %w; see %s -h", ErrUsage, err, f.Name())
	}
	return false, nil
}

// noPrompt refuses words that the demo has no use for.
func noPrompt(f *flag.FlagSet) error {
	if f.NArg() == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s takes no %q; for a prompt of that word, tasq demo -- %s %s",
		ErrUsage, f.Name(), f.Arg(0), strings.TrimPrefix(f.Name(), "tasq demo "), strings.Join(f.Args(), " "))
}

// terminal reports whether a stream is a person's.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
