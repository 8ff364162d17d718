package check

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Level is the severity of a message.
type Level uint8

// The levels. The zero value is Warning.
const (
	Warning Level = iota // reported, without effect on the exit code
	Allowed              // a finding that the definition allows
	Failure              // causes a negative outcome
)

// Message is a message about a file: a finding, a warning, a problem, or the reason why it cannot be read.
type Message struct {
	Level   Level
	Code    string
	Subject string // the element; "" for the whole net or file
	Text    string // one sentence
	Fix     string // a possible fix, or ""
	Net     *Net   // nil if it is about the file
	Pos     net.Pos
	Others  []verify.Element // the other elements, with their positions
	Finding *verify.Finding  // of a finding or a warning; otherwise nil
}

// Messages lists all messages about the file: what is not in its nets, then the results, in the order of the nets.
func (f *File) Messages() []Message {
	if f.Err != nil {
		return refusals(f.Name, f.Err)
	}
	all := f.noteMessages()
	for i := range f.Nets {
		all = append(all, f.Nets[i].messages()...)
	}
	return all
}

func (n *Net) messages() []Message {
	var all []Message
	for _, p := range n.Problems {
		m := Message{Level: Failure, Code: string(p.Code), Subject: p.Subject, Text: p.Text, Net: n, Pos: p.Pos}
		if !p.Other.IsZero() {
			m.Others = []verify.Element{{Pos: p.Other}}
		}
		all = append(all, m)
	}
	for i := range n.Report.Findings {
		level := Failure
		switch f := &n.Report.Findings[i]; {
		case !n.counts(*f):
			level = Allowed
		case n.Report.Verdict == verify.WeaklySound:
			level = Warning
		}
		all = append(all, n.message(level, &n.Report.Findings[i]))
	}
	switch {
	case len(n.Problems) > 0 || n.Report.Exhausted == verify.NoLimit:
	case n.Report.Verdict == verify.Unknown:
		all = append(all, n.undecided())
	default:
		all = append(all, n.incomplete())
	}
	for i := range n.Report.Warnings {
		all = append(all, n.message(Warning, &n.Report.Warnings[i]))
	}
	return all
}

// undecided returns the message for an unknown verdict.
func (n *Net) undecided() Message {
	return Message{Level: Failure, Code: string(verify.Undecided), Net: n, Pos: n.Pos, Fix: n.more(),
		Text: "whether every case can complete is not decided: " + n.exhausted()}
}

// incomplete returns the message for findings that may not be complete.
func (n *Net) incomplete() Message {
	return Message{Level: Warning, Code: string(verify.Incomplete), Net: n, Pos: n.Pos, Fix: n.more(),
		Text: "there may be more findings than these: " + n.exhausted()}
}

// exhausted says why a verification has not come to its end.
func (n *Net) exhausted() string {
	switch n.Report.Exhausted {
	case verify.LimitGrowth:
		return fmt.Sprintf("as tokens pile up, not every state can be looked at; %d were", n.Report.States)
	case verify.LimitSplit:
		return "an or-split has more than ten flows, and so too many sets of flows to try each"
	case verify.LimitTokens:
		return "a place begins with more tokens than a search counts, or an arc moves more; it counts up to 127"
	}
	return fmt.Sprintf("%s ran out after %d states", n.Report.Exhausted, n.Report.States)
}

// more suggests what to do about an exhausted budget.
func (n *Net) more() string {
	switch n.Report.Exhausted {
	case verify.LimitTime:
		return "give it more time with --time, or move a part of the net into a workflow of its own"
	case verify.LimitMemory:
		return "give it more memory with --memory, or move a part of the net into a workflow of its own"
	case verify.LimitGrowth:
		return "keep tokens from piling up; more states, time or memory are of no use"
	case verify.LimitTokens:
		return "verify it with fewer tokens: divide the tokens and weights of each place by a common factor, or try a few of many equal ones"
	case verify.LimitOrJoin:
		return "make or-joins of a loop and-joins or xor-joins where that is what is meant; more states, time or memory are of no use"
	case verify.LimitSplit:
		return "divide the or-split into several with at most ten flows each; more states, time or memory are of no use"
	}
	return "give it more states with --states, or move a part of the net into a workflow of its own"
}

// message describes a finding. Its position is that of the first element with a known position. For an improper
// completion, that is not the end but what is left over, which says more.
func (n *Net) message(level Level, f *verify.Finding) Message {
	m := Message{
		Level: level, Code: string(f.Code), Subject: f.Subject, Text: f.Text, Fix: f.Fix, Net: n, Finding: f, Pos: n.Pos,
	}
	elements := slices.Clone(f.Elements)
	if f.Code == verify.ImproperCompletion && len(elements) > 1 {
		elements = append(elements[1:], elements[0])
	}
	elements = slices.DeleteFunc(elements, func(e verify.Element) bool { return e.Pos.IsZero() })
	if len(elements) > 0 {
		m.Pos, m.Others = elements[0].Pos, elements[1:]
	}
	return m
}

// refusals returns messages for the reasons why a file cannot be read.
func refusals(name string, err error) []Message {
	if syntax := (scenario.SyntaxErrors)(nil); errors.As(err, &syntax) {
		var all []Message
		for _, e := range syntax {
			all = append(all, Message{Level: Failure, Code: e.Code(), Text: e.Text, Pos: net.Pos{File: name, Line: e.Line}})
		}
		return all
	}
	if several := (model.Errors)(nil); errors.As(err, &several) {
		var all []Message
		for _, e := range several {
			all = append(all, refusals(name, e)...)
		}
		return all
	}
	m := Message{Level: Failure, Code: CodeUnreadable, Text: err.Error(), Pos: net.Pos{File: name}}
	if refusal := (*model.Error)(nil); errors.As(err, &refusal) {
		m.Code, m.Subject, m.Text, m.Pos.Line = string(refusal.Code), refusal.Element, refusal.Text, refusal.Line
		if m.Subject != "" {
			m.Text = m.Subject + ": " + m.Text
		}
	} else if where := (*fs.PathError)(nil); errors.As(err, &where) {
		m.Text = where.Err.Error()
	}
	return []Message{m}
}

// CodeUnreadable is the code of a file that the file system cannot read.
const CodeUnreadable = "unreadable"

// at formats a position as editors expect it: the whole path and the line.
func at(p net.Pos) string {
	if p.Line == 0 {
		return printable.Line(p.File)
	}
	return fmt.Sprintf("%s:%d", printable.Line(p.File), p.Line)
}
