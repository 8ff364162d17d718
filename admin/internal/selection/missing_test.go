package selection

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of many missing workflows the first three are named, each once.
func TestTheNamesOfMissingWorkflows(t *testing.T) {
	var l Lacking
	for _, name := range []string{"pay 2", "claim 1", "pay 2", "order 1"} {
		l.Add(&Lack{Workflow: name})
	}
	require.Equal(t, "claim 1, order 1, pay 2", l.Names())
	l.Add(&Lack{Workflow: "review 1"})
	l.Add(&Lack{Workflow: "zoo 1"})
	require.Equal(t, "claim 1, order 1, pay 2 and 2 more", l.Names())
	require.Equal(t, 6, l.N)
}
