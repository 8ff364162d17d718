package verify_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// library is a set of plain nets by file name, with the published verdicts.
type library struct {
	names []string // in the order of the verdicts
	nets  map[string]*net.Petri
	sound map[string]bool
}

// ibmLibrary reads the libraries A and B1 of the IBM business-process set.
func ibmLibrary(tb testing.TB) library {
	tb.Helper()
	f, err := os.Open(filepath.Join(modelsDir(tb), "ibm-a-b1.tar.gz"))
	require.NoError(tb, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(tb, err)
	l := library{nets: map[string]*net.Petri{}, sound: map[string]bool{}}
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return l
		}
		require.NoError(tb, err)
		text, err := io.ReadAll(files)
		require.NoError(tb, err)
		switch name := filepath.Base(h.Name); filepath.Ext(name) {
		case ".pnml":
			l.nets[name] = parsePNML(name, string(text))
		case ".csv":
			rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
			require.NoError(tb, err)
			for _, row := range rows[1:] {
				l.names = append(l.names, row[0])
				l.sound[row[0]] = row[1] == "1"
			}
		}
	}
}

// modelsDir finds the models that others made: TASQ_MODELS, or shared/models beside a folder above this one.
func modelsDir(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("TASQ_MODELS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	require.NoError(tb, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		models := filepath.Join(filepath.Dir(dir), "shared", "models")
		if _, err := os.Stat(models); err == nil {
			return models
		}
	}
	tb.Skip("the IBM models are not here: set TASQ_MODELS to the folder that holds ibm-a-b1.tar.gz")
	return ""
}

var (
	pnmlPlace      = regexp.MustCompile(`(?s)<place id="([^"]*)"(?:\s*/>|>(.*?)</place>)`)
	pnmlTransition = regexp.MustCompile(`<transition id="([^"]*)"`)
	pnmlArc        = regexp.MustCompile(`<arc id="[^"]*" source="([^"]*)" target="([^"]*)"`)
)

// parsePNML reads the few elements that these files have.
func parsePNML(name, text string) *net.Petri {
	p := &net.Petri{Name: name}
	places, transitions := map[string]int{}, map[string]int{}
	for _, m := range pnmlPlace.FindAllStringSubmatch(text, -1) {
		place := net.PetriPlace{Name: m[1]}
		if strings.Contains(m[2], "<text>1</text>") {
			place.Initial = 1
		}
		places[m[1]] = len(p.Places)
		p.Places = append(p.Places, place)
	}
	for _, m := range pnmlTransition.FindAllStringSubmatch(text, -1) {
		transitions[m[1]] = len(p.Transitions)
		p.Transitions = append(p.Transitions, net.PetriTransition{Name: m[1]})
	}
	for _, m := range pnmlArc.FindAllStringSubmatch(text, -1) {
		if t, ok := transitions[m[2]]; ok {
			p.Transitions[t].In = append(p.Transitions[t].In, net.PetriArc{Place: places[m[1]], Weight: 1})
		} else {
			t := transitions[m[1]]
			p.Transitions[t].Out = append(p.Transitions[t].Out, net.PetriArc{Place: places[m[2]], Weight: 1})
		}
	}
	return p
}

// The usual form tries each fifth net.
func TestIBMVerdicts(t *testing.T) {
	l := ibmLibrary(t)
	require.Len(t, l.names, 570)
	for i, name := range l.names {
		if i%testsize.Pick(5, 1, 1) != 0 {
			continue
		}
		rep := verify.Petri(l.nets[name], verify.Options{})
		require.NotEqual(t, verify.Unknown, rep.Verdict, name)
		require.Equal(t, l.sound[name], rep.Verdict == verify.Sound, "%s: %v", name, rep.Findings)
		if l.sound[name] {
			continue
		}
		require.NotEmpty(t, rep.Findings, name)
		for _, f := range rep.Findings {
			if f.Code != verify.DeadTask {
				require.NotNil(t, f.Witness, "%s: %s", name, f)
				require.False(t, f.Witness.Long && f.Code != verify.Unbounded, "%s: %s has no shortest witness", name, f)
				replayPetri(t, l.nets[name], f)
			}
		}
	}
}

// TestIBMTimes prints how long the nets take: TASQ_NIGHTLY=1 go test -run IBMTimes -v.
func TestIBMTimes(t *testing.T) {
	if !testsize.Nightly() {
		t.Skip("it measures: set TASQ_NIGHTLY")
	}
	l := ibmLibrary(t)
	var total, worst time.Duration
	var worstName string
	for _, name := range l.names {
		best := time.Hour
		for range 5 {
			start := time.Now()
			verify.Petri(l.nets[name], verify.Options{})
			best = min(best, time.Since(start))
		}
		if total += best; best > worst {
			worst, worstName = best, name
		}
	}
	t.Logf("%d nets, best of 5 each: %v in all, %v the slowest (%s)", len(l.names), total, worst, worstName)
}

func BenchmarkIBMLibrary(b *testing.B) {
	l := ibmLibrary(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range l.names {
			verify.Petri(l.nets[name], verify.Options{})
		}
	}
}
