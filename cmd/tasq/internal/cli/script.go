package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/scenario"
)

func (a *app) script() *cobra.Command {
	s := &scripts{a: a}
	cmd := &cobra.Command{
		Use: "script FILE|FOLDER...", Short: "run scenario files and compare their output",
		Long: paragraph("Run scenario files, each on a fresh database in memory with a clock that only the file moves, or "+
			"with --db postgres://... in a schema of its own of that database, which is removed afterwards. "+
			"There is a diff for every output that differs. In a folder, all files that end in .txt are run, those "+
			"of its folders too; one that is no scenario, or cannot be read, is skipped with a note. - is standard "+
			"input. The database that a file leaves behind is checked as a whole. With -o json, there is one object for every difference.") +
			"\n\n" + paragraph("A scenario file is a list of commands, each with a line of ---- below it and then what it "+
			"must print, up to a blank line:") + "\n\n  " + strings.Join(scenario.Usages(), "\n  ") + "\n\n" +
			paragraph("Each takes case=PATH for another case than the one started last. The whole form is in docs/scenarios.md."),
		Example: `  tasq script scenarios
  tasq script -update review.txt
  tasq script scenarios -d postgres://app@db.example/test`,
		RunE: a.run(s.run),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("tasq script needs a FILE or a FOLDER; see tasq script -h")
			case s.update && slices.Contains(args, "-"):
				return usagef("--update writes into files, and - is standard input; name a file")
			}
			return stdinOnce(args)
		},
	}
	cmd.Flags().BoolVar(&s.update, "update", false, "write what was printed into the files")
	cmd.Flags().BoolVarP(&s.verbose, "verbose", "v", false, "name every file")
	return cmd
}

// scripts is one call with scenario files.
type scripts struct {
	a                 *app
	update, verbose   bool
	files, commands   int
	mismatches, wrong int // outputs that differ, and number of files with such outputs
	updated, broken   int // files
	unread            int // arguments that are not scenarios
	skipped           int // files of directories that are not scenarios

	db database.Database // of a server; the zero value means in memory
}

func (s *scripts) run(ctx context.Context, args []string) error {
	if s.a.db != "" { // only the flag, since the environment's database is not for tests
		var err error
		if s.db, err = named(s.a.db); err != nil {
			return err
		}
		if s.db.File() != "" {
			return usagef("tasq script cannot use a file for --db: it runs in memory, or on a server (postgres://...), and leaves nothing " +
				"behind")
		}
	}
	sources, err := s.sources(args)
	if err != nil {
		return err
	}
	var files []*scenario.File
	for _, source := range sources {
		f, err := s.read(source.path)
		switch {
		case err == nil:
			files = append(files, f)
		case source.among:
			s.skip(err)
		case len(sources) == 1:
			return err
		default: // the other files still run
			s.a.complain(err)
			s.unread++
		}
	}
	if len(files)+s.unread == 0 {
		return usagef("nothing was run: there is no scenario file in %s", strings.Join(args, ", "))
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.file(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return s.summary()
}

// source is a file that may be a scenario.
type source struct {
	path  string
	among bool // found in a directory, which may have other texts
}

// sources lists the files of the arguments, each once. Files of a directory that cannot be read are skipped.
func (s *scripts) sources(args []string) ([]source, error) {
	var all []source
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "-":
			all = append(all, source{path: arg})
			continue
		case err != nil:
			return nil, unreadable(arg, err)
		case !info.IsDir():
			all = append(all, source{path: arg})
			continue
		}
		met := 0
		for path, err := range model.Within(arg, func(path string) bool { return strings.HasSuffix(path, ".txt") }) {
			met++
			if errors.Is(err, model.ErrTooMany) {
				return nil, unreadable(path, err)
			}
			if err != nil {
				s.skip(unreadable(path, err))
				continue
			}
			all = append(all, source{path: path, among: true})
		}
		if met == 0 {
			return nil, usagef("there is no scenario file (.txt) in %s", arg)
		}
	}
	return once(all), nil
}

// once removes repeated files and keeps the first of each. A file is explicit if any of them is.
func once(all []source) []source {
	var unique []source
	at := make(map[string]int)
	for _, one := range all {
		i, known := at[one.path]
		if !known {
			i = len(unique)
			at[one.path] = i
			unique = append(unique, one)
		}
		unique[i].among = unique[i].among && one.among
	}
	return unique
}

// skip prints why a file of a directory is not run. Of several syntax errors the first is enough.
func (s *scripts) skip(err error) {
	s.skipped++
	text := err.Error()
	if syntax := (scenario.SyntaxErrors)(nil); errors.As(err, &syntax) {
		text = syntax[0].Error()
	}
	s.a.remark("skipped: %s", text)
}

func (s *scripts) read(path string) (*scenario.File, error) {
	name, text, err := s.text(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	f, err := scenario.Parse(name, text)
	if err != nil {
		return nil, usagef("%s is not a scenario file:\n%w", name, err)
	}
	if len(f.Commands) == 0 {
		return nil, usagef("%s has no commands; a scenario has commands, each followed by ---- and its output", name)
	}
	return f, nil
}

// text reads a file, or standard input for "-".
func (s *scripts) text(path string) (name string, text []byte, err error) {
	if path == "-" {
		text, err = model.ReadAll(stdinName, s.a.stdin)
		return stdinName, text, err
	}
	text, err = model.ReadFile(path)
	return path, text, err
}

func unreadable(path string, err error) error {
	if pathErr, ok := err.(*fs.PathError); ok {
		err = pathErr.Err
	}
	return usagef("cannot read %s: %w", path, err)
}

func (s *scripts) file(ctx context.Context, f *scenario.File) error {
	o, drop := s.db.Scratch()
	result, err := scenario.Run(ctx, f, o)
	if err = errors.Join(err, drop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.files++
	s.commands += len(f.Commands)
	status := "ok"
	if len(result.Mismatches) > 0 {
		if status, err = s.differs(f, result); err != nil {
			return err
		}
	}
	if result.Broken != nil {
		s.broken++
		status = "broken"
		if err := s.reportBroken(f, result.Broken); err != nil {
			return err
		}
	}
	if s.verbose && s.a.output != "json" {
		fmt.Fprintf(s.a.Out, "%-8s %s (%s)\n", status, f.Name, printable.Plural(len(f.Commands), "command"))
	}
	return nil
}

// differs reports outputs that differ from the expected ones, or writes them to the file.
func (s *scripts) differs(f *scenario.File, result *scenario.Result) (status string, err error) {
	if s.update {
		s.updated++
		return "updated", rewrite(f, result.Outputs)
	}
	s.wrong++
	s.mismatches += len(result.Mismatches)
	for _, m := range result.Mismatches {
		if s.a.output == "json" {
			row := scriptRow{File: f.Name, Line: m.Command.Pos.Line, Command: line(m.Command), Diff: m.Diff, Why: m.Why}
			if err := s.a.object(row); err != nil {
				return "", err
			}
			continue
		}
		head := printable.Line(fmt.Sprintf("%s:%d: %s", f.Name, m.Command.Pos.Line, line(m.Command)))
		fmt.Fprintf(s.a.Out, "%s\n%s", head, s.a.diff(printable.Lines(m.Diff)))
		if m.Why != "" {
			fmt.Fprintln(s.a.Out, printable.Lines(m.Why))
		}
		fmt.Fprintln(s.a.Out)
	}
	return "differs", nil
}

func (s *scripts) reportBroken(f *scenario.File, broken error) error {
	if s.a.output == "json" {
		return s.a.object(scriptRow{File: f.Name, Broken: broken.Error()})
	}
	return s.a.say("%s: the database that it left behind is not whole:\n%s", f.Name, broken)
}

// scriptRow is the JSON form of a difference.
type scriptRow struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Command string `json:"command,omitempty"`
	Diff    string `json:"diff,omitempty"`   // from the expected output to the printed one
	Why     string `json:"why,omitempty"`    // the reason for a printed code
	Broken  string `json:"broken,omitempty"` // a problem in the resulting database
}

// line returns a command as in its file, with normalized spaces.
func line(c *scenario.Command) string {
	words := slices.Clone(c.Words)
	for _, arg := range c.Args {
		words = append(words, arg.Key+"="+arg.Value)
	}
	return strings.Join(words, " ")
}

// diff colors a diff for a terminal.
func (a *app) diff(text string) string {
	if !a.paint {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		color := map[byte]string{'-': "31", '+': "32", '@': "36"}[(l + " ")[0]]
		if color != "" {
			lines[i] = "\x1b[" + color + "m" + strings.TrimSuffix(l, "\n") + "\x1b[0m\n"
		}
	}
	return strings.Join(lines, "")
}

// rewrite replaces a file atomically, so that an interruption leaves the old or the new one.
func rewrite(f *scenario.File, outputs [][]string) (err error) {
	path, err := filepath.EvalSymlinks(f.Name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tasq-*")
	if err != nil {
		return unwritable(f.Name, err)
	}
	defer os.Remove(temp.Name()) // without effect if the rename succeeded
	_, err = temp.Write(f.Rewrite(outputs))
	for _, step := range []func() error{
		func() error { return temp.Chmod(info.Mode().Perm()) },
		temp.Close,
		func() error { return os.Rename(temp.Name(), path) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return unwritable(f.Name, err)
	}
	return nil
}

func unwritable(path string, err error) error { return usagef("cannot write %s: %w", path, err) }

// summary prints the summary, and returns an error if something differed.
func (s *scripts) summary() error {
	var err error
	switch {
	case s.unread > 0:
		err = exit(ExitUsage, "")
	case s.mismatches+s.broken > 0:
		err = exit(ExitNo, "")
	}
	if s.a.output == "json" {
		return err
	}
	text := printable.Plural(s.files, "file") + ", " + printable.Plural(s.commands, "command")
	if s.updated > 0 {
		text += fmt.Sprintf(", %s updated", printable.Plural(s.updated, "file"))
	}
	if s.mismatches > 0 {
		text += fmt.Sprintf(", %s in %s", printable.Plural(s.mismatches, "mismatch"), printable.Plural(s.wrong, "file"))
	}
	if s.broken > 0 {
		text += fmt.Sprintf(", %s not whole", printable.Plural(s.broken, "database"))
	}
	if s.unread > 0 {
		text += fmt.Sprintf(", %s not run", printable.Plural(s.unread, "file"))
	}
	if s.skipped > 0 {
		text += fmt.Sprintf(", %s skipped", printable.Plural(s.skipped, "file"))
	}
	status := "ok: "
	if err != nil {
		status = "FAILED: "
	}
	fmt.Fprintln(s.a.Out, status+text)
	return err
}
