package scenario

import (
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// separator is the line between a command and its output.
const separator = "----"

// File is a parsed scenario file. It keeps the text, for [File.Rewrite].
type File struct {
	Name     string // as given to [Parse]
	Commands []*Command
	text     string
}

// Command is a command of a scenario file, with its expected output.
type Command struct {
	Pos      net.Pos
	Comments []string // the comment lines directly above, as written
	Words    []string // the words of the line that are not arguments
	Args     []Arg    // the key=value words, in the order of the line
	Input    []string // the lines between the command and "----", as written
	Expected []string // the lines of the output; empty if no output was recorded

	from, to int    // the bytes of Expected in the file
	newline  string // the end of the "----" line; without "\n" at the end of the file
}

// Arg is a key=value word of a command.
type Arg struct{ Key, Value string }

// Parse parses a scenario file; name is its name in positions and errors. The error is a [SyntaxErrors] with all errors
// in the form of the file. An invalid command is not such an error: its execution prints "error: syntax", see
// [Command.Action].
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

// reader reads a scenario file line by line.
type reader struct {
	text     string
	name     string
	line     string // the current line without its end
	number   int    // its number, from 1
	from, to int    // the bytes of the current line with its end
	errs     SyntaxErrors
}

// next reads the next line. After the last one it returns false, and the current line is empty.
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

// blank reports whether a line ends an output. It may have spaces, as some editors leave them.
func blank(line string) bool { return strings.TrimSpace(line) == "" }

// command parses a command, from its line to the end of its output; false if the command is invalid.
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
	// Only nets may have blank lines. In other commands a blank line shows that "----" is missing, and the next command
	// would be read as input.
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

// expected reads the lines after "----" up to a blank line or the end of the file.
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

// Workflows parses the input of the command as notation, with positions in the scenario file. Its errors are those of
// [ParseNotation].
func (c *Command) Workflows() ([]*Workflow, error) {
	at := net.Pos{File: c.Pos.File, Line: c.Pos.Line + 1}
	return ParseNotation(at, strings.Join(c.Input, "\n"))
}
