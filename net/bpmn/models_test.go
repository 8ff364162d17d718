package bpmn

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// totals counts what was read.
type totals struct {
	Files, Processes, SubProcesses, Conditions, Tasks, Flows, Composites, Regions, OrJoins int
}

func (c *totals) add(r *Result) {
	c.Files++
	for _, n := range r.Nets {
		if n.Root {
			c.Processes++
		} else {
			c.SubProcesses++
		}
		d := n.Definition
		c.Conditions += len(d.Conditions)
		c.Tasks += len(d.Tasks)
		c.Flows += len(d.Flows)
		for _, t := range d.Tasks {
			if t.Kind == net.Composite {
				c.Composites++
			}
			if len(t.Cancels) > 0 {
				c.Regions++
			}
			if t.Join == net.Or {
				c.OrJoins++
			}
		}
	}
}

// Every file is read, and every net comes back the same after it has been written as PNML. Those that are no workflow,
// for they never end, are known by name.
func TestModels(t *testing.T) {
	var total totals
	notes, outcomes := map[Code]int{}, map[string]int{}
	illFormed := map[string]bool{}
	collaborations := 0
	files := modeltest.Files(t, "bpmn.tar.gz", ".bpmn")
	for _, f := range files {
		r, err := Decode(strings.NewReader(f.Data), Options{File: f.Base()})
		require.NoError(t, err)
		total.add(r)
		for _, n := range r.Report.Notes {
			notes[n.Code]++
		}
		require.Empty(t, net.CheckAll(r.Definitions()), f.Name)
		for _, n := range r.Collaborations {
			roundTrip(t, n.Definition)
			collaborations++
		}
		for _, d := range r.Definitions() {
			roundTrip(t, d)
			if !wellFormed(d) {
				illFormed[f.Base()] = true
				outcomes["ill-formed"]++
				continue
			}
			outcomes[strings.FieldsFunc(modeltest.Explore(net.MustCompile(d), 2000).String(), notLetter)[0]]++
		}
	}
	modeltest.InDocs(t, "| BPMN 2.0 | %d | %d | %d processes, %d sub-processes | %d |", len(files), total.Files,
		total.Processes, total.SubProcesses, outcomes["ill-formed"])
	require.Equal(t, 60, collaborations)
	t.Logf("%+v", total)
	t.Logf("notes: %v", notes)
	t.Logf("looking at every state: %v", outcomes)
	require.Equal(t, totals{Files: 151, Processes: 236, SubProcesses: 66, Conditions: 927, Tasks: 2118, Flows: 3181,
		Composites: 66, Regions: 140, OrJoins: 85}, total)
	require.Equal(t, map[string]int{
		"sound": 286, "stuck": 5, "dead": 3, "big": 4, "ill-formed": 4}, outcomes)
	require.Equal(t, map[Code]int{
		Kept: 476, NotCarried: 211, Closed: 100, Approximated: 50, LeftOut: 24}, notes)
	require.Equal(t, map[string]bool{
		"e019TemperatureIoT.bpmn": true, // which does not end
	}, illFormed)
}

// wellFormed reports whether a net can be verified: what counts ends is a cycle of routing tasks, each round of which
// takes a token.
func wellFormed(d *net.Definition) bool {
	return !slices.ContainsFunc(d.Check(), func(p net.Problem) bool { return p.Code != net.RoutingCycle })
}

func notLetter(r rune) bool { return r == ',' || r == ' ' }

func roundTrip(t *testing.T, d *net.Definition) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, pnml.Encode(&b, d))
	again, err := pnml.Decode(&b, pnml.Options{})
	require.NoError(t, err)
	require.Equal(t, modeltest.WithoutPos(d), modeltest.WithoutPos(again.Nets[0].Definition))
}

// The models that were drawn to be wrong are, and those beside them that were drawn to be right are too. Those named
// after improper completion reach an end event twice, which BPMN allows.
func TestDeliberateErrors(t *testing.T) {
	want := map[string]string{
		"proper-completion-1.bpmn":           "sound",
		"proper-completion-2.bpmn":           "sound",
		"no-proper-completion-1.bpmn":        "sound",
		"no-proper-completion-2.bpmn":        "sound",
		"no-proper-completion-3-unsafe.bpmn": "sound",
		"dead.bpmn":                          "stuck, dead DEAD_1 DEAD_2 Event_08ud31k Gateway_0banw3t",
	}
	got := map[string]string{}
	for _, f := range modeltest.Files(t, "bpmn.tar.gz", ".bpmn") {
		if want[f.Base()] == "" {
			continue
		}
		r, err := Decode(strings.NewReader(f.Data), Options{})
		require.NoError(t, err)
		require.Len(t, r.Nets, 1)
		got[f.Base()] = modeltest.Explore(net.MustCompile(r.Nets[0].Definition), 1000).String()
	}
	require.Equal(t, want, got)
}
