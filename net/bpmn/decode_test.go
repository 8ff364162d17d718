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
		<b:sequenceFlow id='f' sourceRef='Event_1' targetRef='Activity_2'/><b:sequenceFlow id='g' sourceRef='Activity_2' targetRef='Activity_3'/>
		<b:sequenceFlow id='h' sourceRef='Activity_3' targetRef='Activity_4'/><b:task id='Activity_5'/>
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
		3: not-carried: participant "p2": it is a pool without a process
		10: not-carried: process "Q": there is nothing in it that could run
		9: left-out: task "Activity_5": no flow leads to it, and what it lies in begins with an event, so it is left out
		3: not-carried: messageFlow "m": it begins or ends at a pool or outside of the file, not at an element of a process: `+
		"messages from there can always come"),
		r.Report.String())
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", `f: empty: the file is empty`},
		{"<pnml/>", `f:1: wrong-format: <pnml>: the root of a BPMN file is <definitions>; this looks like PNML`},
		{"<definitions xmlns='https://www.omg.org/spec/DMN/20191111/MODEL/'/>",
			`f:1: wrong-format: <definitions>: its namespace is "https://www.omg.org/spec/DMN/20191111/MODEL/", ` +
				`which is not that of BPMN: save the process as BPMN 2.0`},
		{"<c:definitions xmlns:c='http://www.omg.org/spec/CMMN/20151109/MODEL'/>",
			`f:1: wrong-format: <definitions>: its namespace is "http://www.omg.org/spec/CMMN/20151109/MODEL", ` +
				`which is not that of BPMN: save the process as BPMN 2.0`},
		{"<definitions/>", `f:1: empty: <definitions>: there is no <process> in it: save the diagram with its process`},
		{process(""), `f:1: empty: <definitions>: there is nothing to run in any <process> of it`},
		{process("<task id='a'>"), `f:4: malformed: </process> closes <task>, which was opened in line 2: close that before it`},
		{process("<task id='a'/>\n<task id='a'/>"),
			`f:3: duplicate-id: task "a": its id is already that of an element in line 2: give one of them another`},
		{process("<task id='a'/>\n<task id='a'/>\n<task id='b'/>\n<task id='b'/>"), "f:3: duplicate-id: task \"a\": its id is " +
			"already that of an element in line 2: give one of them another\nf:5: duplicate-id: task \"b\": its id is already that of an element in line 4: give one of them another"},
		{"<definitions><choreography id='c'/></definitions>",
			`f:1: empty: <definitions>: there is no <process> in it, and choreographies are not read`},
	} {
		_, err := Decode(strings.NewReader(c.src), Options{File: "f"})
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.want, err.Error())
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

// Camunda 8 names the process that is called among its extensions.
func TestCallOfCamunda8(t *testing.T) {
	process := func(id, middle string) string {
		return `<bpmn:process id="` + id + `"><bpmn:startEvent id="s_` + id + `"/>` + middle + `<bpmn:endEvent id="e_` + id + `"/>
			<bpmn:sequenceFlow id="f_` + id + `" sourceRef="s_` + id + `" targetRef="m_` + id + `"/>
			<bpmn:sequenceFlow id="g_` + id + `" sourceRef="m_` + id + `" targetRef="e_` + id + `"/></bpmn:process>`
	}
	call := func(called string) string {
		return `<bpmn:callActivity id="m_order">` + called + `</bpmn:callActivity>`
	}
	for called, want := range map[string]string{
		`<bpmn:extensionElements><zeebe:calledElement processId="ship"/></bpmn:extensionElements>`: "",
		`<bpmn:extensionElements><zeebe:calledElement processId="fly"/></bpmn:extensionElements>`:  `it calls "fly", which is no process of this file; it is read as a task`,
		``: "it names no process that it calls; it is read as a task",
	} {
		src := `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">` +
			process("order", call(called)) + process("ship", `<bpmn:userTask id="m_ship"/>`) + `</bpmn:definitions>`
		r, err := Decode(strings.NewReader(src), Options{})
		require.NoError(t, err)
		if want != "" {
			require.Contains(t, r.Report.String(), want)
			continue
		}
		require.NotContains(t, r.Report.String(), "read as a task")
		require.Equal(t, []string{"ship"}, r.Definitions()[0].Tasks[1].Of)
	}
}
