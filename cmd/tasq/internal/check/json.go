package check

import (
	"io"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// JSON writes one object per line: one for every net, and one for every unreadable file. The format is stable: fields
// may be added, but their meaning does not change. docs/verification.md describes it.
type JSON struct{ W io.Writer }

// Row is one object of the output.
type Row struct {
	File     string       `json:"file"`
	Format   string       `json:"format,omitempty"` // absent for an unreadable file, and for a workflow of a program
	Net      string       `json:"net,omitempty"`
	Label    string       `json:"label,omitempty"`
	Line     int          `json:"line,omitempty"` // of the declaration of the net
	Verdict  string       `json:"verdict"`        // see [Verdict]
	Findings []RowFinding `json:"findings"`
	Warnings []RowFinding `json:"warnings"`           // with the first net of a file, also what is not in its nets
	Problems []RowProblem `json:"problems,omitempty"` // of a net that is not well-formed, or an unreadable file
	Allowed  []net.Code   `json:"allowed,omitempty"`
	// Incomplete means that there may be further findings, and Exhausted is the budget that ran out.
	Incomplete bool      `json:"incomplete,omitempty"`
	Exhausted  string    `json:"exhausted,omitempty"`
	States     int       `json:"states"`            // number of visited states
	Partial    bool      `json:"partial,omitempty"` // part of the file is not in its nets, see notes
	Notes      []RowNote `json:"notes,omitempty"`   // with the first net of a file
	Omitted    int       `json:"omittedNotes,omitempty"`
}

// RowFinding is a finding or a warning.
type RowFinding struct {
	Code     string       `json:"code"`
	Subject  string       `json:"subject,omitempty"`
	Text     string       `json:"text"`
	Fix      string       `json:"fix,omitempty"`
	Elements []RowElement `json:"elements,omitempty"` // the subject first
	Witness  *RowWitness  `json:"witness,omitempty"`
}

// RowElement is a task, a condition or a flow.
type RowElement struct {
	Name string `json:"name"`
	Line int    `json:"line,omitempty"`
}

// RowWitness is a run that shows a finding.
type RowWitness struct {
	Text    string      `json:"text"` // as text
	Steps   []RowStep   `json:"steps"`
	Marking []RowTokens `json:"marking"` // at the end
	Busy    []string    `json:"busy,omitempty"`
	Repeats int         `json:"repeats,omitempty"` // the last steps that can be repeated indefinitely; 0 if none
	Long    bool        `json:"long,omitempty"`    // may not be a shortest run
}

// RowStep is one step of a run.
type RowStep struct {
	Task    string   `json:"task"`
	Moment  string   `json:"moment,omitempty"` // "start" or "complete"; absent for both
	Input   string   `json:"input,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	Routing bool     `json:"routing,omitempty"`
}

// RowTokens is the marking of one condition.
type RowTokens struct {
	Condition string `json:"condition"`
	Tokens    int    `json:"tokens"`
}

// RowProblem is a problem of a net that is not well-formed, or of an unreadable file.
type RowProblem struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text"`
	Line    int    `json:"line,omitempty"`
}

// RowNote is something that was read differently.
type RowNote struct {
	Code    string `json:"code"`
	Element string `json:"element,omitempty"`
	Text    string `json:"text"`
	Line    int    `json:"line,omitempty"`
}

// File writes the objects of one file.
func (j JSON) File(f *File) error {
	if f.Passed {
		return nil
	}
	e := printable.NewEncoder(j.W)
	if f.Err != nil {
		row := Row{File: f.Name, Verdict: Unreadable.String(), Findings: []RowFinding{}, Warnings: []RowFinding{}}
		for _, m := range f.Messages() {
			row.Problems = append(row.Problems, RowProblem{m.Code, m.Subject, m.Text, m.Pos.Line})
		}
		return e.Encode(row)
	}
	for i := range f.Nets {
		row := f.Nets[i].row(f)
		if i == 0 {
			for _, m := range f.noteMessages() {
				row.Warnings = append(row.Warnings, RowFinding{Code: m.Code, Subject: m.Subject, Text: m.Text,
					Elements: []RowElement{{m.Subject, m.Pos.Line}}})
			}
			for _, n := range f.Notes.Notes {
				row.Notes = append(row.Notes, RowNote{string(n.Code), n.Element, n.Text, n.Line})
			}
			row.Omitted = f.Notes.Omitted
		}
		if err := e.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

func (n *Net) row(f *File) Row {
	row := Row{
		File: f.Name, Net: n.Name, Label: n.Label, Line: n.Pos.Line, Verdict: n.Verdict().String(),
		Findings: findingRows(n.Report.Findings), Warnings: findingRows(n.Report.Warnings), Allowed: n.Allowed,
		States: n.Report.States, Partial: f.Partial,
	}
	if !f.Defined {
		row.Format = f.Format.String()
	}
	if n.Report.Exhausted != verify.NoLimit {
		row.Incomplete, row.Exhausted = true, n.Report.Exhausted.String()
	}
	for _, p := range n.Problems {
		row.Problems = append(row.Problems, RowProblem{string(p.Code), p.Subject, p.Text, p.Pos.Line})
	}
	return row
}

func findingRows(list []verify.Finding) []RowFinding {
	rows := make([]RowFinding, 0, len(list))
	for _, f := range list {
		row := RowFinding{Code: string(f.Code), Subject: f.Subject, Text: f.Text, Fix: f.Fix}
		for _, e := range f.Elements {
			row.Elements = append(row.Elements, RowElement{e.Name, e.Pos.Line})
		}
		if f.Witness != nil {
			row.Witness = witnessRow(f.Witness)
		}
		rows = append(rows, row)
	}
	return rows
}

func witnessRow(w *verify.Witness) *RowWitness {
	row := &RowWitness{
		Text: w.String(), Steps: make([]RowStep, 0, len(w.Steps)), Marking: make([]RowTokens, 0, len(w.Marking)),
		Busy: w.Busy, Repeats: w.Repeats, Long: w.Long,
	}
	for _, s := range w.Steps {
		moment := [...]string{verify.Whole: "", verify.Starts: "start", verify.Completes: "complete"}[s.Moment]
		row.Steps = append(row.Steps, RowStep{s.Task, moment, s.Input, s.Outputs, s.Routing})
	}
	for _, m := range w.Marking {
		row.Marking = append(row.Marking, RowTokens{m.Condition, m.Count})
	}
	return row
}
