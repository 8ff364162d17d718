package pnml

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tasq-dev/tasq/internal/modeltest"
)

// Whatever is read can be written, and read again as the same.
func FuzzDecode(f *testing.F) {
	article, err := os.ReadFile("testdata/article.pnml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(article))
	f.Add(file("<place id='p'><initialMarking><text>1</text></initialMarking></place><transition id='t'/>" +
		"<arc source='p' target='t' type='reset'/>" +
		"<arc source='p' target='t'><inscription><text>2</text></inscription></arc>"))
	f.Add(file("<referencePlace id='a' ref='b'/><referencePlace id='b' ref='a'/><place id='p'/>"))
	f.Fuzz(func(t *testing.T, src string) {
		r, err := Decode(strings.NewReader(src), Options{MaxDepth: 50})
		if err != nil {
			return
		}
		for _, n := range r.Nets {
			if n.Petri != nil {
				again(t, func(b *bytes.Buffer) error { return EncodePetri(b, n.Petri) })
			}
		}
		for _, d := range r.Definitions() {
			back := again(t, func(b *bytes.Buffer) error { return Encode(b, d) })
			if back != nil && modeltest.Show(d) != modeltest.Show(back.Nets[0].Definition) {
				t.Fatalf("read:\n%s\nread again:\n%s", modeltest.Show(d), modeltest.Show(back.Nets[0].Definition))
			}
		}
	})
}

// again reads what was written. A name may hold what XML cannot, so writing may fail; what was written is readable.
func again(t *testing.T, encode func(*bytes.Buffer) error) *Result {
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		return nil
	}
	text := b.String()
	r, err := Decode(&b, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}
