package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/script"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) draw() *cobra.Command {
	var format, of string
	cmd := &cobra.Command{
		Use: "draw FILE|WORKFLOW [WORKFLOW]", Short: "draw a net as text for Graphviz or Mermaid",
		Long: paragraph("Draw a workflow of a file (.net, or .txt for the define commands of a scenario), of the database, " +
			"or of this program. With --case, draw the workflow of a case with its tokens."),
		Example: `  tasq draw review.net | dot -Tsvg > review.svg
  tasq draw article --db article.db -f mermaid
  tasq draw --case 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071`,
		Args: func(cmd *cobra.Command, args []string) error {
			if of != "" {
				return exactly()(cmd, args)
			}
			return between(1, "a FILE or a WORKFLOW", "a WORKFLOW")(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "dot", "`form` of the drawing: dot or mermaid")
	cmd.Flags().StringVar(&of, "case", "", "the case with this `id`, with its tokens")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("output") {
			return usagef("a drawing has no such form; choose one with -f dot or -f mermaid")
		}
		pen := map[string]func(*net.Net, net.Marking) string{"dot": net.DOT, "mermaid": net.Mermaid}[format]
		if pen == nil {
			return usagef("-f %q: %s", format, hint(format, []string{"dot", "mermaid"}))
		}
		return a.run(func(ctx context.Context, args []string) error {
			n, m, err := a.subject(ctx, of, args)
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.Out, pen(n, m))
			return err
		})(cmd, args)
	}
	return cmd
}

// subject finds what is to be drawn; the marking is nil but for a case.
func (a *app) subject(ctx context.Context, of string, args []string) (*net.Net, net.Marking, error) {
	switch {
	case of != "":
		return a.netOfCase(ctx, of)
	case len(args) == 2 || isFile(args[0]):
		n, err := netOfFile(args[0], args[1:])
		return n, nil, err
	}
	n, err := a.netOfName(ctx, args[0])
	return n, nil, err
}

// isFile reports whether an argument names a file, if perhaps a missing one, and no workflow.
func isFile(arg string) bool {
	if slices.Contains([]string{".net", ".txt"}, filepath.Ext(arg)) {
		return true
	}
	_, err := os.Stat(arg)
	return !script.IsName(arg) || !errors.Is(err, fs.ErrNotExist)
}

func (a *app) netOfCase(ctx context.Context, word string) (n *net.Net, m net.Marking, err error) {
	id, err := parseID(workitem.ParseCaseID, "case", word)
	if err != nil {
		return nil, nil, err
	}
	err = a.view(ctx, func(r store.Reader) error {
		c, err := findCase(ctx, r, id)
		if err == nil {
			n, m = c.Net, c.Marking
		}
		return err
	})
	return n, m, err
}

func netOfFile(path string, names []string) (*net.Net, error) {
	parsed, err := readNotation(path)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, w := range parsed {
		known = append(known, w.Def.Name)
	}
	at := 0
	switch {
	case len(names) == 1:
		if at = slices.Index(known, names[0]); at < 0 {
			return nil, exit(ExitNotFound, "%s has no workflow %q; %s", path, names[0], hint(names[0], known))
		}
	case len(parsed) > 1:
		return nil, usagef("%s has %d workflows; name one of them: %s", path, len(parsed), list(known))
	}
	if problems := append(parsed[at].Def.Check(), parsed[at].Problems()...); len(problems) > 0 {
		return nil, problemsOf(path, problems)
	}
	return net.Compile(parsed[at].Def)
}

// netOfName finds a workflow in the database, if there is one, and otherwise in this program.
func (a *app) netOfName(ctx context.Context, name string) (*net.Net, error) {
	var known []string
	for _, w := range a.reg.Workflows {
		d := w.Untyped()
		if d.Name == name {
			return d.Net, nil
		}
		known = append(known, d.Name)
	}
	if _, err := a.path(); err != nil {
		return nil, exit(ExitNotFound, "there is no file %s, and this program has no workflow of that name; %s; to draw one "+
			"of a database, name that with --db", name, hint(name, known))
	}
	var n *net.Net
	err := a.view(ctx, func(r store.Reader) error {
		stored, err := namesOf(ctx, r)
		if err != nil {
			return err
		}
		for _, d := range stored.defs { // the newest of a name comes last
			if d.Name == name {
				if n, err = net.Compile(d.Net); err != nil {
					return err
				}
			}
		}
		if n == nil {
			known = append(known, stored.workflows()...)
			return exit(ExitNotFound, "there is no workflow %q; %s", name, hint(name, known))
		}
		return nil
	})
	return n, err
}
