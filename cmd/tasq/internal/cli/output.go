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

// drawFormats are the formats of drawings, and modelFormats those of models.
var (
	drawFormats  = []string{"svg", "dot", "mermaid"}
	modelFormats = []string{"pnml", "net"}
)

// endings are the file extensions of the formats.
var endings = map[string]string{"svg": ".svg", "dot": ".dot", "mermaid": ".mmd", "pnml": ".pnml", "net": ".net"}

// noTable rejects -o, which is the format of tables in other commands.
func noTable(cmd *cobra.Command) error {
	if cmd.Flags().Changed("output") {
		return usagef("%s has no table output, so -o does not apply: name the output file with --to, and its format with -f", cmd.CommandPath())
	}
	return nil
}

// chooseFormat returns the output format: the value of -f, or else that of the extension of --to. Without either, tasq
// draw writes dot, since older scripts depend on that, and tasq convert fails. An unknown extension is an error too: a
// user of "--to net.png" does not expect text for Graphviz in that file.
func chooseFormat(format, to string, formats []string) (string, error) {
	if slices.Contains(formats, to) {
		return "", usagef("--to names the output file, and %s is a format, which belongs after -f; for a file of that name write --to ./%[1]s", to)
	}
	if format == "" && !isFolder(to) {
		for _, known := range formats {
			if to != "" && filepath.Ext(to) == endings[known] {
				return known, nil
			}
		}
	}
	if ending := filepath.Ext(to); format == "" && !isFolder(to) && ending != "" && ending != ".gv" {
		return "", usagef("--to %s: the extension %q belongs to no known format; name the format with -f: %s", to, ending, spelling.List(formats))
	}
	if format == "" && slices.Equal(formats, drawFormats) {
		format = "dot"
	}
	switch {
	case format == "":
		return "", usagef("name the format with -f: %s", spelling.List(formats))
	case !slices.Contains(formats, format):
		return "", usagef("-f %q: %s", format, spelling.Hint(format, formats))
	}
	return format, nil
}

// isFolder reports whether a path names a directory: it exists, or the path ends with a slash.
func isFolder(path string) bool {
	if path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// output is a file to be written.
type output struct {
	name string // in the directory, if --to names one
	data []byte
}

// render returns the output of a function.
func render(name string, write func(io.Writer) error) (output, error) {
	var b bytes.Buffer
	err := write(&b)
	return output{name, b.Bytes()}, err
}

// room returns an error for several output files unless --to names a directory.
func room(files int, to string) error {
	if files > 1 && !isFolder(to) {
		return usagef("there are %d files to write; name a folder with --to, like --to %s/", files, firstWord(to, "out"))
	}
	return nil
}

// write writes outputs to standard output, to one file, or to a directory. It writes nothing if an output would
// overwrite a file that was read.
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

// spare returns an error if a path is one of the files that were read.
func spare(path string, read []string) error {
	there, err := os.Stat(path)
	if err != nil {
		return nil // it does not exist, or writing reports the error
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
