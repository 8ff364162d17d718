package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/script"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// conversion is one call of "tasq convert".
type conversion struct {
	a             *app
	form, to, net string
	quiet         bool
}

func (a *app) convert() *cobra.Command {
	c := &conversion{a: a}
	cmd := &cobra.Command{
		Use: "convert FILE...", Short: "turn models of other tools into net notation, PNML or pictures",
		Long: paragraph("Read models in net notation, PNML, YAWL or BPMN (what a file is shows in its content) and write " +
			"them in another form. PNML and net notation hold all nets of a file, and a picture one. What has no place in a net, " +
			"or not in the form that is written, is listed on standard error, with its line."),
		Example: `  tasq convert order.bpmn -o order.net
  tasq convert models/*.yawl -t pnml -o nets/
  tasq convert order.bpmn -t svg --net Customer > customer.svg`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("tasq convert needs a FILE; see tasq convert -h")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&c.form, "to", "t", "", "`form` to write: pnml, net, svg, dot or mermaid (default: by the name after -o)")
	f.StringVarP(&c.to, "output", "o", "", "write into this `file`, or into this folder")
	f.StringVar(&c.net, "net", "", "take only the net with this `name`")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not list what is not carried")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if c.form, err = chooseForm("-t", c.form, c.to, append(modelForms, drawForms...)); err != nil {
			return err
		}
		return a.run(c.run)(cmd, args)
	}
	return cmd
}

func (c *conversion) run(ctx context.Context, args []string) error {
	var outputs []output
	for _, path := range args {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := c.a.readModel(path)
		if err != nil {
			return err
		}
		nets, err := chooseNets(f, c.net)
		if err != nil {
			return err
		}
		made, err := c.outputs(f, nets)
		if err != nil {
			return err
		}
		outputs = append(outputs, made...)
		c.report(f, nets)
	}
	return c.a.write(c.to, outputs, args)
}

// outputs are the files that one model becomes.
func (c *conversion) outputs(f *model.File, nets []*model.Net) ([]output, error) {
	switch c.form {
	case "pnml":
		write, err := asPNML(f.Name, nets)
		return []output{{name: baseName(f.Name) + endings[c.form], write: write}}, err
	case "net":
		text, err := asNotation(f.Name, nets)
		write := func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
		return []output{{name: baseName(f.Name) + endings[c.form], write: write}}, err
	}
	var all []output
	for _, n := range nets {
		p, err := pictureOf(f.Name, n)
		if err != nil {
			return nil, err
		}
		all = append(all, output{name: outputName(f, n) + endings[c.form], write: p.pen(c.form)})
	}
	return all, nil
}

// asPNML writes workflows, or the plain nets of a file in PNML that no workflows can be made of.
func asPNML(path string, nets []*model.Net) (func(w io.Writer) error, error) {
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
	refused := func(err error) error {
		if err != nil {
			err = usagef("%s: %w", path, err)
		}
		return err
	}
	switch len(nets) {
	case len(defs):
		return func(w io.Writer) error { return refused(pnml.Encode(w, defs...)) }, nil
	case len(plain):
		return func(w io.Writer) error { return refused(pnml.EncodePetri(w, plain...)) }, nil
	}
	return nil, usagef("%s has nets that are no workflows beside others that are nothing else; choose one with --net",
		path)
}

// asNotation writes workflows; those that were text before keep all that the notation says of them.
func asNotation(path string, nets []*model.Net) (string, error) {
	var b strings.Builder
	for _, n := range nets {
		switch {
		case n.Workflow != nil:
			b.WriteString(script.Format([]*script.Workflow{n.Workflow}))
		case n.Definition == nil:
			return "", usagef("%s: no workflow can be made of net %s: %s", path, n.Name, "net notation has no weights, no "+
				"tasks without a flow in and no nets without an end")
		default:
			text, err := script.Encode(n.Definition)
			if err != nil {
				return "", usagef("%s: %w", path, err)
			}
			b.WriteString(text)
		}
	}
	return b.String(), nil
}

// report lists what did not come across: when the model was read, and now that it is written.
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
		fmt.Fprintf(c.a.Err, "%s:%s%s\n", f.Name, gap, plain(note.String()))
	}
	if report.Omitted > 0 {
		fmt.Fprintf(c.a.Err, "%s: and %d more\n", f.Name, report.Omitted)
	}
}

// lost lists what a net has and the form that is written has no place for.
func (c *conversion) lost(n *model.Net) []pnml.Note {
	var notes []pnml.Note
	if len(n.Labels) > 0 && (c.form == "pnml" || c.form == "net") {
		notes = append(notes, pnml.Note{Code: pnml.NotCarried, Element: fmt.Sprintf("net %q", n.Name),
			Text: fmt.Sprintf("%s for people; the names that are made of them or of the ids are written",
				plural(len(n.Labels), "label"))})
	}
	if n.Workflow == nil || c.form == "net" {
		return notes
	}
	for i, o := range n.Workflow.Tasks {
		if o != script.DefaultOptions() {
			t := &n.Definition.Tasks[i]
			notes = append(notes, pnml.Note{Code: pnml.NotCarried, Line: t.Pos.Line, Element: fmt.Sprintf("task %q", t.Name),
				Text: "what it says beyond the net: items, cases, policy, retry, timeout or auto"})
		}
	}
	return notes
}
