package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
)

// Text writes the results as text: a line for each message, in the form that editors recognize, followed by an indented
// run that shows it and a possible fix, and a summary at the end.
type Text struct {
	W       io.Writer
	Verbose bool // list every net, and what could not be read from its file
	Quiet   bool // no messages about nets, if only verdicts are compared
	tally   tally
}

// tally counts verdicts.
type tally struct {
	files, passed int
	nets          int
	by            [Unreadable + 1]int // nets by verdict; for unreadable, files
	partial       int                 // files
	warnings      int
	allowed       int
}

func (t *tally) add(f *File) {
	if f.Passed {
		t.passed++
		return
	}
	if !f.Defined {
		t.files++
	}
	t.nets += len(f.Nets)
	if f.Err != nil {
		t.by[Unreadable]++
	}
	if f.Partial {
		t.partial++
	}
	for i := range f.Nets {
		t.by[f.Nets[i].Verdict()]++
		if f.Nets[i].Verdict() == Unsound && f.Nets[i].Outcome() == Sound {
			t.allowed++
		}
	}
}

// File writes the messages of one file.
func (t *Text) File(f *File) error {
	t.tally.add(f)
	if f.Passed {
		return nil
	}
	var b strings.Builder
	for _, m := range f.Messages() {
		if m.Level == Warning {
			t.tally.warnings++
		}
		if !t.Quiet || f.Err != nil {
			t.message(&b, m)
		}
	}
	for i := range f.Nets {
		if n := &f.Nets[i]; t.Verbose || len(n.Allowed) > 0 {
			fmt.Fprintf(&b, "%s: %s is %s%s%s\n", at(n.Pos), printable.Line(n.Name), n.Verdict(), skippedParts(f), allows(n))
		}
	}
	if t.Verbose {
		for _, note := range f.Notes.Notes {
			if slices.Contains(WarningCodes(), net.Code(note.Code)) {
				continue // it was written as a warning
			}
			fmt.Fprintf(&b, "%s:%s\n", printable.Line(f.Name), printable.Line(note.String()))
		}
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// skippedParts returns a remark if a verdict is not about the whole file.
func skippedParts(f *File) string {
	if f.Partial {
		return ", as far as it was read"
	}
	return ""
}

// allows lists the findings that a definition allows.
func allows(n *Net) string {
	if len(n.Allowed) == 0 {
		return ""
	}
	codes := make([]string, len(n.Allowed))
	for i, c := range n.Allowed {
		codes[i] = string(c)
	}
	return "; it allows " + strings.Join(codes, ", ")
}

func (t *Text) message(b *strings.Builder, m Message) {
	level := [...]string{Warning: "warning: ", Allowed: "allowed: ", Failure: ""}[m.Level]
	name := m.Code
	if m.Finding != nil {
		name = m.Finding.String()
	}
	fmt.Fprintf(b, "%s: %s%s: %s", at(m.Pos), level, printable.Line(name), printable.Line(m.Text))
	if m.Net != nil && m.Net.Name != "" {
		fmt.Fprintf(b, " [%s]", printable.Line(m.Net.Name))
	}
	b.WriteByte('\n')
	if m.Finding != nil && m.Finding.Witness != nil {
		fmt.Fprintf(b, "    run: %s\n", printable.Line(m.Finding.Witness.String()))
	}
	if m.Fix != "" {
		fmt.Fprintf(b, "    fix: %s\n", printable.Line(m.Fix))
	}
	var others []string
	for _, o := range m.Others {
		where := at(o.Pos)
		if o.Pos.File == m.Pos.File {
			where = fmt.Sprintf("line %d", o.Pos.Line)
		}
		if o.Name != "" {
			where = o.Name + " at " + where
		}
		if !slices.Contains(others, where) {
			others = append(others, where)
		}
	}
	const most = 6
	if more := len(others) - most; more > 0 {
		others = append(others[:most], fmt.Sprintf("%d more", more))
	}
	if len(others) > 0 {
		fmt.Fprintf(b, "    see: %s\n", printable.Line(strings.Join(others, ", ")))
	}
}

// End writes the summary: "3 files, 4 nets: 3 sound, 1 unsound; 2 warnings".
func (t *Text) End() error {
	_, err := fmt.Fprintln(t.W, t.tally.String())
	return err
}

// String counts in words: "3 files, 4 nets: 3 sound, 1 unsound; 2 warnings".
func (t *tally) String() string {
	var parts []string
	for v, n := range t.by[:Unreadable] {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Verdict(v)))
		}
	}
	s := plural(t.nets, "net")
	if t.files > 0 || t.nets == 0 {
		s = plural(t.files, "file") + ", " + s
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	for _, extra := range []struct {
		n    int
		text string
	}{
		{t.allowed, fmt.Sprintf("%d unsound as allowed", t.allowed)},
		{t.by[Unreadable], plural(t.by[Unreadable], "file") + " unreadable"},
		{t.partial, plural(t.partial, "file") + " read in part, with verdicts on that part"},
		{t.warnings, plural(t.warnings, "warning")},
		{t.passed, plural(t.passed, "file") + " passed over as no models"},
	} {
		if extra.n > 0 {
			s += "; " + extra.text
		}
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
