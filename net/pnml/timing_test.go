package pnml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDelaysAreNotedOnceAndEqualPrioritiesAreRead(t *testing.T) {
	timed := `<priority><value>1</value></priority><delay><interval closure="closed"><cn>0</cn><cn>3</cn></interval></delay>`
	r, err := Decode(strings.NewReader(file(`<place id="p"><initialMarking><text>1</text></initialMarking></place><place id="q"/>
		<place id="o"/><transition id="t">`+timed+`</transition>
		<transition id="u">`+timed+`</transition>
		<arc source="p" target="t"/><arc source="t" target="q"/><arc source="q" target="u"/><arc source="u" target="o"/>`)),
		Options{File: "f.pnml"})
	require.NoError(t, err)
	require.Equal(t, "3: kept: transition \"t\": it fires after a delay, which a net does not know, as any further ones\n",
		r.Report.String())
}
