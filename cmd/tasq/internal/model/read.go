package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/pnml"
	"github.com/tasq-dev/tasq/net/yawl"
)

// MaxBytes limits the size of every file. The XML readers also limit the depth and the number of elements.
const MaxBytes = 64 << 20

// Open reads the file at a path. The error is that of [OpenFile] or of [Read].
func Open(path string) (*File, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads a model. The name is used in positions and errors. For text, its extension matters: ".txt" means a
// scenario. The error is an [*Error] or a [scenario.SyntaxErrors], both with the line, or that of the reader.
func Read(name string, r io.Reader) (*File, error) {
	b, head, err := peek(r)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name}
	switch root, xml := rootOf(head); {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		err = f.yawl(b)
	case !xml:
		err = f.text(b)
	case root == "pnml" || root == "net":
		err = f.pnml(b)
	case root == "specificationSet" || root == "java":
		err = f.yawl(b)
	case root == "definitions":
		err = f.bpmn(b)
	default:
		err = f.refuse(pnml.WrongFormat, unknownRoot(root))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// peek returns the beginning of a file, up to the root element of XML. A file may begin with a long licence.
func peek(r io.Reader) (*bufio.Reader, []byte, error) {
	for size := 4 << 10; ; size <<= 4 {
		b := bufio.NewReaderSize(r, size)
		head, err := b.Peek(size)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if root, xml := rootOf(head); err != nil || !xml || root != "" || size >= 1<<20 {
			return b, head, nil
		}
		r = b
	}
}

func unknownRoot(root string) string {
	if root == "" {
		return "this is XML without an element at its beginning; expected PNML, YAWL or BPMN"
	}
	const most = 40
	if len(root) > most {
		root = root[:most] + "..."
	}
	return fmt.Sprintf("the root element is %q; that of a PNML file is <pnml>, of YAWL <specificationSet>, of BPMN "+
		"<definitions>", root)
}

func (f *File) refuse(code pnml.Code, text string) error {
	return &Error{File: f.Name, Code: code, Text: text}
}

func (f *File) pnml(r io.Reader) error {
	f.Format = PNML
	result, err := pnml.Decode(r, pnml.Options{File: f.Name, MaxBytes: MaxBytes})
	if err != nil {
		return err
	}
	f.Report = result.Report
	for _, n := range result.Nets {
		one := Net{Definition: n.Definition, Petri: n.Petri, Root: true, Label: n.Label, Labels: n.Labels, IDs: n.IDs,
			Unnamed: n.Unnamed}
		if n.Definition != nil {
			one.Name = n.Definition.Name
		} else {
			one.Name = n.Petri.Name
		}
		if n.Own {
			one.Petri = nil
		}
		f.Nets = append(f.Nets, one)
	}
	f.findRoots()
	return nil
}

func (f *File) yawl(r io.Reader) error {
	f.Format = YAWL
	result, err := yawl.Decode(r, yawl.Options{File: f.Name, MaxBytes: MaxBytes})
	if err != nil {
		return err
	}
	f.Report = result.Report
	for _, n := range result.Nets {
		f.Nets = append(f.Nets, Net{Name: n.Definition.Name, Definition: n.Definition, Root: n.Root, Label: n.Label,
			Labels: n.Labels, IDs: n.IDs, Flows: n.Flows, Unnamed: n.Unnamed})
	}
	return nil
}

func (f *File) bpmn(r io.Reader) error {
	f.Format = BPMN
	result, err := bpmn.Decode(r, bpmn.Options{File: f.Name, MaxBytes: MaxBytes})
	if err != nil {
		return err
	}
	f.Report = result.Report
	f.Nets, f.Collaborations = bpmnNets(result.Nets), bpmnNets(result.Collaborations)
	return nil
}

func bpmnNets(read []bpmn.Net) []Net {
	var nets []Net
	for _, n := range read {
		nets = append(nets, Net{Name: n.Definition.Name, Definition: n.Definition, Root: n.Root, Label: n.Label,
			Labels: n.Labels, IDs: n.IDs, Flows: n.Flows, Unnamed: n.Unnamed})
	}
	return nets
}

func (f *File) text(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	switch {
	case len(data) > MaxBytes:
		return f.refuse(pnml.TooLarge, fmt.Sprintf("the file is longer than the limit of %d bytes", MaxBytes))
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return f.refuse(pnml.WrongFormat, "the text is in UTF-16; save it in UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return f.refuse(pnml.WrongFormat, "this is neither text nor XML; expected net notation, PNML, YAWL or BPMN")
	case !utf8.Valid(data):
		return &Error{File: f.Name, Line: invalidLine(data), Code: pnml.WrongFormat,
			Text: "the text is not in UTF-8; save it in UTF-8"}
	}
	ext := filepath.Ext(f.Name)
	if len(bytes.TrimSpace(data)) == 0 && ext != ".net" && ext != ".txt" {
		return f.refuse(pnml.Empty, "the file is empty")
	}
	if ext == ".txt" || hasLine(string(data), func(l string) bool { return l == "----" }) {
		return f.scenario(data)
	}
	if ext != ".net" && !hasLine(string(data), func(l string) bool { return strings.HasPrefix(l, "workflow") }) {
		return f.refuse(pnml.WrongFormat, "this is no model: a text in net notation has a line \"workflow NAME\", and "+
			"PNML, YAWL and BPMN are XML")
	}
	f.Format = Notation
	parsed, err := scenario.ParseNotation(net.Pos{File: f.Name, Line: 1}, string(data))
	if err != nil {
		return err
	}
	f.add(parsed)
	return nil
}

// invalidLine returns the first line that is not UTF-8, from 1.
func invalidLine(data []byte) int {
	n := 1
	for l := range bytes.Lines(data) {
		if !utf8.Valid(l) {
			return n
		}
		n++
	}
	return n
}

func hasLine(text string, wanted func(line string) bool) bool {
	for l := range strings.Lines(text) {
		if wanted(strings.TrimSpace(l)) {
			return true
		}
	}
	return false
}

// scenario collects the definitions of a scenario. Of a workflow that is defined twice the last definition counts. One
// that is not in net notation is skipped if the scenario expects it to be refused.
func (f *File) scenario(data []byte) error {
	f.Format = Scenario
	parsed, err := scenario.Parse(f.Name, data)
	if err != nil {
		return err
	}
	var all []*scenario.Workflow
	at := make(map[string]int)
	for _, c := range parsed.Commands {
		if action, err := c.Action(); err != nil || action.Verb != scenario.VerbDefine {
			continue
		}
		workflows, err := c.Workflows()
		if err != nil && len(c.Expected) > 0 && strings.HasPrefix(c.Expected[0], "error: ") {
			continue
		}
		if err != nil {
			return err
		}
		for _, w := range workflows {
			if i, known := at[w.Def.Name]; known {
				all[i] = w
				continue
			}
			at[w.Def.Name] = len(all)
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return f.refuse(pnml.Empty, "the scenario defines no workflow")
	}
	f.add(all)
	return nil
}

func (f *File) add(workflows []*scenario.Workflow) {
	for _, w := range workflows {
		f.Nets = append(f.Nets, Net{Name: w.Def.Name, Definition: w.Def, Workflow: w, Root: true})
	}
	f.findRoots()
}

// findRoots marks the nets that a composite task runs as not being roots, if the format does not say so itself.
func (f *File) findRoots() {
	run := make(map[string]bool)
	for _, d := range f.Definitions() {
		for i := range d.Tasks {
			for _, name := range d.Tasks[i].Of {
				run[name] = run[name] || name != d.Name
			}
		}
	}
	for i := range f.Nets {
		f.Nets[i].Root = !run[f.Nets[i].Name]
	}
}
