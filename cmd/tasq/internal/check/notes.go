package check

import (
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/verify"
)

// NoteCodes lists the codes of notes that are warnings: part of a file is not in its nets, or is read in a simplified
// form, so that a verdict is not about the whole file.
func NoteCodes() []net.Code {
	return []net.Code{net.Code(bpmn.LeftOut), net.Code(bpmn.MultiInstance)}
}

// WarningCodes lists the codes of all warnings: those of package net and [NoteCodes], sorted.
func WarningCodes() []net.Code {
	return slices.Sorted(slices.Values(slices.Concat(verify.WarningCodes(), NoteCodes())))
}

// isPartial reports whether part of the file is not in its nets. A plain Petri net is verified exactly as it is in the
// file, except for a net within it.
func isPartial(f *model.File) bool {
	return slices.ContainsFunc(f.Report.Notes, func(n bpmn.Note) bool {
		return n.Code == bpmn.LeftOut && (f.Format != model.PNML || strings.HasPrefix(n.Element, "net "))
	})
}

// noteMessages returns the notes that are warnings.
func (f *File) noteMessages() []Message {
	var all []Message
	for _, n := range f.Notes.Notes {
		code := net.Code(n.Code)
		if slices.Contains(NoteCodes(), code) && !slices.Contains(f.silence, code) {
			all = append(all, Message{Level: Warning, Code: string(code), Subject: n.Element, Text: n.Element + ": " + n.Text,
				Pos: net.Pos{File: f.Name, Line: n.Line}})
		}
	}
	return all
}
