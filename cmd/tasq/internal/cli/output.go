package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/spelling"
)

// drawForms are the forms of a drawing, and modelForms those of a model.
var (
	drawForms  = []string{"svg", "dot", "mermaid"}
	modelForms = []string{"pnml", "net"}
)

// endings are those of files by form.
var endings = map[string]string{"svg": ".svg", "dot": ".dot", "mermaid": ".mmd", "pnml": ".pnml", "net": ".net"}

// noTable refuses -o, which for other commands is the form of the rows that they print.
func noTable(cmd *cobra.Command) error {
	if cmd.Flags().Changed("output") {
		return usagef("%s prints no rows, which -o is for: name the file to write with --to, and its form with -f", cmd.CommandPath())
	}
	return nil
}

// chooseForm is the form that -f names, or else the one that the name of the file to write ends in, or else, if that
// has no ending, the default: dot, since older scripts rely on it, or none if that is no choice. A call with "--to
// net.png" does not want text for Graphviz in there.
func chooseForm(form, to string, forms []string) (string, error) {
	if slices.Contains(forms, to) {
		return "", usagef("--to names the file to write, and %s is a form, for -f; write --to ./%[1]s for such a file", to)
	}
	if form == "" && !isFolder(to) {
		for _, known := range forms {
			if to != "" && filepath.Ext(to) == endings[known] {
				return known, nil
			}
		}
	}
	if ending := filepath.Ext(to); form == "" && !isFolder(to) && ending != "" && ending != ".gv" {
		return "", usagef("--to %s: no form is known by the ending %q; say with -f which one is wanted: %s", to, ending, spelling.List(forms))
	}
	if form == "" && slices.Equal(forms, drawForms) {
		form = "dot"
	}
	switch {
	case form == "":
		return "", usagef("say with -f which form is wanted: %s", spelling.List(forms))
	case !slices.Contains(forms, form):
		return "", usagef("-f %q: %s", form, spelling.Hint(form, forms))
	}
	return form, nil
}

// isFolder reports whether a path names a folder, one that is there or one that ends like one.
func isFolder(path string) bool {
	if path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// output is a file to be written.
type output struct {
	name string // in the folder, if --to names one
	data []byte
}

// render makes an output of what a function writes.
func render(name string, write func(io.Writer) error) (output, error) {
	var b bytes.Buffer
	err := write(&b)
	return output{name, b.Bytes()}, err
}

// room refuses a number of files for which --to leaves no room: only a folder takes several.
func room(files int, to string) error {
	if files > 1 && !isFolder(to) {
		return usagef("there are %d files to write; name a folder with --to, like --to %s/", files, firstWord(to, "out"))
	}
	return nil
}

// write writes outputs to standard output, into one file, or into a folder. What was read is never written over, and
// nothing is written if something would be.
func (a *app) write(to string, outputs []output, read []string) error {
	if err := room(len(outputs), to); err != nil {
		return err
	}
	folder := isFolder(to)
	paths := make([]string, len(outputs))
	for i, o := range outputs {
		paths[i] = to
		if folder {
			paths[i] = filepath.Join(to, o.name)
		}
		if slices.Contains(paths[:i], paths[i]) {
			return usagef("two output files would be named %s; convert them one by one", o.name)
		}
		if err := spare(paths[i], read); err != nil {
			return err
		}
	}
	if folder && len(outputs) > 0 {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return unwritable(to, err)
		}
	}
	for i, o := range outputs {
		if err := a.writeFile(paths[i], o.data); err != nil {
			return err
		}
	}
	return nil
}

// spare refuses to write a file that was read.
func spare(path string, read []string) error {
	there, err := os.Stat(path)
	if err != nil {
		return nil // it is not there, or writing will tell
	}
	for _, in := range read {
		if info, err := os.Stat(in); err == nil && os.SameFile(there, info) {
			return usagef("%s would be written over itself; name another file with --to", in)
		}
	}
	return nil
}

func firstWord(words ...string) string {
	return words[slices.IndexFunc(words, func(w string) bool { return w != "" && w != "-" })]
}

func (a *app) writeFile(path string, data []byte) error {
	if path == "" || path == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return unwritable(path, err)
	}
	return nil
}
