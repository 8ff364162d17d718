package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// conversion is one call of "tasq convert".
type conversion struct {
	a               *app
	format, to, net string
	quiet           bool
}

func (a *app) convert() *cobra.Command {
	c := &conversion{a: a}
	cmd := &cobra.Command{
		Use: "convert FILE...", Short: "convert models of other tools into net notation, PNML or pictures",
		Long: paragraph("Read models in net notation, PNML, YAWL or BPMN (detected from the content) and write them in another format; - is " +
			"standard input. A file in PNML or net notation can hold several nets, a picture only one. Elements that cannot be represented " +
			"are listed on standard error, with their lines. If a file cannot be converted, the others still are."),
		Example: `  tasq convert order.bpmn --to order.net
  tasq convert models/*.yawl -f pnml --to nets/
  tasq convert order.bpmn -f svg --net Customer > customer.svg
  git show HEAD:order.bpmn | tasq convert - -f net`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("tasq convert needs a FILE; see tasq convert -h")
			}
			return stdinOnce(args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&c.format, "format", "f", "", "output `format`: pnml, net, svg, dot or mermaid (default: by the extension of --to)")
	f.StringVarP(&c.to, "to", "t", "", "write to this `file`, or into this folder")
	f.StringVar(&c.net, "net", "", "convert only the net with this `name`")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not list elements that cannot be represented")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := noTable(cmd); err != nil {
			return err
		}
		if c.format, err = chooseFormat(c.format, c.to, append(modelFormats, drawFormats...)); err != nil {
			return err
		}
		return a.run(c.run)(cmd, args)
	}
	return cmd
}

func (c *conversion) run(ctx context.Context, args []string) error {
	if err := room(len(args), c.to); err != nil { // before any file is read
		return err
	}
	var outputs []output
	var failed []error
	for _, path := range args {
		made, err := c.file(path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && len(args) == 1 {
			return err
		}
		if err != nil {
			c.a.complain(err)
			failed = append(failed, err)
		}
		outputs = append(outputs, made...)
	}
	if err := c.a.write(c.to, outputs, args); err != nil {
		return err
	}
	if len(failed) > 0 {
		return exit(exitCode(failed[0]), "%d of %d files are not converted", len(failed), len(args))
	}
	return nil
}

// file converts one model, and lists the elements that cannot be represented. It returns no outputs if it fails.
func (c *conversion) file(path string) ([]output, error) {
	f, err := c.a.readModel(path)
	if err != nil {
		return nil, err
	}
	from := f.All()
	if c.net == "" {
		from = from[:len(f.Nets)] // a collaboration repeats its pools
	}
	nets, err := chooseNets(f.Name, from, c.net)
	if err != nil {
		return nil, err
	}
	made, err := c.outputs(f, nets)
	if err != nil {
		return nil, err
	}
	c.report(f, nets)
	return made, nil
}

// outputs returns the output files of one model.
func (c *conversion) outputs(f *model.File, nets []*model.Net) ([]output, error) {
	if slices.Contains(modelFormats, c.format) {
		o, err := render(baseName(f.Name)+endings[c.format], func(w io.Writer) error {
			if c.format == "pnml" {
				return writePNML(w, f.Name, nets)
			}
			return writeNotation(w, f.Name, nets)
		})
		return []output{o}, err
	}
	all := make([]output, len(nets))
	for i, n := range nets {
		p, err := pictureOf(f.Name, n)
		if err != nil {
			return nil, err
		}
		if all[i], err = render(outputName(f, n)+endings[c.format], p.pen(c.format)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// writePNML writes workflows, or the plain nets of a PNML file that are not workflows.
func writePNML(w io.Writer, path string, nets []*model.Net) error {
	var defs []*net.Definition
	var plain []*net.Petri
	for _, n := range nets {
		if n.Definition != nil {
			defs = append(defs, n.Definition)
		}
		if n.Petri != nil {
			plain = append(plain, n.Petri)
		}
	}
	var err error
	switch len(nets) {
	case len(defs):
		err = pnml.Encode(w, defs...)
	case len(plain):
		err = pnml.EncodePetri(w, plain...)
	default:
		return usagef("%s has nets that can only be workflows and nets that cannot be workflows; choose one with --net", path)
	}
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	return nil
}

// writeNotation writes workflows. Those that were read from net notation keep all their properties.
func writeNotation(w io.Writer, path string, nets []*model.Net) error {
	for _, n := range nets {
		var text string
		var err error
		switch {
		case n.Workflow != nil:
			text = scenario.Format([]*scenario.Workflow{n.Workflow})
		case n.Definition == nil:
			return usagef("%s: no workflow can be made of net %s: %s", path, n.Name, "net notation has no weights, no "+
				"tasks without a flow in and no nets without an end")
		default:
			if text, err = scenario.Encode(n.Definition); err != nil {
				return usagef("%s: %w", path, err)
			}
		}
		if _, err = io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// report lists the elements that could not be represented when the model was read or written.
func (c *conversion) report(f *model.File, nets []*model.Net) {
	if c.quiet {
		return
	}
	report := f.Report
	for _, n := range nets {
		for _, text := range c.lost(n) {
			report.Add(text)
		}
	}
	for _, note := range report.Notes {
		gap := "" // a note begins with its line, if it has one
		if note.Line == 0 {
			gap = " "
		}
		fmt.Fprintf(c.a.Err, "%s:%s%s\n", f.Name, gap, printable.Line(note.String()))
	}
	if report.Omitted > 0 {
		fmt.Fprintf(c.a.Err, "%s: and %d more\n", f.Name, report.Omitted)
	}
}

// lost lists the elements of a net that the output format cannot represent.
func (c *conversion) lost(n *model.Net) []pnml.Note {
	var notes []pnml.Note
	if len(n.Labels) > 0 && (c.format == "pnml" || c.format == "net") {
		notes = append(notes, pnml.Note{Code: pnml.NotCarried, Element: fmt.Sprintf("net %q", n.Name),
			Text: fmt.Sprintf("%s for people; the names that are made of them or of the ids are written",
				printable.Plural(len(n.Labels), "label"))})
	}
	if n.Workflow == nil || c.format == "net" {
		return notes
	}
	for i, o := range n.Workflow.Tasks {
		if o != scenario.DefaultOptions() {
			t := &n.Definition.Tasks[i]
			notes = append(notes, pnml.Note{Code: pnml.NotCarried, Line: t.Pos.Line, Element: fmt.Sprintf("task %q", t.Name),
				Text: "what it says beyond the net: items, cases, policy, retry, timeout or auto"})
		}
	}
	return notes
}
