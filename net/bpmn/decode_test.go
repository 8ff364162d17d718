package bpmn

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

var update = flag.Bool("update", false, "rewrite the expected parts of testdata/mapping.txt")

// process wraps the content of one process; its first line has line 2. A line "a -> b" stands for a flow with the id
// "a-b", and "a -> b if p" for one with a condition.
func process(content string) string {
	var b strings.Builder
	b.WriteString("<definitions><process id='P' name='the process'>\n")
	for line := range strings.SplitSeq(modeltest.Lines(content), "\n") {
		if from, to, ok := strings.Cut(line, " -> "); ok {
			to, condition, conditional := strings.Cut(to, " if ")
			line = "<sequenceFlow id='" + from + "-" + to + "' sourceRef='" + from + "' targetRef='" + to + "'>"
			if conditional {
				line += "<conditionExpression>" + condition + "</conditionExpression>"
			}
			line += "</sequenceFlow>"
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("</process></definitions>")
	return b.String()
}

// TestMapping walks testdata/mapping.txt: each construct of BPMN, the net that it becomes, what can happen to a case
// of that by looking at every state, and the report.
func TestMapping(t *testing.T) {
	data, err := os.ReadFile("testdata/mapping.txt")
	require.NoError(t, err)
	var out []string
	for section := range strings.SplitSeq(strings.TrimPrefix(string(data), "# "), "\n# ") {
		name, rest, _ := strings.Cut(section, "\n")
		content, want, found := strings.Cut(rest, "\n----\n")
		require.True(t, found, "section %q has no line ----", name)
		got := describe(t, content)
		out = append(out, "# "+name+"\n"+content+"\n----\n"+got)
		if !*update {
			t.Run(name, func(t *testing.T) { require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got)) })
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/mapping.txt", []byte(strings.Join(out, "\n")), 0o644))
	}
}

func describe(t *testing.T, content string) string {
	r, err := Decode(strings.NewReader(process(content)), Options{})
	require.NoError(t, err, content)
	var b strings.Builder
	for _, n := range r.Nets {
		b.WriteString("workflow " + n.Definition.Name + "\n" + modeltest.Show(n.Definition))
		compiled, err := net.Compile(n.Definition)
		require.NoError(t, err, content)
		b.WriteString("==> " + modeltest.Explore(compiled, 10000).String() + "\n")
	}
	b.WriteString(r.Report.String())
	return b.String()
}

func TestLabelsOfFlows(t *testing.T) {
	r, err := Decode(strings.NewReader(process(`
		<startEvent id='s'/><inclusiveGateway id='x' default='x-a'/><task id='a'/><task id='b'/><task id='c'/><endEvent id='e'/>
		s -> x
		x -> a
		x -> b if p > 1
		<sequenceFlow id='named' name='by hand' sourceRef='x' targetRef='c'><conditionExpression>q</conditionExpression></sequenceFlow>
		a -> e
		b -> e
		c -> e`)), Options{})
	require.NoError(t, err)
	require.Equal(t, map[[2]string]string{
		{"x", "a"}: "otherwise", {"x_some", "b"}: "p > 1", {"x_some", "c"}: "by hand"}, r.Nets[0].Flows)
}

func TestNamesLabelsAndPositions(t *testing.T) {
	r, err := Decode(strings.NewReader(`<b:definitions xmlns:b='http://www.omg.org/spec/BPMN/20100524/MODEL'>
		<b:collaboration><b:participant id='p1' name='Shop &amp; more' processRef='b:P'/>
		<b:participant id='p2' name='Customer'/><b:messageFlow id='m' sourceRef='a' targetRef='p2'/></b:collaboration>
		<b:process id='P'>
		<b:startEvent id='Event_1'/>
		<b:task id='Activity_2' name='pack
			it'/><b:task id='Activity_3' name='pack it'/><b:task id='Activity_4' name='審査'/>
		<b:sequenceFlow id='f' sourceRef='Event_1' targetRef='Activity_2'/>
		</b:process><b:process id='Q' name='nothing'/></b:definitions>`), Options{File: "f.bpmn"})
	require.NoError(t, err)
	require.Len(t, r.Nets, 1)
	n := r.Nets[0]
	require.True(t, n.Root)
	require.Equal(t, "Shop & more", n.Label)
	require.Equal(t, "Shop_more", n.Definition.Name)
	require.Equal(t, map[string]string{"pack_it": "pack it", "pack_it_2": "pack it", "Activity_4": "審査"}, n.Labels)
	require.Equal(t, "Activity_3", n.IDs["pack_it_2"])
	require.Equal(t, net.Pos{File: "f.bpmn", Line: 6}, n.Definition.Tasks[1].Pos)
	require.Equal(t, net.Pos{File: "f.bpmn", Line: 8}, n.Definition.Flows[1].Pos)
	require.Equal(t, modeltest.Lines(`
		3: left-out: participant "p2": it is a pool without a process
		3: not-carried: messageFlow "m": messages between pools are not carried: each process is a workflow of its own
		9: left-out: process "Q": there is nothing in it that could run
		7: disconnected: task "Activity_3": no flow leads to it, and what it lies in begins with an event
		7: disconnected: task "Activity_4": no flow leads to it, and what it lies in begins with an event`),
		r.Report.String())
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", `f: empty: the file is empty`},
		{"<pnml/>", `f:1: wrong-format: <pnml>: the root of a BPMN file is <definitions>; this looks like PNML`},
		{"<definitions xmlns='https://www.omg.org/spec/DMN/20191111/MODEL/'/>",
			`f:1: wrong-format: <definitions>: its namespace is "https://www.omg.org/spec/DMN/20191111/MODEL/", ` +
				`which is not that of BPMN`},
		{"<definitions/>", `f:1: empty: <definitions>: there is no <process> in it`},
		{process(""), `f:1: empty: <definitions>: there is nothing to run in any <process> of it`},
		{process("<task id='a'>"), `f:4: malformed: </process> closes <task>, which was opened in line 2`},
		{process("<task id='a'/>\n<task id='a'/>"),
			`f:3: duplicate-id: task "a": its id is already that of an element in line 2`},
		{process("<task id='a'/>\na -> b"),
			`f:3: unknown-ref: sequenceFlow "a-b": its targetRef "b" is no flow node of the file`},
		{process("<task id='a'/>\n<sequenceFlow id='f'/>"), `f:3: unknown-ref: sequenceFlow "f": it has no sourceRef`},
		{process("<task id='a'/>\n<subProcess id='s'>\n<task id='b'/>\n</subProcess>\na -> b"),
			`f:6: unsupported: sequenceFlow "a-b": it leads from the task "a" to the task "b" across the border of a ` +
				`process or sub-process`},
		{process("<boundaryEvent id='b' attachedToRef='x'/>"),
			`f:2: unknown-ref: boundaryEvent "b": it is attached to "x", which is no activity of the file`},
		{process("<exclusiveGateway id='x'/>\n<boundaryEvent id='b' attachedToRef='x'/>"),
			`f:3: unsupported: boundaryEvent "b": it is attached to the exclusiveGateway "x", which is no activity of ` +
				`the same process`},
		{process("<task id='a'/>\n<subProcess id='h' triggeredByEvent='true'>\n<startEvent id='s'/>\n</subProcess>\na -> h"),
			`f:6: unsupported: sequenceFlow "a-h": it begins or ends at an event sub-process, which events alone can start`},
	} {
		_, err := Decode(strings.NewReader(c.src), Options{File: "f"})
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.want, e.Error())
	}
}

// A file of some hundred kilobytes could otherwise describe regions of many gigabytes.
func TestRegionsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("<definitions><process id='P'>")
	for range 4000 {
		b.WriteString("<endEvent><terminateEventDefinition/></endEvent><task/>")
	}
	b.WriteString("</process></definitions>")
	_, err := Decode(strings.NewReader(b.String()), Options{})
	require.EqualError(t, err, `1: too-large: process "P": its canceling events cancel more elements than are read`)
}
