package yawl

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// totals counts what was read.
type totals struct {
	Files, Nets, Conditions, Tasks, Flows, Composites, Regions, OrJoins, Instances, Predicates, NotCarried, Added int
}

func (c *totals) add(r *Result) {
	c.Files++
	for _, d := range r.Definitions() {
		c.Nets++
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
	c.Instances += r.Report.Count(MultiInstance)
	c.Predicates += r.Report.Count(Kept)
	c.NotCarried += r.Report.Count(NotCarried)
	c.Added += r.Report.Count(Closed)
}

// Every file is read, engine's and editor's, and every net comes back the same after it has been written as PNML.
func TestModels(t *testing.T) {
	var engine, editor totals
	outcomes := map[string]int{}
	for _, f := range modeltest.Files(t, "yawl.tar.gz", ".xml", ".yawl", ".ywl") {
		r, err := Decode(strings.NewReader(f.Data), Options{File: f.Base()})
		require.NoError(t, err)
		require.True(t, r.Nets[0].Root, f.Name)
		require.Zero(t, r.Report.Count(UnknownElement)+r.Report.Count(LeftOut), "%s\n%v", f.Name, &r.Report)
		if strings.HasPrefix(f.Data, "PK") {
			editor.add(r)
		} else {
			engine.add(r)
		}
		for _, d := range r.Definitions() {
			if n, err := net.Compile(d); err != nil {
				outcomes["ill-formed"]++
			} else {
				o := modeltest.Explore(n, 5000)
				outcomes[strings.FieldsFunc(o.String(), notLetter)[0]]++
			}
			var b bytes.Buffer
			require.NoError(t, pnml.Encode(&b, d))
			again, err := pnml.Decode(&b, pnml.Options{})
			require.NoError(t, err)
			require.Equal(t, modeltest.WithoutPos(d), modeltest.WithoutPos(again.Nets[0].Definition), f.Name)
		}
	}
	t.Logf("engine's files: %+v", engine)
	t.Logf("editor's files: %+v", editor)
	t.Logf("looking at every state: %v", outcomes)
	require.Equal(t, map[string]int{"sound": 45, "improper": 5, "stuck": 3}, outcomes)
	modeltest.InDocs(t, "| YAWL, engine's files, Beta 2 to 3.0 | %d | %[1]d | %d nets | 0 |", engine.Files, engine.Nets)
	modeltest.InDocs(t, "| YAWL, files of the editor up to 2.0 | %d | %[1]d | %d nets | 0 |", editor.Files, editor.Nets)
	require.Equal(t, totals{Files: 14, Nets: 35, Conditions: 107, Tasks: 214, Flows: 382, Composites: 21, Regions: 10,
		OrJoins: 10, Instances: 9, Predicates: 85, NotCarried: 842}, engine)
	require.Equal(t, totals{Files: 13, Nets: 18, Conditions: 42, Tasks: 60, Flows: 104, Composites: 5, Regions: 2,
		OrJoins: 2, Instances: 4, Predicates: 13, NotCarried: 14}, editor)
}

func notLetter(r rune) bool { return r == ',' || r == ' ' }
