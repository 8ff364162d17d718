package bpmn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

// An event may name a definition that stands beside the processes.
func TestReferencesToEventDefinitions(t *testing.T) {
	src := func(event string) string {
		return "<definitions>\n<terminateEventDefinition id='te'/>\n<compensateEventDefinition id='ce'/>\n" +
			strings.TrimPrefix(process(`<startEvent id='s'/><parallelGateway id='p'/><task id='a'/><task id='b'/>
				<parallelGateway id='q'/><endEvent id='e'/>`+event+`
				s -> p
				p -> a
				p -> b
				b -> q
				a -> q
				q -> e`), "<definitions>")
	}
	for _, c := range []struct{ event, want, notes string }{
		{"<endEvent id='x'><eventDefinitionRef>te</eventDefinitionRef></endEvent>\nb -> x", "sound", ""},
		{"<endEvent id='x'/>\nb -> x", "sound", ""},
		{"<endEvent id='x'><eventDefinitionRef>no</eventDefinitionRef></endEvent>\nb -> x", "sound",
			`6: approximated: endEvent "x": its event definition "no" is not in the file; it is read as an event without a definition`},
		{"<boundaryEvent id='x' attachedToRef='a'><eventDefinitionRef> te:ce </eventDefinitionRef></boundaryEvent>", "sound",
			`6: left-out: boundaryEvent "x": compensation is not read`},
		{"<boundaryEvent id='x' attachedToRef='a'/>", "improper", ""},
	} {
		r, err := Decode(strings.NewReader(src(c.event)), Options{})
		require.NoError(t, err)
		d := r.Nets[0].Definition
		require.Equal(t, c.want, outcome(modeltest.Explore(net.MustCompile(d), 1000)), "%s\n%s", c.event, modeltest.Show(d))
		if c.notes != "" {
			require.Contains(t, r.Report.String(), c.notes)
		}
		if strings.Contains(c.event, ">te<") {
			require.True(t, hasRegion(d, "x"), "the event terminates")
		}
	}
}

func outcome(o modeltest.Outcome) string { return strings.FieldsFunc(o.String(), notLetter)[0] }

func hasRegion(d *net.Definition, task string) bool {
	for _, t := range d.Tasks {
		if t.Name == task {
			return len(t.Cancels) > 0
		}
	}
	return false
}
