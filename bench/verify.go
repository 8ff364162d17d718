package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net/verify"
)

// verifyLibrary reads and verifies all nets of a library, one after the other and that many times over, on one core.
// The figure of a net is its median over the passes. That of the library is the median of whole passes, which also hold
// the garbage collector's share.
func verifyLibrary(r job, l library) (metrics, error) {
	runtime.GOMAXPROCS(1)
	files, err := modeltest.Read(l.archive, l.endings...)
	if err != nil {
		return nil, err
	}
	var reads sample
	var all []subject
	for range 3 { // the first warms up
		at := time.Now()
		if all, err = decode(files); err != nil {
			return nil, err
		}
		reads = append(reads, ms(time.Since(at)))
	}
	all = wellFormed(all)
	m := metrics{"read": reads[1:].median(), "n": float64(len(all))}
	for _, s := range all {
		rep, err := s.verify()
		if err != nil {
			return nil, err
		}
		m[rep.Verdict.String()]++
	}
	each, whole, err := passes(all, r.pick(21, 41))
	if err != nil {
		return nil, err
	}
	m["pass"] = whole.median()
	slices.SortFunc(each, func(a, b timed) int { return cmp.Compare(a.us, b.us) })
	for name, p := range map[string]float64{"p50": 50, "p99": 99, "max": 100} {
		m[name] = percentile(each, p).us
	}
	for _, t := range each {
		m["sum"] += t.us / 1000
	}
	if r.verbose {
		for _, t := range each[max(0, len(each)-3):] {
			fmt.Fprintf(os.Stderr, "\n%s: %s us: %s\n", l.name, short(t.us), t.name)
		}
	}
	return m, nil
}

// timed is a net and how long it takes.
type timed struct {
	name string
	us   float64
}

// passes verifies all nets so many times over. It returns medians by net, and the time of each pass in milliseconds.
func passes(all []subject, n int) (each []timed, whole sample, err error) {
	took := make([]sample, len(all))
	for range n {
		began := time.Now()
		for i, s := range all {
			at := time.Now()
			if _, err := s.verify(); err != nil {
				return nil, nil, err
			}
			took[i] = append(took[i], 1000*ms(time.Since(at)))
		}
		whole = append(whole, ms(time.Since(began)))
	}
	for i, s := range all {
		each = append(each, timed{s.name, took[i].median()})
	}
	return each, whole, nil
}

// searchLibrary has the naive search decide the nets of a library, and compares it with verification on those that it
// decides within its budget. It is an error if they disagree.
func searchLibrary(r job, l library) (metrics, error) {
	runtime.GOMAXPROCS(1)
	files, err := modeltest.Read(l.archive, l.endings...)
	if err != nil {
		return nil, err
	}
	all, err := decode(files)
	if err != nil {
		return nil, err
	}
	return compare(wellFormed(all), r.budget())
}

// compare measures both on each net in turn, so that they share the machine's noise. Times are milliseconds, those of a
// single net microseconds.
func compare(all []subject, budget int) (metrics, error) {
	m := metrics{"n": float64(len(all))}
	var took sample
	for _, s := range all {
		var a answer
		naive, err := medianOf(func() (err error) { a, err = s.search(budget); return err })
		if err != nil {
			return nil, err
		}
		var rep verify.Report
		ours, err := medianOf(func() (err error) { rep, err = s.verify(); return err })
		switch {
		case err != nil:
			return nil, err
		case a.over:
			m["over"]++
			m["lost"] += naive
			m["spared"] += ours
			continue
		case rep.Verdict != verify.Unknown && !a.agrees(rep.Verdict):
			return nil, fmt.Errorf("%w: %s: searched: %+v, verified: %v", errDisagree, s.name, a, rep.Verdict)
		}
		m["decided"]++
		m["sum"] += naive
		m["tasq"] += ours
		took = append(took, 1000*naive)
	}
	slices.Sort(took)
	m["p50"], m["p99"], m["max"] = percentile(took, 50), percentile(took, 99), percentile(took, 100)
	if m["tasq"] > 0 {
		m["ratio"] = m["sum"] / m["tasq"]
	}
	return m, nil
}

// medianOf calls a function up to five times, but not again once it has taken 10 ms, and returns the median in
// milliseconds.
func medianOf(f func() error) (float64, error) {
	var took sample
	for sum := 0.0; len(took) < 5 && sum < 10; {
		at := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		t := ms(time.Since(at))
		took, sum = append(took, t), sum+t
	}
	return took.median(), nil
}

// verifyLarge verifies a net of many nodes. The peak of the process's memory is that after the first time, with the net
// itself and the program in it.
func verifyLarge(r job, s subject, want verify.Verdict) (metrics, error) {
	runtime.GOMAXPROCS(1)
	var took sample
	m := make(metrics)
	for range r.pick(5, 15) {
		at := time.Now()
		rep, err := s.verify()
		took = append(took, ms(time.Since(at)))
		switch {
		case err != nil:
			return nil, err
		case rep.Verdict != want:
			return nil, fmt.Errorf("%s is %v by construction, and verified as %v", s.name, want, rep.Verdict)
		}
		if len(took) == 1 {
			m["first"], m["peak"], m["states"] = took[0], peakMiB(), float64(rep.States)
		}
	}
	m["ms"] = took.median()
	return m, nil
}

// peakMiB is the most memory that the process has held so far; 0 where the operating system does not report it.
func peakMiB() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for text := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(text, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
