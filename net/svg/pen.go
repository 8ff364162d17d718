package svg

import (
	"io"
	"strconv"
	"strings"
)

// pen writes elements. It keeps the first error, after which writes do nothing.
type pen struct {
	w   io.Writer
	err error
}

// put writes a line of texts and numbers without separators.
func (p *pen) put(parts ...any) {
	var b strings.Builder
	for _, part := range parts {
		switch x := part.(type) {
		case string:
			b.WriteString(x)
		case int:
			b.WriteString(strconv.Itoa(x))
		}
	}
	b.WriteByte('\n')
	if p.err == nil {
		_, p.err = io.WriteString(p.w, b.String())
	}
}

// markup replaces what has a meaning in XML. Making it takes longer than a use, so there is one.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escape escapes any text for content and attributes.
func escape(text string) string { return markup.Replace(clean(text)) }

// text writes lines below one another, centered at x; the first one begins at top. A tooltip has the complete text if
// it is cut.
func (p *pen) text(b *block, x, top int, class string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	if b.whole != "" {
		p.put(`<g><title>`, escape(b.whole), `</title>`)
		defer p.put(`</g>`)
	}
	for i, line := range b.lines {
		base := top + i*lineHeight(b.size) + b.size - b.size/8
		p.put(`<text`, class, ` x="`, x, `" y="`, base, `" font-size="`, b.size, `">`, escape(line), `</text>`)
	}
}
