package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) check() *cobra.Command {
	c := &checks{a: a, time: 10 * time.Second, written: make(map[string]bool)}
	cmd := &cobra.Command{
		Use: "check FILE|FOLDER|ARCHIVE|WORKFLOW...", Short: "verify that nets are sound, and show runs that get stuck",
		Long: paragraph("Verify that a workflow is sound: every case can complete, with nothing left over, and every task can start. Files "+
			"are net notation (.net), the define commands of scenarios (.txt), PNML, YAWL and BPMN; - is standard input; folders and "+
			".tar.gz archives are read as a whole; a WORKFLOW is one of the database, or a recipe of tasq demo (demo:NAME). Each net "+
			"is verified on its own. With -o json, the output has one object for every net; with -o sarif, it is one SARIF 2.1.0 "+
			"document. Warnings do not affect the exit code; --silence all suppresses them.") +
			"\n\nExit codes; the first that applies:\n  2    a file cannot be read, a net is not well-formed, or there is no model at all\n  1 " +
			"   a net is unsound; with --verdicts, a verdict differs\n  3    a net is not decided: the budget ran out\n  0    all " +
			"are sound, or weakly so; warnings do not count",
		Example: `  tasq check claims.net models.tar.gz
  tasq check --silence all processes
  git show HEAD:order.bpmn | tasq check -
  tasq check --silence or-join-is-xor -o sarif processes > tasq.sarif
  tasq check --witness stuck claims.bpmn && tasq script stuck
  tasq check --explain improper-completion`,
	}
	f := cmd.Flags()
	f.BoolVar(&c.explain, "explain", false, "explain the `CODE`s given, each with an example, or list all of them")
	f.Var(words[net.Code]{&c.silence, warningCode, warningWords()}, "silence",
		"omit warnings with this `code`; several are separated by commas, all omits every warning")
	f.StringVar(&c.verdicts, "verdicts", "", "compare with the list in a `file`: CSV with \"file,sound\", or an archive with one in it")
	f.StringVar(&c.witness, "witness", "", "write the run of each finding as a scenario file into a `folder`")
	f.IntVar(&c.states, "states", 0, "budget of states for each net (default 200000)")
	f.IntVar(&c.memory, "memory", 0, "memory budget for each net, in `MiB` (default 64, or more in proportion to --states)")
	f.DurationVar(&c.time, "time", c.time, "time budget for each net; 0 for no limit")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "list every net, and the elements of its file that were not imported")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.usable(cmd, args); err != nil {
			return err
		}
		a.ran = true
		if c.explain {
			return c.explainCodes(args)
		}
		return c.run(cmd.Context(), args)
	}
	return cmd
}

// checks is one call of tasq check.
type checks struct {
	a                 *app
	explain, verbose  bool
	verdicts, witness string
	silence           []net.Code
	states, memory    int
	time              time.Duration

	models    int // files and workflows that were checked or could not be read
	worst     check.Verdict
	list      *check.Verdicts
	written   map[string]bool // paths of scenario files
	unwritten int             // findings without a scenario file
}

// report is a form of output.
type report interface{ File(*check.File) error }

func warningCode(s string) (net.Code, error) {
	if !slices.Contains(warningWords(), s) {
		return "", errors.New("unknown")
	}
	return net.Code(s), nil
}

func warningWords() []string {
	list := []string{"all"}
	for _, c := range check.WarningCodes() {
		if c != verify.Undecided && c != verify.Incomplete {
			list = append(list, string(c))
		}
	}
	return list
}

// usable validates combinations of flags and arguments.
func (c *checks) usable(cmd *cobra.Command, args []string) error {
	forms := []string{"table", "json", "sarif"}
	switch {
	case !slices.Contains(forms, c.a.output):
		return usagef("-o %q: %s", c.a.output, spelling.Hint(c.a.output, forms))
	case c.explain && len(changed(cmd)) > 1:
		return usagef("--explain takes codes and no other flag")
	case c.explain:
		return nil
	case len(args) == 0:
		return usagef("tasq check needs a FILE, a FOLDER, an ARCHIVE or a WORKFLOW; see tasq check -h")
	case c.verdicts != "" && c.a.output != "table":
		return usagef("--verdicts cannot be combined with -o %s: it prints text", c.a.output)
	case c.states < 0 || c.time < 0 || c.memory < 0:
		return usagef("--states, --time and --memory cannot be negative")
	}
	if slices.Contains(c.silence, "all") {
		c.silence = check.WarningCodes()
	}
	return stdinOnce(args)
}

func (c *checks) explainCodes(args []string) error {
	if len(args) == 0 {
		return check.WriteCodes(c.a.Out)
	}
	var known []string
	for _, x := range check.Explanations() {
		known = append(known, string(x.Code))
	}
	for i, code := range args {
		x, ok := check.Explain(net.Code(code))
		if !ok {
			return usagef("there is no code %q; %s", code, spelling.Hint(code, known))
		}
		if i > 0 {
			fmt.Fprintln(c.a.Out)
		}
		if err := x.Write(c.a.Out); err != nil {
			return err
		}
	}
	return nil
}

func (c *checks) run(ctx context.Context, args []string) error {
	entries, err := c.entries(ctx, args)
	if err == nil && c.verdicts != "" {
		if c.list, err = check.ReadVerdicts(c.verdicts); err != nil {
			return usagef("cannot read the verdicts: %w", err)
		}
	}
	if err == nil && c.witness != "" {
		if err = os.MkdirAll(c.witness, 0o777); err != nil {
			return usagef("--witness %s: cannot create the folder: %w", c.witness, err)
		}
	}
	if err != nil {
		return err
	}
	text := &check.Text{W: c.a.Out, Verbose: c.verbose, Quiet: c.list != nil && !c.verbose}
	sarif := &check.SARIF{Version: versionOf(debug.ReadBuildInfo()).Version}
	out := map[string]report{"table": text, "json": check.JSON{W: c.a.Out}, "sarif": sarif}[c.a.output]
	o := check.Options{States: c.states, Memory: c.memory << 20, Time: c.time, Now: now, Silence: c.silence}
	each := func(f *check.File) error {
		if err := ctx.Err(); err != nil {
			return err // an error of reading, not of the file
		}
		return c.file(f, out)
	}
	if err := check.Run(ctx, entries, o, each); err != nil {
		return err
	}
	switch out {
	case text:
		err = text.End()
	case sarif:
		err = sarif.Write(c.a.Out)
	}
	if err != nil {
		return err
	}
	if c.models == 0 {
		return usagef("nothing was checked: there is no model in %s", strings.Join(args, ", "))
	}
	return c.end()
}

// entries lists the entries of the arguments. A word that is not a file, and does not look like one, is a workflow.
func (c *checks) entries(ctx context.Context, args []string) (iter.Seq[check.Entry], error) {
	var parts []iter.Seq[check.Entry]
	for _, arg := range args {
		if arg == "-" {
			parts = append(parts, slices.Values([]check.Entry{check.Reader(stdinName, c.a.stdin)}))
			continue
		}
		if isFile(arg) {
			parts = append(parts, check.Files(arg))
			continue
		}
		e, err := c.a.definition(ctx, arg)
		if err != nil {
			return nil, &exitError{ExitUsage, err} // in any case there is nothing to check
		}
		parts = append(parts, slices.Values([]check.Entry{e}))
	}
	return func(yield func(check.Entry) bool) {
		for _, part := range parts {
			for e := range part {
				if !yield(e) {
					return
				}
			}
		}
	}, nil
}

// definition returns the newest definition of a workflow in the database, or a recipe by its prefix.
func (a *app) definition(ctx context.Context, name string) (check.Entry, error) {
	if recipe, is := recipeName(name); is {
		d, err := a.recipe(recipe)
		if err != nil {
			return check.Entry{}, err
		}
		return check.Entry{Name: name, Def: d.Net.Definition(), Allowed: d.Verification.Allowed}, nil
	}
	if _, err := a.netOfName(ctx, name); err != nil {
		return check.Entry{}, err
	}
	e := check.Entry{Name: name}
	err := a.view(ctx, func(r store.Reader) error {
		stored, err := namesOf(ctx, r)
		if d := stored.newest(name); d != nil {
			e.Def, e.Allowed = d.Net, allowedIn(d.Document)
		}
		return err
	})
	return e, err
}

// allowedIn returns the findings that a definition allows, from its document.
func allowedIn(document []byte) []net.Code {
	var doc struct{ Allows []net.Code }
	if json.Unmarshal(document, &doc) != nil {
		return nil
	}
	return doc.Allows
}

func (c *checks) file(f *check.File, out report) error {
	if !f.Passed {
		c.models++
		listed := c.list != nil && c.list.Add(f)
		if !listed || f.Err != nil {
			c.worst = max(c.worst, f.Outcome())
		}
	}
	if messages := f.Messages(); f.Passed && len(messages) > 0 {
		c.a.remark("%s is skipped: %s", f.Name, messages[0].Text)
	}
	if err := out.File(f); err != nil {
		return err
	}
	if c.witness == "" {
		return nil
	}
	return c.writeWitnesses(f)
}

// end prints the summary, and returns the exit code as an error.
func (c *checks) end() error {
	if c.witness != "" {
		text := printable.Plural(len(c.written), "scenario file") + " written to " + c.witness
		if c.unwritten > 0 {
			text += fmt.Sprintf("; %d could not be written", c.unwritten)
		}
		c.a.remark("%s", text)
	}
	if c.list != nil {
		agree, err := c.list.Write(c.a.Out)
		if err != nil {
			return err
		}
		if !agree {
			c.worst = max(c.worst, check.Unsound)
		}
	}
	if code := c.worst.ExitCode(); code != 0 {
		return exit(code, "")
	}
	return nil
}
