package pnml

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// large is a net of n diamonds in a row, each a choice between two ways.
func large(n int) *net.Petri {
	p := &net.Petri{Name: "large"}
	place := func() int {
		p.Places = append(p.Places, net.PetriPlace{Name: fmt.Sprint("p", len(p.Places))})
		return len(p.Places) - 1
	}
	fire := func(from, to int) {
		p.Transitions = append(p.Transitions, net.PetriTransition{Name: fmt.Sprint("t", len(p.Transitions)),
			In: []net.PetriArc{{Place: from, Weight: 1}}, Out: []net.PetriArc{{Place: to, Weight: 1}}})
	}
	at := place()
	p.Places[at].Initial = 1
	for range n {
		left, right, next := place(), place(), place()
		fire(at, left)
		fire(at, right)
		fire(left, next)
		fire(right, next)
		at = next
	}
	return p
}

func largeFile(tb testing.TB) []byte {
	var b bytes.Buffer
	require.NoError(tb, EncodePetri(&b, large(24000/7)))
	return b.Bytes()
}

// A net of 24 000 nodes fits in little memory.
func TestLargeNet(t *testing.T) {
	file := largeFile(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Decode(bytes.NewReader(file), Options{})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	p := r.Nets[0].Petri
	require.Equal(t, 23997, len(p.Places)+len(p.Transitions))
	require.Empty(t, r.Report.Notes)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes of PNML, %d bytes allocated to read them", len(file), allocated)
	require.Less(t, allocated, uint64(100<<20))
}

// BenchmarkDecode reads a net of 24 000 nodes.
func BenchmarkDecode(b *testing.B) {
	file := largeFile(b)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(bytes.NewReader(file), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
