package xmlread

import (
	"fmt"
	"io"
	"strings"
)

// Options configures reading. The zero value reads everything within the default limits.
type Options struct {
	Limits
	File string                 // name of the file for errors; may be empty
	Skip func(name string) bool // elements to skip with their content, by local name; none by default
}

// Parse reads a file into a tree and returns its root. The error is an [*Error], or that of the reader.
func Parse(r io.Reader, o Options) (*Element, error) {
	src, err := ReadAll(r, o.File, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	return ParseString(src, o)
}

// ParseString is [Parse] for a text in memory; the tree shares it.
func ParseString(src string, o Options) (*Element, error) {
	src, err := toUTF8(src, o.File)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, line: 1, lineEnd: "\n", o: o}
	if !strings.Contains(src, "\n") {
		p.lineEnd = "\r" // as XML allows
	}
	p.o.Limits = o.Limits.orDefaults()
	return p.parse()
}

type parser struct {
	src     string
	o       Options
	pos     int
	line    int // of position counted
	lineEnd string
	counted int
	root    *Element
	stack   []frame
	skip    int // depth of the element that is being skipped; 0 for none
	nodes   int
	spare   []Element // elements are allocated in blocks, for speed
	attrs   []Attr    // attributes too
	first   int       // index of the first attribute of the current tag
}

// frame is an open element. Text in several pieces is collected in more, so that many comments between characters still
// take linear time.
type frame struct {
	el   *Element // nil while skipping
	name string   // with its prefix
	line int
	text string
	more *strings.Builder
}

func (p *parser) parse() (*Element, error) {
	if err := p.checkBeginning(); err != nil {
		return nil, err
	}
	for p.pos < len(p.src) {
		i := strings.IndexByte(p.src[p.pos:], '<')
		if i < 0 {
			i = len(p.src) - p.pos
		}
		if err := p.addText(p.src[p.pos:p.pos+i], true); err != nil {
			return nil, err
		}
		if p.pos += i; p.pos == len(p.src) {
			break
		}
		if err := p.markup(); err != nil {
			return nil, err
		}
	}
	if n := len(p.stack); n > 0 {
		open := p.stack[n-1]
		return nil, p.errorAt(open.line, Malformed,
			"<"+open.name+"> is never closed: the file ends inside it, and may have been cut short; save or copy it again")
	}
	if p.root == nil {
		return nil, p.errorAt(0, Empty, "the file has no element")
	}
	return p.root, nil
}

// checkBeginning refuses other kinds of files with an error that names the kind.
func (p *parser) checkBeginning() error {
	s := strings.TrimLeft(p.src, " \t\r\n")
	switch {
	case s == "":
		return p.errorAt(0, Empty, "the file is empty")
	case s[0] != '<':
		return p.errorAt(1, WrongFormat, "this is not XML: it begins with "+Quote(s[:min(len(s), 16)]))
	}
	return nil
}

func (p *parser) errorAt(line int, code Code, text string) *Error {
	return &Error{File: p.o.File, Line: line, Code: code, Text: text}
}

// here returns the line of the current position. Positions only grow, so all lines are counted once.
func (p *parser) here() int {
	p.line += strings.Count(p.src[p.counted:p.pos], p.lineEnd)
	p.counted = p.pos
	return p.line
}

func (p *parser) addText(s string, escaped bool) error {
	s = strings.Trim(s, " \t\r\n")
	if s == "" {
		return nil
	}
	if len(p.stack) == 0 {
		return p.errorAt(p.here(), Malformed, "there is text outside the root element, to be taken out: "+Quote(s[:min(len(s), 16)]))
	}
	f := &p.stack[len(p.stack)-1]
	if f.el == nil {
		return nil
	}
	if escaped {
		s = unescape(s)
	}
	switch {
	case f.text == "" && f.more == nil:
		f.text = s
	case f.more == nil:
		f.more = &strings.Builder{}
		f.more.WriteString(f.text)
		fallthrough
	default:
		f.more.WriteString(s)
	}
	return nil
}

// markup reads the markup that begins with the "<" at the current position.
func (p *parser) markup() error {
	rest := p.src[p.pos:]
	switch {
	case strings.HasPrefix(rest, "<!--"):
		return p.pass("<!--", "-->", "comment")
	case strings.HasPrefix(rest, "<![CDATA["):
		from := p.pos + len("<![CDATA[")
		if err := p.pass("<![CDATA[", "]]>", "CDATA section"); err != nil {
			return err
		}
		return p.addText(p.src[from:p.pos-len("]]>")], false)
	case strings.HasPrefix(rest, "<?"):
		return p.pass("<?", "?>", "processing instruction")
	case strings.HasPrefix(rest, "<!"):
		return p.doctype()
	case strings.HasPrefix(rest, "</"):
		return p.endTag()
	}
	return p.startTag()
}

// pass skips a piece of markup. A comment may contain "--", which XML forbids but tools write.
func (p *parser) pass(open, end, what string) error {
	i := strings.Index(p.src[p.pos+len(open):], end)
	if i < 0 {
		return p.errorAt(p.here(), Malformed, "the "+what+" is never closed: the file may have been cut short; save or copy it again")
	}
	p.pos += len(open) + i + len(end)
	return nil
}

// doctype skips a document type. It refuses one that declares entities: expanding them can fill the memory from a file
// of a kilobyte, and no tool that writes process models declares any.
func (p *parser) doctype() error {
	depth, quote := 0, byte(0)
	for i := p.pos; i < len(p.src); i++ {
		c := p.src[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			if strings.HasPrefix(p.src[i:], "<!ENTITY") {
				p.pos = i
				return p.errorAt(p.here(), Unsupported,
					"the file declares entities, which are never expanded; save it without a document type")
			}
			depth++
		case c == '>':
			if depth--; depth == 0 {
				p.pos = i + 1
				return nil
			}
		}
	}
	return p.errorAt(p.here(), Malformed, "the document type is never closed: the file may have been cut short; save or copy it again")
}

func (p *parser) endTag() error {
	i := strings.IndexByte(p.src[p.pos:], '>')
	if i < 0 {
		return p.errorAt(p.here(), Malformed, "the end tag is never closed: the file may have been cut short; save or copy it again")
	}
	name := strings.Trim(p.src[p.pos+2:p.pos+i], " \t\r\n")
	n := len(p.stack)
	if n == 0 {
		return p.errorAt(p.here(), Malformed, "</"+Label(name)+"> closes nothing; take it out, or open the element before it")
	}
	if open := p.stack[n-1]; open.name != name {
		return p.errorAt(p.here(), Malformed,
			fmt.Sprintf("</%s> closes <%s>, which was opened in line %d: close that before it", Label(name), Label(open.name), open.line))
	}
	p.pos += i + 1
	p.pop()
	return nil
}

func (p *parser) pop() {
	f := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	if p.skip > len(p.stack) {
		p.skip = 0
	}
	if f.el == nil {
		return
	}
	f.el.end = int32(p.pos)
	if f.more != nil {
		f.text = f.more.String()
	}
	f.el.Text = f.text
}
