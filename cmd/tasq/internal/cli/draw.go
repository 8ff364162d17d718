package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store"
)

// drawing is one call of "tasq draw".
type drawing struct {
	a                   *app
	format, of, net, to string
}

func (a *app) draw() *cobra.Command {
	d := &drawing{a: a}
	cmd := &cobra.Command{
		Use: "draw FILE|WORKFLOW [WORKFLOW]", Short: "draw a net as a picture (SVG), or as text for Graphviz or Mermaid",
		Long: paragraph("Draw a workflow of a file, of the database, or a recipe of tasq demo (demo:NAME). A file may be net notation, a " +
			"scenario with define commands, PNML, YAWL or BPMN; the format is detected from the content. If it has several nets and " +
			"--to names a folder, each is drawn into a file there; BPMN pools that exchange messages are also drawn as one net. A " +
			"wide SVG picture is drawn in rows. With --case, draw the workflow of a case with its tokens."),
		Example: `  tasq draw review.net --to review.svg
  tasq draw order.bpmn -f svg --to pictures/
  tasq draw article --db article.db -f mermaid
  tasq draw --case 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -f svg > case.svg`,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.of != "" {
				return exactly()(cmd, args)
			}
			return between(1, "a FILE or a WORKFLOW", "a WORKFLOW")(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&d.format, "format", "f", "",
		"`format` of the drawing: svg, dot or mermaid (default: by the extension of --to, or dot)")
	f.StringVar(&d.of, "case", "", "draw the case with this `id`, with its tokens")
	f.StringVar(&d.net, "net", "", "draw the net with this `name`, if the file has several")
	f.StringVarP(&d.to, "to", "t", "", "write to this `file`, or one file for each net into this folder")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := noTable(cmd); err != nil {
			return err
		}
		if err := d.check(args); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, args []string) error {
			pictures, err := d.subject(ctx, args)
			if err != nil {
				return err
			}
			outputs := make([]output, len(pictures))
			for i, p := range pictures {
				if outputs[i], err = render(p.file+endings[d.format], p.pen(d.format)); err != nil {
					return err
				}
			}
			return a.write(d.to, outputs, args)
		})(cmd, args)
	}
	return cmd
}

// check validates the flags and sets defaults.
func (d *drawing) check(args []string) (err error) {
	if d.format, err = chooseFormat(d.format, d.to, drawFormats); err != nil {
		return err
	}
	if len(args) == 2 && d.net != "" && d.net != args[1] {
		return usagef("--net %s and %s name two nets; name one", d.net, args[1])
	}
	if len(args) == 2 {
		d.net = args[1]
	}
	return nil
}

// subject returns the pictures to draw: one net, or all nets of a file if the output is a folder.
func (d *drawing) subject(ctx context.Context, args []string) ([]picture, error) {
	switch {
	case d.of != "":
		p, err := d.a.pictureOfCase(ctx, d.of)
		return []picture{p}, err
	case d.net != "" || isFile(args[0]):
		return d.ofFile(args[0])
	}
	n, err := d.a.netOfName(ctx, args[0])
	return []picture{{n: n, file: strings.Map(fileLetter, args[0])}}, err
}

func (d *drawing) ofFile(path string) ([]picture, error) {
	f, err := d.a.readModel(path)
	if err != nil {
		return nil, err
	}
	nets, err := chooseNets(f.Name, f.All(), d.net)
	if err != nil {
		return nil, err
	}
	if len(nets) > 1 && !isFolder(d.to) {
		return nil, usagef("%s has %d workflows; name one of them: %s; or name a folder with --to for a file each",
			f.Name, len(nets), spelling.List(model.Names(nets)))
	}
	pictures := make([]picture, len(nets))
	for i, n := range nets {
		if pictures[i], err = pictureOf(f.Name, n); err != nil {
			return nil, err
		}
		pictures[i].file = outputName(f, n)
	}
	return pictures, nil
}

// isFile reports whether an argument names a file, which may be missing, and not a workflow.
func isFile(arg string) bool {
	if _, is := recipeName(arg); is {
		return false
	}
	if arg == "-" || slices.Contains([]string{".net", ".txt"}, filepath.Ext(arg)) {
		return true
	}
	_, err := os.Stat(arg)
	return !scenario.IsName(arg) || !errors.Is(err, fs.ErrNotExist)
}

func (a *app) pictureOfCase(ctx context.Context, word string) (p picture, err error) {
	if err := checkID(caseIDs, word); err != nil {
		return p, err
	}
	err = a.view(ctx, func(r store.Reader) error {
		c, err := caseByWord(ctx, r, word)
		if err == nil {
			p = picture{n: c.Net, marking: c.Marking, busy: c.Busy(), file: c.ID.String(),
				title: c.Workflow + ", case " + c.ID.String()}
		}
		return err
	})
	return p, err
}

// netOfName returns the net of a workflow in the database, or of a recipe by its prefix.
func (a *app) netOfName(ctx context.Context, name string) (*net.Net, error) {
	if recipe, is := recipeName(name); is {
		d, err := a.recipe(recipe)
		if err != nil {
			return nil, err
		}
		return d.Net, nil
	}
	if _, err := a.database(); err != nil {
		return nil, exit(ExitNotFound, "there is no file %s; for a workflow of that name in a database, name that with --db%s",
			name, a.orRecipe(name))
	}
	var n *net.Net
	err := a.view(ctx, func(r store.Reader) error {
		stored, err := namesOf(ctx, r)
		if err != nil {
			return err
		}
		d := stored.newest(name)
		if d == nil {
			return a.unknownWorkflow(name, stored.workflows())
		}
		n, err = net.Compile(d.Net)
		return err
	})
	return n, err
}

// picture is a net to be drawn.
type picture struct {
	n       *net.Net
	file    string // the name of its output file, without an extension
	title   string
	labels  map[string]string
	flows   map[[2]string]string // labels of flows
	unnamed map[string]bool      // elements with generated names
	marking net.Marking          // nil unless the picture is of a case
	busy    net.Bits
}

// pen returns the function that draws the picture in a format.
func (p picture) pen(format string) func(w io.Writer) error {
	return func(w io.Writer) (err error) {
		switch format {
		case "svg":
			return svg.Draw(w, p.n, svg.Options{
				Title: p.title, Labels: p.labels, Flows: p.flows, Unnamed: p.unnamed, Marking: p.marking, Busy: p.busy})
		case "mermaid":
			_, err = io.WriteString(w, net.Mermaid(p.n, p.marking))
		default:
			_, err = io.WriteString(w, net.DOT(p.n, p.marking))
		}
		return err
	}
}
