package yawl

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net/pnml"
)

// Whatever is read can be written as PNML and read again as the same.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"testdata/review.yawl", "testdata/editor.xml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("PK\x03\x04")
	f.Add("<java><object id='a' class='ArchivableSpecificationState'><object idref='a'/></object></java>")
	f.Fuzz(func(t *testing.T, src string) {
		r, err := Decode(strings.NewReader(src), Options{MaxDepth: 50, MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		for _, d := range r.Definitions() {
			var b bytes.Buffer
			if err := pnml.Encode(&b, d); err != nil {
				t.Fatal(err)
			}
			back, err := pnml.Decode(&b, pnml.Options{})
			if err != nil {
				t.Fatal(err)
			}
			once := dedupe(modeltest.Show(d))
			if again := modeltest.Show(back.Nets[0].Definition); once != again {
				t.Fatalf("read:\n%s\nread again:\n%s", once, again)
			}
		}
	})
}

// dedupe drops a flow that is written a second time, as writing does.
func dedupe(text string) string {
	seen := map[string]bool{}
	var out []string
	for _, l := range strings.SplitAfter(text, "\n") {
		if strings.HasPrefix(l, "flow") && seen[l] {
			continue
		}
		seen[l] = true
		out = append(out, l)
	}
	return strings.Join(out, "")
}
