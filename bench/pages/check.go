package main

import (
	"fmt"
	"strings"
	"time"
)

// The targets of the pages.
const (
	pageTime  = 50 * time.Millisecond  // of a page
	statsTime = 200 * time.Millisecond // of a page of statistics, or with the stranded cases
	caseTime  = 300 * time.Millisecond // of a case with a long history
	pageSent  = 25e3                   // bytes of a compressed page
	viewTime  = 500 * time.Millisecond // from a change to half of the viewers
	viewBytes = 60e6                   // of memory of the server for a thousand viewers
	viewShare = 0.2                    // of a processor for a thousand viewers of a case that changes four times a second
	viewRatio = 0.9                    // of the throughput of the engine without them
)

// targets collects what is missed.
type targets struct{ missed []string }

// page compares a page with its targets. With other programs on the machine the time by the clock is longer than that of a processor, so a page is too
// slow only if both are above the target.
func (t *targets) page(w *world, address string, p95, processor time.Duration, sent int) {
	most := pageTime
	switch {
	case strings.Contains(address, w.long):
		most = caseTime
	case strings.HasPrefix(address, "/stats"), strings.HasPrefix(address, "/doctor"):
		most = statsTime
	}
	if took := min(p95, processor); took > most {
		t.miss("%s takes %s, at most %s", brief(address), took.Round(time.Millisecond/10), most)
	}
	if float64(sent) > pageSent {
		t.miss("%s sends %d bytes, at most %d", brief(address), sent, int(pageSent))
	}
}

// viewers compares what many viewers of one page cost with its targets.
func (t *targets) viewers(median time.Duration, memory, share, ratio float64) {
	if median > viewTime {
		t.miss("half of the viewers see a change after %s, at most %s", median.Round(time.Millisecond), viewTime)
	}
	if memory > viewBytes {
		t.miss("viewers take %.0f MB of the server, at most %.0f", memory/1e6, viewBytes/1e6)
	}
	if share > viewShare {
		t.miss("viewers take %.2f of a processor, at most %.2f", share, viewShare)
	}
	if ratio < viewRatio {
		t.miss("the engine has %.2f of its throughput beside viewers, at least %.2f", ratio, viewRatio)
	}
}

func (t *targets) miss(format string, args ...any) {
	t.missed = append(t.missed, fmt.Sprintf(format, args...))
}

// err is nil if no target is missed.
func (t *targets) err() error {
	if len(t.missed) == 0 {
		return nil
	}
	return fmt.Errorf("targets are missed:\n  %s", strings.Join(t.missed, "\n  "))
}
