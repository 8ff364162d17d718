package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // errors and messages
}

// Registry is what the program provides. The zero value provides nothing.
type Registry struct {
	// Recipes returns the workflows of "tasq demo". They are named demo:NAME, and run only on databases of tasq demo.
	// nil if the program has none.
	Recipes func() ([]engine.Workflow, error)
	// Demo runs the command "tasq demo" with the arguments after that word; nil if the program has none.
	Demo func(ctx context.Context, in io.Reader, out, errs io.Writer, args []string) error
}

// app is one call of the command.
type app struct {
	Streams
	stdin  *input // In, until the command is interrupted
	reg    Registry
	db     string // flag --db; see path
	output string // flag -o
	paint  bool   // standard output is a terminal that shows colors
	drawn  int    // columns of the terminal on which a watched list is drawn; 0 if none is
	ran    bool   // the arguments were valid, so an error is not about them
	help   helpWriter
}

// helpWriter keeps the error of writing a help text, which cobra drops.
type helpWriter struct {
	to  io.Writer
	err error
}

func (w *helpWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// Main runs the command with the arguments that follow its name, and returns the exit code.
func Main(ctx context.Context, args []string, s Streams, reg Registry) int {
	a := &app{Streams: s, stdin: &input{ctx: ctx, from: s.In}, reg: reg, paint: terminal(s.Out)}
	root := a.root()
	root.SetArgs(a.normalize(root, args))
	err := root.ExecuteContext(ctx)
	if err == nil && a.help.err != nil {
		err, a.ran = a.help.err, true
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		fmt.Fprintln(s.Err, "tasq: interrupted")
		return ExitInterrupted
	}
	if !a.ran {
		err = usage(err)
	}
	a.complain(a.ofOutput(err))
	return exitCode(err)
}

// ofOutput explains an error of writing results, such as that of a full disk, which would look like one of the database.
func (a *app) ofOutput(err error) error {
	failed := (*fs.PathError)(nil)
	if f, is := a.Out.(*os.File); is && errors.As(err, &failed) && failed.Op == "write" && failed.Path == f.Name() {
		return fmt.Errorf("the output cannot be written, and what the command has done stays done: %w", err)
	}
	return err
}

// complain prints an error. An error without a text was printed before, and only has a code.
func (a *app) complain(err error) {
	if text := err.Error(); text != "" {
		fmt.Fprintln(a.Err, "tasq: "+printable.Lines(shortened(text)))
	}
}

// maxWord is the length of a word of an error, in bytes, from which it is shortened. No path is that long in practice.
const maxWord = 300

// shortened shortens the words of an error that are too long to read, such as an argument that is a whole file.
func shortened(text string) string {
	words := strings.Split(text, " ") // the lines of a text stay
	for i, w := range words {
		if len(w) > maxWord {
			words[i] = printable.Brief([]byte(w), maxWord/2)
		}
	}
	return strings.Join(words, " ")
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

const about = `tasq inspects and operates a Tasq database, runs scenario files, and verifies and draws nets.

Commands that only read open the database read-only, also while another process owns it. Commands that
change something are executed by the process that owns it; if there is none, tasq executes them itself.

CASE is the id of a case, the beginning of the id, or the business key of the case. ITEM and other ids may be
shortened too.

Exit codes:
  0    success
  1    the result is negative: an output differs from the expected one, a database is damaged (tasq doctor,
       tasq backup), work that was resumed or retried failed again at once, or a case of tasq demo failed or
       was canceled
  2    invalid arguments or input
  3    no such case, work item, task or workflow
  4    rejected: the state of the case forbids it, or a callback of the process returned an error
  5    the database cannot be used: missing, owned, damaged, newer, read-only, out of space; or the output
       cannot be written
  130  interrupted

tasq check has codes of its own: 1 unsound, 2 unreadable, 3 undecided.`

// The commands are listed in order of importance, not alphabetically.
func init() { cobra.EnableCommandSorting = false }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "tasq", Short: "inspect and operate Tasq databases, run scenarios, verify and draw nets", Long: about,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
	}
	version := root.Flags().Bool("version", false, "print the version and the build, as tasq version does")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version && len(args) == 0 {
			return a.run(a.printVersion)(cmd, args)
		}
		return a.group(cmd, args)
	}
	root.SetIn(a.In)
	a.help.to = a.Out
	root.SetOut(&a.help)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.db, "db", "d", "", "`database`: a file, or postgres://... (default: the environment variable TASQ_DB)")
	flags.StringVarP(&a.output, "output", "o", "table", "output `format`: table, csv, or json with one object per line")
	root.AddCommand(
		a.cases(), a.show(), a.items(), a.jobs(), a.steps(), a.events(), a.history(), a.audit(), a.why(), a.way(), a.incidents(), a.failures(), a.search(), a.stats(), a.export(), a.definitions(), a.limits(),
		a.processes(),
		a.item(), a.job(), a.caseCommand(), a.incident(), a.redrive(), a.bulk(), a.workflow(), a.event(), a.limit(), a.queues(), a.queue(), a.schedules(), a.schedule(),
		a.serve(), a.doctor(), a.backup(), a.copy(), a.migrate(), a.script(), a.check(), a.draw(), a.convert(), a.version())
	if a.reg.Demo != nil {
		root.AddCommand(a.demo())
	}
	return root
}

// paragraph wraps the long text of a command's help.
func paragraph(text string) string {
	const width = 100
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// group is the body of a command that needs a subcommand.
func (a *app) group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	return fmt.Errorf("%s has no command %q; %s", cmd.CommandPath(), args[0], spelling.Hint(args[0], known))
}

// run wraps the body of a command. Its errors are not about the arguments, unless they say so.
func (a *app) run(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(noneEmpty(cmd), allText(cmd)); err != nil {
			return err
		}
		if err := a.checkOutput(cmd); err != nil {
			return err
		}
		a.ran = true
		return body(cmd.Context(), args)
	}
}

// demo passes all arguments to Registry.Demo.
func (a *app) demo() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo [NAME] [FLAG...]", Short: "run a process with failures and waits, and leave the database to explore",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.ran = true
			return a.reg.Demo(cmd.Context(), a.In, a.Out, a.Err, args)
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { // the demos have flags of their own
		a.help.err = a.reg.Demo(cmd.Context(), a.In, a.Out, a.Err, []string{"-h"})
	})
	return cmd
}
