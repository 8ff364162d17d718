package bpmn

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// Whatever is read names only what it has, can be written as PNML, and be read again as the same.
func FuzzDecode(f *testing.F) {
	data, err := os.ReadFile("testdata/mapping.txt")
	if err != nil {
		f.Fatal(err)
	}
	for section := range strings.SplitSeq(string(data), "\n# ") {
		_, rest, _ := strings.Cut(section, "\n")
		content, _, _ := strings.Cut(rest, "\n----\n")
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		r, err := Decode(strings.NewReader(process(content)), Options{MaxDepth: 50, MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		for _, d := range r.Definitions() {
			for _, p := range d.Check() {
				switch p.Code {
				case net.UnknownName, net.DuplicateName, net.ConditionToCondition, net.FlowIntoStart, net.FlowOutOfEnd, net.NoStart,
					net.NoEnd, net.DuplicateStart, net.DuplicateEnd:
					t.Fatalf("%v\n%s", p, modeltest.Show(d))
				}
			}
			var b bytes.Buffer
			if err := pnml.Encode(&b, d); err != nil {
				t.Fatal(err)
			}
			back, err := pnml.Decode(&b, pnml.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if once, again := modeltest.Show(d), modeltest.Show(back.Nets[0].Definition); once != again {
				t.Fatalf("read:\n%s\nread again:\n%s", once, again)
			}
		}
	})
}
