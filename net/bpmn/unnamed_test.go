package bpmn

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the file names is named in the net; its other elements, and those that are added, are not. A file without any
// names means its ids.
func TestUnnamedElements(t *testing.T) {
	src := func(name string) string {
		return process(`<startEvent id='s'/><task id='a' ` + name + `/><boundaryEvent id='b' attachedToRef='a'>
			<timerEventDefinition/></boundaryEvent><endEvent id='e'/>
			s -> a
			a -> e
			b -> e`)
	}
	for name, want := range map[string][]string{
		"name='Do it'": {"Do_it_begin", "Do_it_ready", "b", "b_armed", "e", "in", "out", "s"},
		"":             {"a_begin", "a_ready", "b_armed", "in", "out"},
	} {
		r, err := Decode(strings.NewReader(src(name)), Options{})
		require.NoError(t, err)
		require.Equal(t, want, slices.Sorted(maps.Keys(r.Nets[0].Unnamed)))
	}
}
