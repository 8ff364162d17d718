package yawl

import (
	"archive/zip"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

func decodeFile(t *testing.T, name string) *Result {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	r, err := Decode(f, Options{File: name})
	require.NoError(t, err)
	return r
}

func TestDecode(t *testing.T) {
	r := decodeFile(t, "review.yawl")
	require.Len(t, r.Nets, 2)
	require.True(t, r.Nets[0].Root, "the root net comes first, wherever it stands")
	require.False(t, r.Nets[1].Root)
	require.Equal(t, modeltest.Lines(`
		start in
		condition c1
		end out
		dummy split join=xor split=or
		task read join=xor
		composite edit_it of Edit join=xor
		task drop join=xor
		cancel drop: read, split->edit_it, read->merge
		dummy merge join=or
		flow in -> split
		flow split -> c1
		flow split -> edit_it
		flow split -> read
		flow read -> merge
		flow edit_it -> merge
		flow c1 -> drop
		flow drop -> merge
		flow merge -> out`), modeltest.Show(r.Nets[0].Definition))
	require.Equal(t, modeltest.Lines(`
		start in
		condition work
		end out
		dummy work_to_out
		flow in -> in_to_work
		flow in_to_work -> work
		flow work -> work_to_out
		flow work_to_out -> out`), strings.Replace(modeltest.Show(r.Nets[1].Definition), "dummy in_to_work\n", "", 1))
	require.Equal(t, modeltest.Lines(`
		4: not-carried: <metaData>: the data about the specification are not carried
		5: not-carried: <schema>: types of data are not carried
		15: not-carried: <inputParam> of decomposition "Review": data of nets are not carried
		28: not-carried: <resourcing> of task "read": who does the work is not carried
		31: multi-instance: task "edit.it": it runs 2 to 5 instances and completes with 3 of them, and more can be added`+
		` while it runs; it is read as one task
		41: kept: <timer> of task "drop": a net knows no time; the timer is not carried
		54: not-carried: decomposition "Reading": it is a service: its parameters and its codelet are not carried
		56: not-carried: <layout>: the layout of the drawing is not carried
		21: kept: flow "split->c1": it is number 1 to be tried and is taken if urgent
		20: kept: flow "split->edit_it": it is number 2 to be tried and is taken if pages > 10
		19: kept: flow "split->read": it is the default
		45: left-out: task "drop": it cancels the flow from "c1" to "drop", which never holds a token of its own
		8: closed: inputCondition "in": it flows into another condition; the routing task in_to_work is added between
		9: closed: condition "work": it flows into another condition; the routing task work_to_out is added between`),
		r.Report.String())
	require.Equal(t, "pages > 10", r.Report.Notes[9].Raw)
	require.Contains(t, r.Report.Notes[5].Raw, "<trigger>OnEnabled</trigger>")
}

func TestNamesLabelsAndPositions(t *testing.T) {
	n := decodeFile(t, "review.yawl").Nets[0]
	require.Equal(t, "Review", n.Definition.Name)
	require.Equal(t, "Review of an article", n.Label)
	require.Equal(t, map[string]string{"read": "Read the article"}, n.Labels)
	require.Equal(t, map[string]string{"edit_it": "edit.it"}, n.IDs)
	require.Equal(t, map[[2]string]string{
		{"split", "c1"}: "1: urgent", {"split", "edit_it"}: "2: pages > 10", {"split", "read"}: "otherwise"}, n.Flows)
	require.Equal(t, net.Pos{File: "review.yawl", Line: 24}, n.Definition.Tasks[1].Pos)
	require.Equal(t, net.Pos{File: "review.yawl", Line: 19}, n.Definition.Flows[3].Pos)
}

const editorNotes = `
	28: multi-instance: MultipleCompositeTask "": it runs 1 to 4 instances and completes with all of them;` +
	` it is read as one task
	44: left-out: object "F5": it is not connected at both ends
	3: not-carried: the specification: data, services, resources and the layout of an editor's file are not carried
	40: kept: flow "choose->OutputCondition": it is number 1 to be tried and is taken if tired()
	38: kept: flow "choose->MultipleCompositeTask": it is the default`

func TestDecodeEditorFile(t *testing.T) {
	r := decodeFile(t, "editor.xml")
	require.Len(t, r.Nets, 2)
	require.Equal(t, "Choose_a_road", r.Nets[0].Definition.Name)
	require.Equal(t, "Choose a road", r.Nets[0].Label)
	require.True(t, r.Nets[0].Root)
	require.Equal(t, modeltest.Lines(`
		start I
		end O
		task choose join=xor split=xor
		composite M of Walk join=xor
		cancel M: choose, choose->M
		flow I -> choose
		flow choose -> O
		flow choose -> M
		flow M -> O`), modeltest.Show(r.Nets[0].Definition))
	require.Equal(t, map[string]string{"choose": "AtomicTask8"}, r.Nets[0].IDs)
	require.Equal(t, modeltest.Lines(strings.NewReplacer("choose->OutputCondition", "choose->O",
		"choose->MultipleCompositeTask", "choose->M").Replace(editorNotes)), r.Report.String())
}

// Editors compress their files, and write a shorter one over a longer one without cutting it.
func TestDecodeZipWithRest(t *testing.T) {
	data, err := os.ReadFile("testdata/editor.xml")
	require.NoError(t, err)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("specification.xml")
	require.NoError(t, err)
	_, err = f.Write(append(data, "index=\"7\"/></void>"...))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	packed := b.String()

	r, err := Decode(strings.NewReader(packed), Options{})
	require.NoError(t, err)
	require.Len(t, r.Nets, 2)
	require.Equal(t, "54: not-carried: the file: it goes on after its end with the rest of an older, longer version",
		r.Report.Notes[0].String())

	_, err = Decode(strings.NewReader(packed), Options{MaxBytes: 2000})
	require.ErrorContains(t, err, "too-large")
	_, err = Decode(strings.NewReader(packed[:len(packed)/2]), Options{File: "f"})
	require.EqualError(t, err, "f: malformed: it is a zip archive that cannot be unpacked: zip: not a valid zip file")
	_, err = Decode(strings.NewReader(packed[:50]+packed[90:]), Options{File: "f"})
	require.EqualError(t, err, "f: malformed: it is a zip archive that cannot be unpacked: its parts are not where it says they are")
}

func spec(content string) string {
	return "<specificationSet><specification uri='s'>\n" + content + "\n</specification></specificationSet>"
}

func oneNet(elements string) string {
	return spec("<rootNet id='n'><processControlElements>\n" + elements + "\n</processControlElements></rootNet>")
}

func TestRefused(t *testing.T) {
	const in = "<inputCondition id='i'/>\n"
	task := func(content string) string { return oneNet(in + "<task id='t'>" + content + "</task>") }
	for _, c := range []struct{ src, want string }{
		{"", `f: empty: the file is empty`},
		{"<pnml/>", `f:1: wrong-format: <pnml>: the root of a YAWL file is <specificationSet>; this looks like PNML`},
		{"<specificationSet/>", `f:1: empty: <specificationSet>: there is no <specification> in it`},
		{spec(""), `f:1: empty: <specification>: there is no net in it`},
		{spec("<rootNet id='n'/>"), `f:2: empty: rootNet "n": the net has no conditions and no tasks`},
		{oneNet(in + in),
			`f:4: duplicate-id: inputCondition "i": its id is already that of the inputCondition "i" in line 3: give one of them another`},
		{oneNet("<task/>"), `f:3: malformed: <task>: it has no id, so no flow can lead to it: give it one of its own`},
		{task("<join code='not'/>"), `f:4: malformed: task "t": its <join> has the code "not"; known are and, xor, or`},
		{task("<flowsInto/>"), `f:4: unknown-ref: task "t": its <flowsInto> names no element in <nextElementRef>`},
		{task("<flowsInto><nextElementRef id='x'/></flowsInto>"),
			`f:4: unknown-ref: task "t": it flows into "x", which the net does not have: correct the id in its nextElementRef, or take the flow out`},
		{task("<removesTokens id='x'/>"), `f:4: unknown-ref: task "t": it cancels "x", which the net does not have: correct the id in its removesTokens, or take that out`},
		{task("<removesTokensFromFlow><flowSource id='t'/></removesTokensFromFlow>"),
			`f:4: unknown-ref: task "t": it cancels the flow from "t" to "", which the net does not have: correct its removesTokensFromFlow, or take that out`},
		{task("<decomposesTo id='x'/>"),
			`f:4: unknown-ref: task "t": it decomposes to "x", which the specification does not have: add the decomposition, or correct its id`},
		{spec("<rootNet id='n'><processControlElements><task id='t'/></processControlElements></rootNet>\n" +
			"<decomposition id='n'><processControlElements><task id='t'/></processControlElements></decomposition>"),
			`f:3: duplicate-id: net "n": its id is already that of the net in line 2: give one of them another`},
		{"<java/>", `f:1: wrong-format: <java>: it holds Java objects, but no specification of the YAWL editor`},
		{"<java><object class='a.ArchivableSpecificationState'/></java>", `f:1: empty: <object>: there is no net in it`},
		{"<java><object class='a.ArchivableSpecificationState'><object class='ArchivableNetState'/></object></java>",
			`f:1: empty: net "line 1": the net has no conditions and no tasks`},
	} {
		_, err := Decode(strings.NewReader(c.src), Options{File: "f"})
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.want, e.Error())
	}
}

func TestUnknownElementsAreNamed(t *testing.T) {
	r, err := Decode(strings.NewReader(oneNet("<inputCondition id='i'/><worklet/>")), Options{})
	require.NoError(t, err)
	require.Equal(t, "3: unknown-element: <worklet>: no schema of YAWL has such an element here; it is passed over\n",
		r.Report.String())
}

// A file may refer to one object any number of times. Reading must not look into it each time.
func TestOneObjectReferredToByAll(t *testing.T) {
	const n = 10_000
	var b strings.Builder
	b.WriteString("<java><object class='ArchivableSpecificationState'><object class='ArchivableNetState'>" +
		"<object id='F' class='YAWLFlowRelation'>" + strings.Repeat("<void property='x'/>", n) + "</object>" +
		"<object id='S' class='SplitDecorator'>" + strings.Repeat("<void method='add'><object idref='F'/></void>", n) +
		"</object><void property='cells'><array>" + strings.Repeat("<void><object idref='F'/></void>", n) +
		"<void><object class='AtomicTask'><void property='cancellationSet'><void property='setMembers'>" +
		strings.Repeat("<void method='add'><object idref='F'/></void>", n) + "</void></void></object></void>" +
		"</array></void></object></object></java>")
	_, err := Decode(strings.NewReader(b.String()), Options{})
	require.ErrorContains(t, err, "unknown-ref")
}
