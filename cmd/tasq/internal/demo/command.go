package demo

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
)

const usage = `Usage: tasq demo [flags] [prompt]
       tasq demo order [flags]
       tasq demo onboarding [flags]
       tasq demo incident [flags]
       tasq demo limits [flags]
       tasq demo fleet [-d postgres://...]

Runnable demonstrations. Most of them leave a database behind, which can be
explored with the other commands. They can be stopped at any moment, also by
kill -9; the same command continues where they stopped.

  tasq demo             A prompt is sent to a model that fails several times.
                        It is retried after 1 s, 2 s, 4 s, ..., or after the
                        delay that the model asks for. You review the draft.
  tasq demo order       A customer is charged and gets a mail, and the order is
                        saved, which fails twice. The order is retried, but the
                        customer is charged only once.
  tasq demo onboarding  A function sends a mail, waits for the answer, asks a
                        model that is busy, and sleeps.
  tasq demo incident    A supplier is down, and forty purchases fail for the
                        same reason. One is skipped, one continues from an
                        earlier step, and one command retries all others.
  tasq demo limits      200 calls with three API keys to a model that answers
                        429 to more than 50 calls a minute, or 5 at once, for
                        a key: no call is rejected. It uses no database.
  tasq demo fleet       Three processes share one PostgreSQL database, and one
                        of them is killed. It leaves no data behind.

`

const usageOfPrompt = `The model of tasq demo is a local server, unless OPENAI_BASE_URL (or
OPENAI_API_KEY) and OPENAI_MODEL, or -url and -model, name another one. If a
prompt begins with the name of another demo, put -- before it.

Flags of tasq demo; the others have flags of their own, see tasq demo order -h:
`

const usageOfOrder = `Usage: tasq demo order [flags]

An order is charged, confirmed by mail, and saved, as steps of one durable
function. Saving fails twice. Each time the whole function is retried, and the
completed steps return their recorded results. If you kill the demo in the
middle of a call, the bank is called again, and recognizes the idempotency key.
The calls to the bank and the mail server are recorded in a file with the
extension ".calls".

Flags:
`

const usageOfOnboarding = `Usage: tasq demo onboarding [flags]

A durable function sends a mail, waits for the event emailVerified, asks a
model that is busy twice, pauses, and saves an account in a transaction. While
it waits it uses no memory, and the wait survives a restart.

Flags:
`

// Command runs the demo with the given arguments of the command line; the first one may name a demo. The error wraps
// [ErrUsage] if the arguments are invalid. For -h, Command prints the help and returns nil.
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
	f.StringVar(&o.Key, "key", "", "API `key` of the endpoint; unlike OPENAI_API_KEY it is visible in the list of processes")
	f.StringVar(&o.Faults, "faults", "", "`script` of the local server, an outcome for each attempt: ok, limit 2s, error,\n"+
		"refuse, hang, slow 1s, cut, drop, garbage, shape, empty (default \""+DefaultFaults+"\")")
	f.BoolVar(&yes, "yes", yes, "approve the draft without asking; the default unless input and output are a terminal.\n"+
		"With -yes=false the answer is read from the input: a line y, or a line n and a line with the reason")
	if helped, err := parse(f, out, usage+usageOfPrompt, args); helped || err != nil {
		return err
	}
	o.Ask = !yes
	o.Prompt = strings.Join(f.Args(), " ")
	return Run(ctx, out, o)
}

const usageOfIncident = `Usage: tasq demo incident [flags]

A supplier is down: forty purchases fail for the same reason, and wait as
incidents. One is skipped with an output, one continues from an earlier step,
and one command retries the others once the supplier is back. The history shows
who acted, and why. With -serve, you decide in the browser.

Flags:
`

func commandIncident(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := IncidentOptions{Setting: s}
	yes := false
	f := flags("tasq demo incident", DefaultIncidentDB, &o.Setting)
	f.BoolVar(&yes, "yes", yes, "with -serve, decide as without it, and leave nothing to you")
	if helped, err := parse(f, out, usageOfIncident, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	o.Ask = o.Serve && !yes
	return RunIncident(ctx, out, o)
}

const usageOfLimits = `Usage: tasq demo limits [flags]

A model server on this machine limits each of three API keys to 50 calls a
minute and 5 at once, and answers 429 to any further call. The demo makes 200
calls; each uses the first key that admits it, or waits. At the end the server
prints its counts. The exit code is 1 if it rejected a call, or if the calls
used less than 95 % of its capacity.

Flags:
`

func commandLimits(ctx context.Context, out io.Writer, args []string, s Setting) error {
	o := LimitsOptions{Terminal: s.Terminal, Plain: s.Plain}
	f := flag.NewFlagSet("tasq demo limits", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.Fast, "fast", false, "use seconds instead of a minute; the utilisation is printed, but does not affect the exit code")
	if helped, err := parse(f, out, usageOfLimits, args); helped || err != nil {
		return err
	}
	if err := noPrompt(f); err != nil {
		return err
	}
	return RunLimits(ctx, out, o)
}

const usageOfFleet = `Usage: tasq demo fleet [flags]

Three processes share the work of one PostgreSQL database. One of them is
killed; the others take over its work, and the accounts balance at the end.

Flags:
`

func commandFleet(ctx context.Context, out io.Writer, args []string) error {
	var o FleetOptions
	f := flag.NewFlagSet("tasq demo fleet", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.DSN, "d", "", "connection string of a PostgreSQL `database`; by default a server is started")
	f.StringVar(&o.Member, "member", "", "`name` of the process; for internal use by the demo")
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
	f.IntVar(&o.Failures, "failures", 2, "how often saving the order fails; with 5, all attempts fail")
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
	f.BoolVar(&o.Interactive, "interactive", false, "print how to send the event, by a command or by HTTP, and wait for it")
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

// flags returns the flags that all demos have.
func flags(name, dbDefault string, s *Setting) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.DB, "db", dbDefault, "the `database`: a file, or postgres://...; a case that is active in it is continued")
	f.StringVar(&s.DB, "d", dbDefault, "the same as -db")
	f.BoolVar(&s.Fast, "fast", false, "shorten the waits")
	f.BoolVar(&s.Serve, "serve", false, "show the demo in the browser; Ctrl-C ends it")
	f.StringVar(&s.ServeAt, "serve-at", "", "`address` of the pages (default \"127.0.0.1:7070\")")
	return f
}

// parse parses the arguments, and prints the help for -h.
func parse(f *flag.FlagSet, out io.Writer, usage string, args []string) (helped bool, err error) {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		help := bytes.NewBufferString(usage)
		f.SetOutput(help)
		f.PrintDefaults()
		_, err := help.WriteTo(out)
		return true, err
	case err != nil:
		return false, fmt.Errorf("%w: %w; see %s -h", ErrUsage, err, f.Name())
	}
	if db := f.Lookup("d"); db != nil {
		if err := database.Of(db.Value.String()).Valid(); err != nil {
			return false, fmt.Errorf("%w: %w", ErrUsage, err)
		}
	}
	return false, nil
}

// noPrompt rejects arguments, which only the first demo has.
func noPrompt(f *flag.FlagSet) error {
	if f.NArg() == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s takes no %q; for a prompt of that word, tasq demo -- %s %s",
		ErrUsage, f.Name(), f.Arg(0), strings.TrimPrefix(f.Name(), "tasq demo "), strings.Join(f.Args(), " "))
}

// terminal reports whether a stream is an interactive terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
