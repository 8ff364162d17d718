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
	f.Add(`<startEvent id='s'/><sendTask id='a'/><receiveTask id='r'/><endEvent id='e'/>
		s -> a
		a -> r
		r -> e
		</process><collaboration id='c'><messageFlow sourceRef='a' targetRef='t'/><messageFlow sourceRef='u' targetRef='r'/>
		<messageFlow sourceRef='e' targetRef='v'/></collaboration><process id='Q'><startEvent id='t'/><subProcess id='x'>
		<sendTask id='u'/><intermediateCatchEvent id='v'><messageEventDefinition/></intermediateCatchEvent>
		u -> v
		</subProcess><boundaryEvent id='b' attachedToRef='x'><timerEventDefinition/></boundaryEvent>
		t -> x
		b -> x`)
	f.Fuzz(func(t *testing.T, content string) {
		r, err := Decode(strings.NewReader(process(content)), Options{MaxDepth: 50, MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		definitions := r.Definitions()
		for _, n := range r.Collaborations {
			definitions = append(definitions, n.Definition)
		}
		for _, d := range definitions {
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
