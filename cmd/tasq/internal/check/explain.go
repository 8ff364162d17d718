package check

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Kind is the kind of a code.
type Kind uint8

// The kinds of code, in the order of their lists.
const (
	KindFinding Kind = iota // a net is not sound
	KindWarning             // probably a mistake
	KindProblem             // a net is not well-formed
	KindNote                // part of a file is not in its nets
)

// String returns "finding", "warning", "problem" or "note".
func (k Kind) String() string {
	return [...]string{"finding", "warning", "problem", "note"}[min(k, KindNote)]
}

// Explanation explains a code.
type Explanation struct {
	Code    net.Code
	Kind    Kind
	Title   string // one sentence
	Meaning string // a paragraph: why it matters, and what to do
	File    string // name of the example file: the code, with the extension of its format
	Example string // a model with the problem, without the initial comment
	whole   string
}

// codes has an example for each code: a model file that begins with a comment, which explains the code in one sentence,
// followed by an empty line and the rest of the explanation.
//
//go:embed codes
var codes embed.FS

// Explanations lists the codes of package net, and [NoteCodes]: findings, warnings, problems and notes, each sorted. A
// code that is both a problem and a warning is listed as a warning.
func Explanations() []Explanation { return slices.Clone(explanations()) }

var explanations = sync.OnceValue(func() []Explanation {
	entries, err := codes.ReadDir("codes")
	if err != nil {
		return nil // the folder is embedded
	}
	var all []Explanation
	for _, e := range entries {
		text, err := codes.ReadFile("codes/" + e.Name())
		if err == nil {
			all = append(all, explanation(e.Name(), string(text)))
		}
	}
	slices.SortFunc(all, func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
	})
	return all
})

func explanation(file, text string) Explanation {
	x := Explanation{Code: net.Code(strings.TrimSuffix(file, path.Ext(file))), File: file, whole: text}
	var comment string
	if rest, xml := strings.CutPrefix(text, "<!--"); xml {
		comment, x.Example, _ = strings.Cut(rest, "-->\n")
	} else {
		var head []string
		for line := range strings.Lines(text) {
			said, is := strings.CutPrefix(line, "#")
			if !is {
				break
			}
			head = append(head, strings.TrimSpace(said))
			text = text[len(line):]
		}
		comment, x.Example = strings.Join(head, "\n"), text
	}
	title, meaning, _ := strings.Cut(strings.TrimSpace(comment), "\n\n")
	x.Title, x.Meaning = title, strings.Join(strings.Fields(meaning), " ")
	switch {
	case slices.Contains(verify.FindingCodes(), x.Code):
		x.Kind = KindFinding
	case slices.Contains(verify.WarningCodes(), x.Code):
		x.Kind = KindWarning
	case slices.Contains(NoteCodes(), x.Code):
		x.Kind = KindNote
	default:
		x.Kind = KindProblem
	}
	return x
}

// Explain returns the explanation of a code; false if there is no such code.
func Explain(code net.Code) (Explanation, bool) {
	all := explanations()
	if i := slices.IndexFunc(all, func(x Explanation) bool { return x.Code == code }); i >= 0 {
		return all[i], true
	}
	return Explanation{}, false
}

// Output returns what checking the example prints.
func (x Explanation) Output() string {
	var b strings.Builder
	t := Text{W: &b}
	_, _ = t.File(Read(x.File, strings.NewReader(x.Example), Options{})), t.End() // a strings.Builder never fails
	return b.String()
}

// Write writes the explanation of the code: its meaning, an example, and what checking the example prints.
func (x Explanation) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s (%s)\n\n%s\n\n%s\n\n%s\n\n%s", x.Code, x.Kind, x.Title, wrap(x.Meaning),
		indent(x.File+":\n\n"+strings.TrimRight(x.Example, "\n")), indent("tasq check "+x.File+"\n\n"+x.Output()))
	return err
}

// WriteCodes lists all codes, one per line.
func WriteCodes(w io.Writer) error {
	var b strings.Builder
	for i, x := range explanations() {
		if i == 0 || explanations()[i-1].Kind != x.Kind {
			fmt.Fprintf(&b, "%ss\n", x.Kind)
		}
		fmt.Fprintf(&b, "  %-22s  %s\n", x.Code, x.Title)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// wrap breaks a paragraph into lines.
func wrap(text string) string {
	const width = 110
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
