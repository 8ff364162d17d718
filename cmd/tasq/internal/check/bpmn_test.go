package check_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// flows writes sequence flows: "a-b b-c" leads from a to b and from b to c.
func flows(pairs string) string {
	var b strings.Builder
	for _, pair := range strings.Fields(pairs) {
		from, to, _ := strings.Cut(pair, "-")
		b.WriteString("<sequenceFlow id='" + pair + "' sourceRef='" + from + "' targetRef='" + to + "'/>")
	}
	return b.String()
}

func bpmn(content string) string { return "<definitions>\n" + content + "</definitions>" }

func text(t *testing.T, model string) (string, *check.File) {
	t.Helper()
	f := check.Read("m.bpmn", strings.NewReader(model), check.Options{})
	var b strings.Builder
	out := check.Text{W: &b}
	require.NoError(t, out.File(f))
	require.NoError(t, out.End())
	return b.String(), f
}

// replays demands that every run that shows a finding is one that the engine repeats.
func replays(t *testing.T, f *check.File) {
	t.Helper()
	for i := range f.Nets {
		for _, finding := range f.Nets[i].Report.Findings {
			if finding.Witness == nil {
				continue
			}
			written, err := f.Nets[i].Scenario(finding)
			require.NoError(t, err)
			file, err := scenario.Parse("w.txt", written)
			require.NoError(t, err)
			result, err := scenario.Run(t.Context(), file, sqlite.Memory())
			require.NoError(t, err)
			require.Empty(t, result.Mismatches, string(written))
			require.NoError(t, result.Broken)
		}
	}
}

// Two pools of which each waits for the other's message first are sound alone, and stuck together.
func TestCrossedMessagesAreADeadlock(t *testing.T) {
	pools := func(a, b string) string {
		return bpmn(`<collaboration id='c' name='order'><participant id='pa' name='Shop' processRef='A'/>
			<participant id='pb' name='Bank' processRef='B'/>
			<messageFlow id='m1' sourceRef='sa' targetRef='rb'/>
			<messageFlow id='m2' sourceRef='sb' targetRef='ra'/></collaboration>
			<process id='A'><startEvent id='s'/><receiveTask id='ra'/><sendTask id='sa'/>` + flows(a) + `</process>
			<process id='B'><startEvent id='t'/><receiveTask id='rb'/><sendTask id='sb'/>` + flows(b) + `</process>`)
	}
	out, f := text(t, pools("s-ra ra-sa", "t-rb rb-sb"))
	require.Contains(t, out, `no-option-to-complete: a case can get stuck with "s->ra" and "t->rb"; "ra" waits for `+
		`"ra_message" [order]`)
	require.Contains(t, out, "3 nets: 2 sound, 1 unsound\n")
	replays(t, f)

	out, _ = text(t, pools("s-sa sa-ra", "t-rb rb-sb"))
	require.Equal(t, "1 file, 3 nets: 3 sound\n", out)
}

// A message that remains is no work left over, and one that is sent twice begins two instances of a process.
func TestMessagesBeginProcesses(t *testing.T) {
	model := func(reply string) string {
		return bpmn(`<collaboration id='c'><messageFlow id='m1' sourceRef='a1' targetRef='begin'/>
			<messageFlow id='m2' sourceRef='a2' targetRef='begin'/>` + reply + `</collaboration>
			<process id='A'><startEvent id='s'/><sendTask id='a1'/><sendTask id='a2'/><receiveTask id='r1'/><receiveTask id='r2'/>
			<endEvent id='e'/>` + flows("s-a1 a1-a2 a2-r1 r1-r2 r2-e") + `</process>
			<process id='B'><startEvent id='begin'><messageEventDefinition/></startEvent><sendTask id='b'/>
			<endEvent id='f'/>` + flows("begin-b b-f") + `</process>`)
	}
	out, _ := text(t, model("<messageFlow id='m3' sourceRef='b' targetRef='r1'/>"))
	require.Equal(t, "1 file, 3 nets: 3 sound\n", out)
	out, f := text(t, model("<messageFlow id='m3' sourceRef='e' targetRef='begin'/><messageFlow id='m4' sourceRef='f' targetRef='r1'/>"+
		"<messageFlow id='m5' sourceRef='f' targetRef='r2'/>"))
	require.Equal(t, "1 file, 3 nets: 3 sound\n", out, "%v", f.Notes)
}

// What the file lacks in its nets is a warning in every form of output, and the verdict says that it is about the rest.
func TestOmittedElementsAreWarnings(t *testing.T) {
	model := bpmn(`<process id='p'><startEvent id='s'/><task id='a'/>
		<task id='orphan'/>` + flows("s-a a-nothing") + `</process>`)
	out, f := text(t, model)
	require.Equal(t, `m.bpmn:3: warning: left-out: sequenceFlow "a-nothing": its targetRef "nothing" is no flow node of the file
m.bpmn:3: warning: left-out: task "orphan": no flow leads to it, and what it lies in begins with an event, so it is left out
1 file, 1 net: 1 sound; 1 file read in part, with verdicts on that part; 2 warnings
`, out)

	var b bytes.Buffer
	require.NoError(t, (&check.Text{W: &b, Verbose: true}).File(f))
	require.Contains(t, b.String(), "p is sound, as far as it was read\n")
	require.Equal(t, 1, strings.Count(b.String(), "orphan\": no flow leads to it"))

	b.Reset()
	require.NoError(t, check.JSON{W: &b}.File(f))
	var row check.Row
	require.NoError(t, json.Unmarshal(b.Bytes(), &row))
	require.True(t, row.Partial)
	require.Equal(t, check.RowFinding{Code: "left-out", Subject: `task "orphan"`, Text: `task "orphan": no flow leads to it, ` +
		`and what it lies in begins with an event, so it is left out`, Elements: []check.RowElement{{Name: `task "orphan"`, Line: 3}}},
		row.Warnings[1])

	b.Reset()
	sarif := &check.SARIF{}
	require.NoError(t, sarif.File(f))
	require.NoError(t, sarif.Write(&b))
	require.Contains(t, b.String(), `"ruleId": "left-out"`)
	require.NotContains(t, b.String(), "The file cannot be read")

	silent := check.Read("m.bpmn", strings.NewReader(model), check.Options{Silence: check.WarningCodes()})
	require.Empty(t, silent.Messages())
	require.True(t, silent.Partial)
}

// A file that is refused gives every reason.
func TestEveryReasonOfARefusal(t *testing.T) {
	out, _ := text(t, bpmn("<process id='p'><task id='a'/>\n<task id='a'/>\n<task id='p'/></process>"))
	require.Equal(t, `m.bpmn:3: duplicate-id: task "a": its id is already that of an element in line 2: give one of them another
m.bpmn:4: duplicate-id: task "p": its id is already that of an element in line 2: give one of them another
1 file, 0 nets; 1 file unreadable
`, out)
}

// An event sub-process does not hide that the rest of its process is stuck: one for compensation never interrupts, and
// one that runs beside the rest does not end it.
func TestEventSubProcessesHideNoDeadlock(t *testing.T) {
	model := func(start string) string {
		return bpmn(`<process id='p'><startEvent id='s'/><exclusiveGateway id='x'/><task id='a'/><task id='b'/>
			<parallelGateway id='q'/><endEvent id='e'/>` + flows("s-x x-a x-b a-q b-q q-e") + `
			<subProcess id='h' triggeredByEvent='true'>` + start + `<task id='u'/>` + flows("hs-u") + `</subProcess></process>`)
	}
	for start, want := range map[string]string{
		"<startEvent id='hs'><compensateEventDefinition/></startEvent>":                    `a case can get stuck with "a->q"; "q" waits for "b->q"`,
		"<startEvent id='hs' isInterrupting='false'><signalEventDefinition/></startEvent>": `a case can get stuck while other branches end: what waits at`,
	} {
		out, f := text(t, model(start))
		require.Contains(t, out, want)
		require.Contains(t, out, "dead-task q: ")
		require.Contains(t, out, "dead-task e: ")
		require.NotContains(t, out, "dead-task main", "the file has no such task")
		require.Equal(t, check.Unsound, f.Verdict())
		replays(t, f)
	}
}

// An end event consumes tokens as they come, so parallel branches may lead to one end event.
func TestParallelFlowsIntoOneEnd(t *testing.T) {
	out, _ := text(t, bpmn(`<process id='p'><startEvent id='s'/><parallelGateway id='g'/><task id='a'/><task id='b'/><endEvent id='e'/>`+
		flows("s-g g-a g-b a-e b-e")+`</process>`))
	require.Equal(t, "1 file, 1 net: 1 sound\n", out)
}

// What is stuck continues to where it stops, though the other branches have ended: the tasks on the way can start.
func TestStuckBranchRunsToItsDeadlock(t *testing.T) {
	out, f := text(t, bpmn(`<process id='p'><startEvent id='s'/><exclusiveGateway id='x'/><parallelGateway id='g'/>
		<task id='a'/><task id='b'/><task id='c'/><parallelGateway id='q'/><endEvent id='e'/><endEvent id='f'/>`+
		flows("s-g g-x g-e x-a x-b a-q b-c c-q q-f")+`</process>`))
	require.Contains(t, out, "a case can get stuck while other branches end: what waits at")
	require.Contains(t, out, "dead-task q: ")
	require.NotContains(t, out, "dead-task a: ")
	require.NotContains(t, out, "dead-task b: ")
	require.NotContains(t, out, "dead-task c: ")
	replays(t, f)
}

// A net within a net is not verified, and the summary says so.
func TestANetWithinANetLeavesTheFilePartial(t *testing.T) {
	out, f := text(t, `<pnml><net id='n'><page id='g'><place id='p'/><place id='q'/><transition id='t'/>
		<arc source='p' target='t'/><arc source='t' target='q'/>
		<page id='t'><net id='inner'><place id='i'/></net></page></page></net></pnml>`)
	require.True(t, f.Partial)
	require.Contains(t, out, "1 file, 1 net: 1 sound; 1 file read in part, with verdicts on that part; 1 warning\n")
}
