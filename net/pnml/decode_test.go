package pnml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

// file wraps the content of a net, one element a line, so that the first has line 2.
func file(content string) string {
	return "<pnml><net id='n' type='ptnet'>\n" + content + "\n</net></pnml>"
}

func decode(t *testing.T, src string) *Result {
	t.Helper()
	r, err := Decode(strings.NewReader(src), Options{File: "f.pnml"})
	require.NoError(t, err)
	return r
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, src, want, notes string }{
		{"a workflow net", file(`
			<name><text>Order  handling</text></name>
			<page id="pg">
			<place id="p1"><name><text>new order</text></name><initialMarking><text>1</text></initialMarking></place>
			<page id="pg2"><transition id="t 1"/></page>
			<place id="p2"/></page>
			<arc id="a1" source="p1" target="t 1"/>
			<arc source="t 1" target="p2"/>`), `
			start p1
			end p2
			task t_1
			flow p1 -> t_1
			flow t_1 -> p2`, ``},
		{"several starts, several sinks", file(`
			<place id="p"><initialMarking><value>1</value></initialMarking></place>
			<place id="q"><initialMarking><text>Default,1</text></initialMarking></place>
			<place id="r"/><place id="s"/>
			<transition id="t"/><transition id="u"/>
			<arc source="p" target="t"/><arc source="t" target="r"/>
			<arc source="q" target="u"/><arc source="u" target="s"/>`), `
			condition p
			condition q
			condition r
			condition s
			start start
			end end
			task t
			task u
			dummy begin
			dummy finish join=or
			flow p -> t
			flow t -> r
			flow q -> u
			flow u -> s
			flow start -> begin
			flow begin -> p
			flow begin -> q
			flow r -> finish
			flow s -> finish
			flow finish -> end`, `
			3: closed: place "p": 2 places are marked in the beginning, this one first; start -> begin is added before
			1: closed: net "n": it has 2 ends; finish -> end is added behind, with an or-join`},
		{"other tools: a net in a page, no capacity, one of two colors, a transport arc", file(`
			<place id="p"><initialMarking><value>Default,1,Red,0</value></initialMarking><capacity><value>0</value></capacity></place>
			<place id="q"/><transition id="t"/>
			<arc source="p" target="t" type="transport"><inscription><value>Default,1,Red,0</value></inscription></arc>
			<arc source="t" target="q"/>
			<page id="t"><net id="sub"><place id="in"/></net></page>`), `
			start p
			end q
			task t
			flow p -> t
			flow t -> q`, `
			7: left-out: net "sub": it is a net within a net, as of a sub-process, and is not read: save it as a file of its own to verify it`},
		{"no marking, a transition without output, a place without arcs", file(`
			<place id="p"/><place id="q"/><place id="lost"/>
			<transition id="t"/><transition id="start"/>
			<arc source="p" target="t"/><arc source="t" target="q"/><arc source="q" target="start"/>`), `
			start p
			condition q
			end start_done
			task t
			task start
			flow start -> start_done
			flow p -> t
			flow t -> q
			flow q -> start`, `
			3: isolated: place "lost": no arc begins or ends at it, so nothing that happens there matters
			3: closed: place "p": no place is marked in the beginning; as the only one without an input it is given a token
			4: closed: transition "start": it has no output; the condition start_done is added behind it`},
		{"a marked place in a loop, reset and read arcs, a silent transition", file(`
			<place id="p"><initialMarking><text>1</text></initialMarking></place><place id="q"/><place id="o"/>
			<transition id="t"><toolspecific tool="ProM" activity="$invisible$"/></transition><transition id="u"/>
			<arc id="1" source="p" target="t"/><arc id="2" source="t" target="p"/><arc id="3" source="t" target="q"/>
			<arc id="4" source="p" target="u" type="test"/><arc id="5" source="u" target="o"/>
			<arc id="6" source="q" target="u"><arctype><text>reset</text></arctype></arc>
			<arc id="7" source="q" target="u"><arctype><text>reset</text></arctype></arc>`), `
			condition p
			condition q
			condition o
			start start
			end end
			dummy t
			task u
			cancel u: q
			dummy begin
			dummy finish join=or
			flow p -> t
			flow t -> p
			flow t -> q
			flow p -> u
			flow u -> p
			flow u -> o
			flow start -> begin
			flow begin -> p
			flow q -> finish
			flow o -> finish
			flow finish -> end`, `
			3: closed: place "p": it is marked in the beginning, and transitions put more into it; start -> begin is added before
			1: closed: net "n": it has 2 ends; finish -> end is added behind, with an or-join`},
		{"references, and a part that nothing leads to", file(`
			<place id="p"><initialMarking><text>1</text></initialMarking></place><place id="o"/>
			<referencePlace id="r1" ref="r2"/><referencePlace id="r2" ref="p"/><referenceTransition id="rt" ref="t"/>
			<transition id="t"/>
			<arc source="r1" target="rt"/><arc source="rt" target="o"/>
			<place id="x"/><transition id="y"/><arc source="x" target="y"/><arc source="y" target="x"/>
			<animation/>`), `
			start p
			end o
			condition x
			task t
			task y
			flow p -> t
			flow t -> o
			flow x -> y
			flow y -> x`, `
			8: unknown-element: <animation>: PNML has no such element in a net; it and any further ones are passed over
			7: disconnected: place "x": no path leads to it from what is marked in the beginning
			7: disconnected: transition "y": no path leads to it from what is marked in the beginning`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := decode(t, c.src)
			require.Equal(t, modeltest.Lines(c.want), modeltest.Show(r.Nets[0].Definition))
			require.Equal(t, modeltest.Lines(c.notes), r.Report.String())
			roundTrip(t, r.Nets[0].Definition)
		})
	}
}

func TestNamesLabelsAndPositions(t *testing.T) {
	r := decode(t, file(`<name><text>Order  handling</text></name>
		<place id="p.1"><name><text>new
		order</text></name></place><place id="p#1"/>
		<transition id="t"/><arc source="p.1" target="t"/><arc source="t" target="p#1"/>`))
	n := r.Nets[0]
	require.Equal(t, "Order handling", n.Label)
	require.Equal(t, "Order_handling", n.Definition.Name)
	require.Equal(t, map[string]string{"p_1": "new order"}, n.Labels)
	require.Equal(t, map[string]string{"p_1": "p.1", "p_1_2": "p#1"}, n.IDs)
	require.Equal(t, net.Pos{File: "f.pnml", Line: 3}, n.Definition.Conditions[0].Pos)
	require.Equal(t, net.Pos{File: "f.pnml", Line: 5}, n.Definition.Flows[1].Pos)
	require.Equal(t, net.Pos{File: "f.pnml", Line: 5}, n.Petri.Transitions[0].Pos)
	require.Len(t, r.Definitions(), 1)
}

// A net that no workflow can express is still read, as a plain one.
func TestPlainOnly(t *testing.T) {
	const simple = `<place id="p"><initialMarking><text>1</text></initialMarking></place><transition id="t"/>` +
		`<arc id="a" source="p" target="t"/>`
	for _, c := range []struct{ src, note string }{
		{simple + `<place id="q"/><arc id="b" source="t" target="q"><inscription><text>2</text></inscription></arc>`,
			`2: plain-only: arc "b": it moves 2 tokens at once; only the plain net is read`},
		{simple + "\n" + `<place id="q"/><arc id="b" source="t" target="q"/><arc id="c" source="t" target="q"/>`,
			"3: approximated: arc \"c\": it runs beside the arc \"b\"; the two are read as one arc of weight 2\n" +
				`3: plain-only: arc "b": it moves 2 tokens at once; only the plain net is read`},
		{simple + `<place id="q"><initialMarking><text>3</text></initialMarking></place><arc source="q" target="t"/>`,
			`2: plain-only: place "q": it holds 3 tokens in the beginning; only the plain net is read`},
		{simple + `<transition id="u"/><arc source="u" target="p"/>`,
			`2: plain-only: transition "u": it has no input, so it can fire without end; only the plain net is read`},
		{`<place id="p"/><place id="q"/><transition id="t"/><arc source="p" target="t"/><arc source="q" target="t"/>`,
			`1: plain-only: net "n": no place is marked in the beginning and 2 places have no input; ` +
				`only the plain net is read`},
		{simple + `<arc source="t" target="p"/>`,
			`1: plain-only: net "n": every place has an output, so it never ends; only the plain net is read`},
		{`<place id="p"><initialMarking><text>1</text></initialMarking></place>`,
			"2: isolated: place \"p\": no arc begins or ends at it, so nothing that happens there matters\n" +
				`1: plain-only: net "n": no place is marked in the beginning and 0 places have no input; ` +
				`only the plain net is read`},
	} {
		r := decode(t, file(c.src))
		require.Nil(t, r.Nets[0].Definition)
		require.NotNil(t, r.Nets[0].Petri)
		require.Equal(t, c.note+"\n", r.Report.String())
		require.Empty(t, r.Definitions())
	}
}

func TestRefused(t *testing.T) {
	const nodes = "<place id='p'/>\n<transition id='t'/>\n"
	for _, c := range []struct{ src, want string }{
		{"", `f.pnml: empty: the file is empty`},
		{"{}", `f.pnml:1: wrong-format: this is not XML: it begins with "{}"`},
		{"<definitions/>", `f.pnml:1: wrong-format: <definitions>: the root of a PNML file is <pnml>; this looks like BPMN`},
		{"<pnml/>", `f.pnml:1: empty: <pnml>: there is no <net> in it`},
		{file(""), `f.pnml:1: empty: net "n": the net has no place and no transition`},
		{file("<place id='p'>\n"), `f.pnml:4: malformed: </net> closes <place>, which was opened in line 2: close that before it`},
		{file("<place/>"), `f.pnml:2: malformed: <place>: it has no id, so no arc can refer to it: give it one of its own`},
		{file("<place id='x'/>\n<transition id='x'/>"),
			`f.pnml:3: duplicate-id: transition "x": its id is already that of a place in line 2: give one of them another`},
		{file(nodes + "<arc id='a' source='p' target='t'/>\n<arc id='a' source='p' target='t'/>"),
			`f.pnml:5: duplicate-id: arc "a": its id is already that of an arc in line 4: give one of them another`},
		{file(nodes + "<arc id='a' source='p' target='q'/>"),
			`f.pnml:4: unknown-ref: arc "a": its target "q" is no place or transition of the net: correct it, or take the arc out`},
		{file(nodes + "<place id='store'/><arc id='a' source='stor' target='t'/>"),
			`f.pnml:4: unknown-ref: arc "a": its source "stor" is no place or transition of the net; did you mean "store"?`},
		{file("<place id='p'><initialMarking><text>2147483648</text></initialMarking></place>"),
			`f.pnml:2: too-large: place "p": its initialMarking is "2147483648"; at most 2147483647 tokens are read, ` +
				`and the net hardly needs so many: try it with a few`},
		{file("<place id='p'><initialMarking><text>99999999999999999999</text></initialMarking></place>"),
			`f.pnml:2: too-large: place "p": its initialMarking is "99999999999999999999"; at most 2147483647 tokens are read, ` +
				`and the net hardly needs so many: try it with a few`},
		{file(nodes + "<arc id='a' target='t'/>"), `f.pnml:4: unknown-ref: arc "a": it has no source: name the id of a place or transition`},
		{file(nodes + "<arc id='a' source='p' target='p'/>"),
			`f.pnml:4: malformed: arc "a": it joins the place "p" to the place "p"; an arc joins a place and a transition: put the other kind between them`},
		{file(nodes + "<arc id='a' source='p' target='t'><inscription><text>x+y</text></inscription></arc>"),
			`f.pnml:4: malformed: arc "a": its inscription is "x+y", which is no number of tokens; write a whole number, 0 or more`},
		{file("<place id='p'><initialMarking><text>-1</text></initialMarking></place>"),
			`f.pnml:2: malformed: place "p": its initialMarking is "-1", which is no number of tokens; write a whole number, 0 or more`},
		{file(nodes + "<arc id='a' source='p' target='t'><type><text>inhibitor</text></type></arc>"),
			`f.pnml:4: unsupported: arc "a": it is an inhibitor arc; without it more could fire, so the net is not read: ` +
				`let the transition take from a place that is marked while the other is empty, and put back into it`},
		{file(nodes + "<priority source='t' target='u'/>"),
			`f.pnml:4: unsupported: <priority>: it gives transitions priorities; without these more could fire, so the net is not read: ` +
				`take them out if the order does not matter`},
		{file(nodes + "<transition id='u'><priority><value>2</value></priority></transition>"),
			`f.pnml:4: unsupported: transition "u": its priority is "2", and that of the transition "t" "0"; ` +
				`without priorities more could fire, so the net is not read: take them out if the order does not matter`},
		{file(nodes + "<arc id='a' source='p' target='t' type='inhibitor'/>"),
			`f.pnml:4: unsupported: arc "a": it is an inhibitor arc; without it more could fire, so the net is not read: ` +
				`let the transition take from a place that is marked while the other is empty, and put back into it`},
		{file(nodes + "<arc id='a' source='p' target='t' type='tapnInhibitor'/>"),
			`f.pnml:4: unsupported: arc "a": it is an inhibitor arc; without it more could fire, so the net is not read: ` +
				`let the transition take from a place that is marked while the other is empty, and put back into it`},
		{file(nodes + "<arc id='a' source='p' target='t'><type value='stopwatch'/></arc>"),
			`f.pnml:4: unsupported: arc "a": it is an arc of the type "stopwatch", whose meaning is not known; ordinary, read and reset arcs are read`},
		{file("<place id='p'><capacity><value>1</value></capacity></place>"),
			`f.pnml:2: unsupported: place "p": its capacity is 1; without it more could fire, so the net is not read: ` +
				`put a place for the free room beside it, and take the capacity out`},
		{file("<place id='p'><initialMarking><value>Default,1,Red,2</value></initialMarking></place>"),
			`f.pnml:2: unsupported: place "p": its initialMarking is "Default,1,Red,2", tokens of several colors; only nets of one color are read`},
		{file("<place id='p'><initialMarking><value>Default,1</value></initialMarking></place><transition id='t'/>\n" +
			"<arc id='a' source='p' target='t'><inscription><value>Default,0,Red,1</value></inscription></arc>"),
			`f.pnml:3: unsupported: arc "a": its inscription is "Default,0,Red,1", tokens of several colors; only nets of one color are read`},
		{file(nodes + "<arc id='a' source='t' target='p' type='reset'/>"),
			`f.pnml:4: malformed: arc "a": a reset arc leads from a place to a transition: exchange its source and target`},
		{file(nodes + "<referencePlace id='r' ref='x'/>"),
			`f.pnml:4: unknown-ref: referencePlace "r": it stands for "x", which is no place or transition: correct its ref`},
		{file(nodes + "<referencePlace id='r' ref='r'/>"),
			`f.pnml:4: unknown-ref: referencePlace "r": it stands for itself, at once or through others: let its ref name a place or a transition`},
		{file(nodes + "<referencePlace id='r' ref='t'/>"),
			`f.pnml:4: unknown-ref: referencePlace "r": it stands for the transition "t", which is of the other kind: make it a reference to one, or correct its ref`},
		{"<pnml><net id='n' type='http://www.pnml.org/version-2009/grammar/symmetricnet'/></pnml>",
			`f.pnml:1: unsupported: net "n": it is a high-level net of type ` +
				`"http://www.pnml.org/version-2009/grammar/symmetricnet"; only place/transition nets are read: save it as one, unfolded`},
		{file("<toolspecific tool='tasq'/><place id='p'/>"), `f.pnml:2: malformed: place "p": the net is annotated by tasq ` +
			`and this element is not; remove the annotation of the net to read it as a plain one`},
	} {
		_, err := Decode(strings.NewReader(c.src), Options{File: "f.pnml"})
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.want, e.Error())
	}
}

func TestLimits(t *testing.T) {
	_, err := Decode(strings.NewReader(file("<place id='p'/>")), Options{MaxBytes: 10})
	require.ErrorContains(t, err, "too-large: the file is longer than the limit of 10 bytes")
	_, err = Decode(strings.NewReader(file(strings.Repeat("<page>", 10))), Options{MaxDepth: 5})
	require.ErrorContains(t, err, "too-large: elements lie more than 5 deep inside one another")
}

// A place that only a reset arc touches is isolated, with a reason of its own.
func TestPlaceThatOnlyAResetArcTouches(t *testing.T) {
	r := decode(t, file(`<place id="p"><initialMarking><text>1</text></initialMarking></place><place id="o"/><transition id="t"/>
		<arc id="a" source="p" target="t"/><arc id="b" source="t" target="o"/>
		<place id="odd"/><arc id="c" source="odd" target="t" type="reset"/>`))
	require.Equal(t, "4: isolated: place \"odd\": only the reset arc of the transition \"t\" touches it, and no arc puts a token into it, "+
		"so there is nothing to remove\n", r.Report.String())
	require.Equal(t, []int{2}, r.Nets[0].Petri.Transitions[0].Resets)
	require.Empty(t, r.Nets[0].Definition.Tasks[0].Cancels)
}

// A place without a name is unnamed in a net that names others.
func TestUnnamedElements(t *testing.T) {
	src := `<pnml><net id="n" type="t"><place id="p"/><place id="q"/><place id="r"/>
		<transition id="t"><name><text>Do it</text></name></transition>
		<arc id="a" source="p" target="t"/><arc id="b" source="q" target="t"/><arc id="c" source="t" target="r"/></net></pnml>`
	want := map[string]bool{"p": true, "q": true, "r": true}
	require.Equal(t, want, decode(t, src).Nets[0].Unnamed)
	bare := strings.Replace(src, "<name><text>Do it</text></name>", "", 1)
	require.Empty(t, decode(t, bare).Nets[0].Unnamed)
}
