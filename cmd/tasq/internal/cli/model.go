package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
)

func posOf(file string) net.Pos { return net.Pos{File: file, Line: 1} }

// readModel reads a model of any format from a file, or from standard input for "-".
func (a *app) readModel(path string) (*model.File, error) {
	f, err := a.openModel(path)
	var syntax scenario.SyntaxErrors
	var refused *model.Error
	var missing *fs.PathError
	switch {
	case err == nil:
		return f, nil
	case errors.As(err, &syntax):
		return nil, usagef("%s cannot be read:\n%w", path, err)
	case errors.As(err, &refused):
		return nil, usage(err) // it begins with the file and the line
	case errors.As(err, &missing):
		return nil, unreadable(path, missing)
	}
	return nil, unreadable(path, err)
}

func (a *app) openModel(path string) (*model.File, error) {
	if path == "-" {
		return model.Read(stdinName, a.stdin)
	}
	return model.Open(path)
}

// stdinName is the name for the model on standard input, in messages and for output files.
const stdinName = "stdin"

// stdinOnce returns an error if several arguments are standard input: the second would find it empty.
func stdinOnce(args []string) error {
	if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
		return usagef("standard input (-) can be read only once")
	}
	return nil
}

// chooseNets returns the net of a file with the given name, or all nets for an empty name.
func chooseNets(file string, nets []*model.Net, name string) ([]*model.Net, error) {
	if name == "" {
		return nets, nil
	}
	if n := model.Find(nets, name); n != nil {
		return []*model.Net{n}, nil
	}
	return nil, exit(ExitNotFound, "%s has no workflow %q; %s", file, name, spelling.Hint(name, model.Names(nets)))
}

// pictureOf returns the picture of a well-formed net. A cycle of routing tasks can be drawn, although it cannot run.
func pictureOf(path string, n *model.Net) (picture, error) {
	if n.Definition == nil {
		return picture{}, usagef("%s: no workflow can be made of net %s, and so no drawing; tasq convert says why",
			path, n.Name)
	}
	problems := slices.DeleteFunc(n.Problems(), func(p net.Problem) bool { return p.Code == net.RoutingCycle })
	if len(problems) > 0 {
		return picture{}, problemsOf(path, problems)
	}
	compiled, err := net.Compile(n.Definition)
	return picture{n: compiled, title: n.Label, labels: n.Labels, flows: n.Flows, unnamed: n.Unnamed}, err
}

// problemsOf returns an error for the problems of workflows.
func problemsOf(path string, problems []net.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return usagef("%s is not well-formed:\n%s", path, strings.Join(lines, "\n"))
}

// outputName returns the name of the output file of a net without an extension: that of the net's own file, with the
// name of the net if the file has several.
func outputName(f *model.File, n *model.Net) string {
	name := baseName(f.Name)
	if len(f.Nets) > 1 {
		name += "." + strings.Map(fileLetter, n.Name)
	}
	return name
}

// baseName returns the name of a file without directory and extension.
func baseName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// fileLetter replaces characters that are not valid in file names on every system; the name of a net may contain any.
func fileLetter(r rune) rune {
	if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return r
	}
	return '_'
}

// readNotation reads workflows in net notation, or the define commands of a scenario.
func (a *app) readNotation(path string) ([]*scenario.Workflow, error) {
	f, err := a.readModel(path)
	if err != nil {
		return nil, err
	}
	var all []*scenario.Workflow
	for i := range f.Nets {
		if f.Nets[i].Workflow == nil {
			return nil, usagef("%s is a %s model, and only net notation can be run; tasq convert -f net makes that of it",
				path, f.Format)
		}
		all = append(all, f.Nets[i].Workflow)
	}
	return all, nil
}
