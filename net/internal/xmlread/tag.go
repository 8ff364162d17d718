package xmlread

import (
	"fmt"
	"strings"
)

// startTag reads a start tag with its attributes and opens the element.
func (p *parser) startTag() error {
	start, line := p.pos, p.here()
	p.pos++
	name := p.name()
	if name == "" {
		return p.errorAt(line, Malformed, "\"<\" begins no tag here; in a text it is written &lt;")
	}
	if p.root != nil && len(p.stack) == 0 {
		return p.errorAt(line, Malformed, "<"+Label(name)+"> stands behind the end of the root element; a file has one root element, with all others in it")
	}
	if len(p.stack) >= p.o.MaxDepth {
		return p.errorAt(line, TooLarge, fmt.Sprintf("elements lie more than %d deep inside one another", p.o.MaxDepth))
	}
	local := name[strings.IndexByte(name, ':')+1:]
	if p.skip == 0 && p.o.Skip != nil && p.root != nil && p.o.Skip(local) {
		p.skip = len(p.stack) + 1
	}
	p.first = len(p.attrs)
	empty, err := p.attributes(line, name)
	if err != nil {
		return err
	}
	var el *Element
	if p.skip == 0 {
		if el, err = p.newElement(local, start, line); err != nil {
			return err
		}
		el.Attrs = p.attrs[p.first:len(p.attrs):len(p.attrs)]
	}
	p.stack = append(p.stack, frame{el: el, name: name, line: line})
	if empty {
		p.pop()
	}
	return nil
}

func (p *parser) newElement(local string, start, line int) (*Element, error) {
	if err := p.count(line); err != nil {
		return nil, err
	}
	if len(p.spare) == 0 {
		p.spare = make([]Element, 256)
	}
	el := &p.spare[0]
	p.spare = p.spare[1:]
	el.Name, el.Line, el.src, el.start = local, line, &p.src, int32(start)
	if p.root == nil {
		p.root = el
		return el, nil
	}
	parent := p.stack[len(p.stack)-1].el
	if parent.last == nil {
		parent.first = el
	} else {
		parent.last.next = el
	}
	parent.last = el
	return el, nil
}

func (p *parser) count(line int) error {
	if p.nodes++; p.nodes > p.o.MaxNodes {
		return p.errorAt(line, TooLarge, fmt.Sprintf("there are more than %d elements and attributes", p.o.MaxNodes))
	}
	return nil
}

// attributes reads up to the end of a start tag, and reports whether it was that of an empty element. While skipping,
// it keeps nothing.
func (p *parser) attributes(line int, name string) (empty bool, err error) {
	for {
		p.space()
		rest := p.src[p.pos:]
		switch {
		case rest == "":
			return false, p.cutShort(line, name)
		case rest[0] == '>':
			p.pos++
			return false, nil
		case strings.HasPrefix(rest, "/>"):
			p.pos += 2
			return true, nil
		}
		a, ok := p.attribute()
		if !ok && !strings.Contains(p.src[p.pos:], ">") {
			return false, p.cutShort(line, name)
		}
		if !ok {
			return false, p.errorAt(p.here(), Malformed,
				"the tag <"+Label(name)+"> holds something that is no attribute; its form is name=\"value\"")
		}
		if p.skip > 0 {
			continue
		}
		if err := p.count(line); err != nil {
			return false, err
		}
		p.keep(a)
	}
}

func (p *parser) cutShort(line int, name string) error {
	return p.errorAt(line, Malformed, "the tag <"+Label(name)+"> is never closed: the file may have been cut short; save or copy it again")
}

// keep appends to the current block of attributes. Elements refer to it, so a full block is not reused, and the
// attributes of the current element are moved to the next block.
func (p *parser) keep(a Attr) {
	if len(p.attrs) == cap(p.attrs) {
		own := p.attrs[p.first:]
		p.attrs = append(make([]Attr, 0, max(1024, 2*len(own))), own...)
		p.first = 0
	}
	p.attrs = append(p.attrs, a)
}

func (p *parser) attribute() (Attr, bool) {
	name := p.name()
	if name == "" {
		return Attr{}, false
	}
	p.space()
	if p.pos >= len(p.src) || p.src[p.pos] != '=' {
		return Attr{}, false
	}
	p.pos++
	p.space()
	if p.pos >= len(p.src) || p.src[p.pos] != '"' && p.src[p.pos] != '\'' {
		return Attr{}, false
	}
	end := strings.IndexByte(p.src[p.pos+1:], p.src[p.pos])
	if end < 0 {
		return Attr{}, false
	}
	value := p.src[p.pos+1 : p.pos+1+end]
	p.pos += end + 2
	return Attr{Name: name, Value: unescape(value)}, true
}

func (p *parser) space() {
	for p.pos < len(p.src) && isSpace(p.src[p.pos]) {
		p.pos++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// name reads a name, up to a character that cannot be part of one. All letters beyond ASCII are accepted.
func (p *parser) name() string {
	from := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if isNameByte(c) || c == ':' || c == '.' || c >= 0x80 {
			p.pos++
			continue
		}
		break
	}
	if s := p.src[from:p.pos]; s != "" && s[0] != '-' && s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		return s
	}
	return ""
}
