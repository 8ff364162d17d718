package pnml

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
)

// Every net of libraries A and B1 is read, and comes back the same after it has been written.
func TestIBMLibrary(t *testing.T) {
	files := modeltest.Files(t, "ibm-a-b1.tar.gz", ".pnml")
	require.Len(t, files, 570)
	var nets, definitions, orJoins, isolated, illFormed, sinks, nodes, arcs int
	var spent time.Duration
	for _, f := range files {
		began := time.Now()
		r, err := Decode(strings.NewReader(f.Data), Options{File: f.Base()})
		spent += time.Since(began)
		require.NoError(t, err)
		require.Len(t, r.Nets, 1)
		nets++
		p := r.Nets[0].Petri
		require.Equal(t, 1, sum(p.Initial()), f.Name)
		nodes += len(p.Places) + len(p.Transitions)
		for i := range p.Transitions {
			arcs += len(p.Transitions[i].In) + len(p.Transitions[i].Out)
		}
		if len(p.Sinks()) > 1 {
			sinks++
		}
		isolated += r.Report.Count(Isolated)
		def := r.Nets[0].Definition
		if def == nil {
			require.Equal(t, 1, r.Report.Count(PlainOnly), f.Name)
			continue
		}
		definitions++
		if def.Tasks[len(def.Tasks)-1].Join == net.Or {
			orJoins++
		}
		roundTrip(t, def)
		if len(def.Check()) > 0 {
			illFormed++
			require.NotZero(t, r.Report.Count(Disconnected), f.Name)
		}
		plain := new(bytes.Buffer)
		require.NoError(t, EncodePetri(plain, p))
		again, err := Decode(plain, Options{})
		require.NoError(t, err)
		require.Equal(t, bare(p), bare(again.Nets[0].Petri), f.Name)
	}
	require.Equal(t, []int{570, 43124, 51995, 570, 522, 523, 1},
		[]int{nets, nodes, arcs, definitions, sinks, orJoins, illFormed})
	modeltest.InDocs(t, "| IBM libraries A and B1 (PNML) | %d | %d | %d nets | %d |",
		len(files), nets, definitions, illFormed)
	t.Logf("%d nets with %d nodes and %d arcs read in %v, %d of them as definitions; %d have several sinks, "+
		"%d are closed by an or-join, %d places left out, %d not well-formed", nets, nodes, arcs, spent, definitions, sinks,
		orJoins, isolated, illFormed)
}

func sum(m []int) int {
	n := 0
	for _, x := range m {
		n += x
	}
	return n
}

// bare is a net without its name and its places in a file.
func bare(p *net.Petri) *net.Petri {
	q := &net.Petri{}
	for _, x := range p.Places {
		x.Pos = net.Pos{}
		q.Places = append(q.Places, x)
	}
	for _, x := range p.Transitions {
		x.Pos = net.Pos{}
		q.Transitions = append(q.Transitions, x)
	}
	return q
}

// roundTrip writes a definition, reads it again and demands the same.
func roundTrip(t *testing.T, def *net.Definition) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Encode(&b, def))
	r, err := Decode(strings.NewReader(b.String()), Options{})
	require.NoError(t, err)
	require.Len(t, r.Nets, 1)
	require.Equal(t, modeltest.WithoutPos(def), modeltest.WithoutPos(r.Nets[0].Definition))
	return b.String()
}
