package scenario

import (
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// separator is the line between a command and its output.
const separator = "----"

// File is a scenario file that was read. It keeps the text, for [File.Rewrite].
type File struct {
	Name     string // as given to [Parse]
	Commands []*Command
	text     string
}

// Command is one command of a scenario file, with the output that it must print.
type Command struct {
	Pos      net.Pos
	Comments []string // the comment lines right above, as written
	Words    []string // what stands between spaces on the command's line, but for the arguments
	Args     []Arg    // the key=value words, in the order of the line
	Input    []string // the lines between the command and "----", as written
	Expected []string // the lines of the output; empty in a file whose outputs are still to be recorded

	from, to int    // the bytes of Expected in the file
	newline  string // what ends the line of "----"; it has no "\n" if the file ends there
}

// Arg is one key=value word of a command.
type Arg struct{ Key, Value string }

// Parse reads a scenario file; name is what its positions and errors say. The error is a [SyntaxErrors] with
// all that is wrong with the form of the file. A command that makes no sense is no such thing: executing it prints
// "error: syntax", see [Command.Action].
func Parse(name string, text []byte) (*File, error) {
	f := &File{Name: name, text: string(text)}
	if err := mustBeText(net.Pos{File: name, Line: 1}, f.text); err != nil {
		return nil, err
	}
	r := &reader{text: f.text, name: name, to: len(f.text) - len(strings.TrimPrefix(f.text, byteOrderMark))}
	var comments []string
	for r.next() && !r.errs.full() {
		switch {
		case r.blank():
			comments = nil
		case strings.HasPrefix(strings.TrimSpace(r.line), "#"):
			comments = append(comments, r.line)
		case r.separates():
			r.errs.addf(r.pos(), "%q without a command; an output ends at the first blank line", separator)
			r.expected(&Command{})
		default:
			if c, ok := r.command(comments); ok {
				f.Commands = append(f.Commands, c)
			}
			comments = nil
		}
	}
	if err := r.errs.asError(); err != nil {
		return nil, err
	}
	return f, nil
}

// reader goes through a scenario file line by line.
type reader struct {
	text     string
	name     string
	line     string // the current line, without what ends it
	number   int    // of the current line, from 1
	from, to int    // the bytes of the current line and what ends it
	errs     SyntaxErrors
}

// next goes on to the next line. After the last one it returns false, and the current line is an empty one at the end.
func (r *reader) next() bool {
	r.from = r.to
	if r.from == len(r.text) {
		r.line = ""
		return false
	}
	length := strings.IndexByte(r.text[r.from:], '\n') + 1
	if length == 0 {
		length = len(r.text) - r.from
	}
	r.to += length
	r.number++
	r.line = strings.TrimSuffix(strings.TrimSuffix(r.text[r.from:r.to], "\n"), "\r")
	return true
}

func (r *reader) pos() net.Pos { return net.Pos{File: r.name, Line: r.number} }

func (r *reader) blank() bool { return blank(r.line) }

func (r *reader) separates() bool { return strings.TrimRight(r.line, " \t\r") == separator }

// blank reports whether a line ends an output. An editor may leave spaces on it.
func blank(line string) bool { return strings.TrimSpace(line) == "" }

// command reads a command from its line to the end of its output. False means that it has none.
func (r *reader) command(comments []string) (*Command, bool) {
	c := &Command{Pos: r.pos(), Comments: comments}
	for _, word := range strings.Fields(r.line) {
		if key, value, ok := strings.Cut(word, "="); ok && IsName(key) {
			c.Args = append(c.Args, Arg{key, value})
		} else {
			c.Words = append(c.Words, word)
		}
	}
	header := strings.TrimSpace(r.line)
	// Only a net may have blank lines in it. Elsewhere one shows that the "----" was forgotten, and reading on would
	// take the next command for input.
	notation := len(c.Words) > 0 && c.Words[0] == string(VerbDefine)
	for r.next() && !r.separates() {
		if r.blank() && !notation {
			break
		}
		c.Input = append(c.Input, r.line)
	}
	if !r.separates() {
		r.errs.addf(c.Pos, "%s has no %q line; expected one between a command and its output", quote(header), separator)
		return nil, false
	}
	r.expected(c)
	return c, true
}

// expected reads the lines after "----" up to a blank one or the end of the file.
func (r *reader) expected(c *Command) {
	c.newline = r.text[r.from+len(r.line) : r.to]
	c.from, c.to = r.to, r.to
	for r.next() && !r.blank() {
		if r.separates() {
			r.errs.addf(r.pos(), "%q stands inside an output; expected a blank line before the next command", separator)
		}
		c.Expected = append(c.Expected, r.line)
		c.to = r.to
	}
}

// Workflows reads the net notation in the command's input, with positions in the scenario file. Its errors are those of
// [ParseNotation].
func (c *Command) Workflows() ([]*Workflow, error) {
	at := net.Pos{File: c.Pos.File, Line: c.Pos.Line + 1}
	return ParseNotation(at, strings.Join(c.Input, "\n"))
}
