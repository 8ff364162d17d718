package pnml

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

const maxNumber = 1<<31 - 1

// text returns the content of a label: <text> in the standard, <value> in older files, bare text in some.
func text(label *xmlread.Element) string {
	if label == nil {
		return ""
	}
	for _, name := range []string{"text", "value"} {
		if c := label.Child(name); c != nil {
			return c.Text
		}
	}
	return label.Text
}

// number reads the number in a label. PIPE writes the colour of the tokens before it, "Default,1", and TAPAAL uses an
// attribute instead of a label.
func (d *decoder) number(owner *xmlread.Element, name string, missing int) (int, error) {
	label := owner.Child(name)
	s, line := text(label), owner.Line
	if label != nil {
		line = label.Line
	} else if s = owner.Attr(name); strings.HasPrefix(s, "[") {
		s = "" // a time interval, in a timed net
	}
	written := s
	if strings.Contains(s, ",") {
		var fine bool
		if s, fine = d.ofOneColor(s); !fine {
			return 0, &Error{File: d.file, Line: line, Code: Unsupported, Element: owner.String(),
				Text: "its " + name + " is " + xmlread.Quote(written) + ", tokens of several colors; only nets of one color are read"}
		}
	}
	if s = strings.TrimSpace(s); s == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && 0 <= n && n <= maxNumber {
		return int(n), nil
	}
	refusal := &Error{File: d.file, Line: line, Code: Malformed, Element: owner.String(),
		Text: "its " + name + " is " + xmlread.Quote(written) + ", which is no number of tokens; write a whole number, 0 or more"}
	if err == nil && n > maxNumber || errors.Is(err, strconv.ErrRange) && s[0] != '-' {
		refusal.Code = TooLarge
		refusal.Text = "its " + name + " is " + xmlread.Quote(written) + "; at most " + strconv.Itoa(maxNumber) +
			" tokens are read, and the net hardly needs so many: try it with a few"
	}
	return 0, refusal
}

// ofOneColor reads PIPE's "Default,0,Red,2": the number of the one color of which there are any. It reports false if there are tokens of
// another color, here or elsewhere in the net.
func (d *decoder) ofOneColor(s string) (number string, fine bool) {
	parts := strings.Split(s, ",")
	number = parts[len(parts)-1]
	for i := 0; i+1 < len(parts); i += 2 {
		color, n := strings.TrimSpace(parts[i]), strings.TrimSpace(parts[i+1])
		if n == "0" {
			continue
		}
		if d.color != "" && d.color != color {
			return "", false
		}
		d.color, number = color, n
	}
	return number, true
}

// capacity is how many tokens a place can hold; 0 if there is no limit, which some tools write as 0 or in words.
func capacity(place *xmlread.Element) int {
	label := place.Child("capacity")
	if label == nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(text(label)))
	if err != nil || n < 0 || n >= maxNumber {
		return 0
	}
	return n
}

// noteUnknown adds a note on an unknown element, once for each name.
func (d *decoder) noteUnknown(seen map[string]bool, el *xmlread.Element) {
	if key := "<" + el.Name; !seen[key] {
		seen[key] = true
		d.result.Report.Add(Note{Code: UnknownElement, Line: el.Line, Element: el.String(),
			Text: "PNML has no such element in a net; it and any further ones are passed over", Raw: el.Raw()})
	}
}

// noteTool adds a note on another tool's annotation of the whole net, once for each tool.
func (d *decoder) noteTool(seen map[string]bool, el *xmlread.Element) {
	name := el.Attr("tool")
	if seen[name] {
		return
	}
	seen[name] = true
	d.result.Report.Add(Note{Code: NotCarried, Line: el.Line, Element: "toolspecific " + xmlread.Quote(name),
		Text: "annotations of that tool are not carried", Raw: el.Raw()})
}

// noteFinalMarkings adds a note on final markings that are not empty. Many files have an empty one.
func (d *decoder) noteFinalMarkings(el *xmlread.Element) {
	said := false
	for marking := range el.Named("marking") {
		said = said || marking.HasChildren()
	}
	if said {
		d.result.Report.Add(Note{Code: NotCarried, Line: el.Line, Element: el.String(), Raw: el.Raw(),
			Text: "a run counts as complete when every place but the sinks is empty, whatever final markings are written"})
	}
}
