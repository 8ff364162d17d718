package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// addresses are what is asked for: of each page, with each filter alone, those that are chosen.
func (w *world) addresses(chosen *regexp.Regexp) []string {
	long, claim := "/cases/"+w.long, "/cases/"+w.claim
	all := []string{"/", "/workflows", "/workflows/claim", claim, claim + "?tab=history", claim + "?entry=2", long}
	for _, tab := range []string{"items", "steps", "jobs", "events", "history", "data"} {
		all = append(all, long+"?tab="+tab)
	}
	all = append(all, fmt.Sprintf("%s?at=%d", long, w.middle), "/items/"+w.item, "/jobs", "/steps", "/events", "/incidents", "/incidents?code=x", "/incidents?code=no-carrier", "/doctor", "/audit", "/audit?by=ann", "/limits", "/schedules", "/stats", "/stats?newer=30d&workflow=claim", "/stats", "/stats?newer=30d",
		"/search?q="+w.item, "/search?q=cla", "/help")
	for _, filter := range strings.Fields("workflow=claim state=started state=failed state=canceled root=1 key=none older=1s newer=1h code=cause-93") {
		all = append(all, "/cases?"+filter)
	}
	for _, filter := range strings.Fields("workflow=claim task=check task=none state=initialized state=started state=failed queue=clerks queue=clerks&state=started holder=ann attempt=2 older=1s newer=1h code=cause-93") {
		all = append(all, "/items?"+filter)
	}
	return slices.DeleteFunc(append(all, "/cases", "/items"), func(address string) bool { return !chosen.MatchString(address) })
}

// measure asks for each address, and prints how long the server takes, by the clock and of a processor, and what it sends. With other programs on the
// machine the processor is what counts.
func measure(ctx context.Context, pages http.Handler, w *world, t *targets, addresses []string, rounds int, think time.Duration) error {
	fmt.Printf("%-50s %9s %9s %9s %9s %9s\n", "address", "p50 ms", "p95 ms", "CPU ms", "kB", "kB sent")
	for _, address := range addresses { // what a page remembers of the first time is part of what is measured
		var took []time.Duration
		var whole, sent int
		if strings.Contains(address, "at=") {
			time.Sleep(think)
		}
		used := processor()
		for range rounds {
			began, before := time.Now(), processor()
			body, err := get(ctx, pages, address, "")
			if err != nil {
				return err
			}
			if whole = body; len(took) == 0 && rounds > 1 && strings.Contains(address, "at=") {
				fmt.Printf("%-50s %9.1f the first time, CPU %.1f\n", brief(address), time.Since(began).Seconds()*1000, (processor()-before).Seconds()*1000)
				used += processor() - before
			}
			took = append(took, time.Since(began))
		}
		each := (processor() - used).Seconds() * 1000 / float64(rounds)
		sent, err := get(ctx, pages, address, "gzip")
		if err != nil {
			return err
		}
		slices.Sort(took)
		ms := func(part int) float64 { return float64(took[(len(took)-1)*part/100].Microseconds()) / 1000 }
		t.page(w, address, took[(len(took)-1)*95/100], time.Duration(each*float64(time.Millisecond)), sent)
		fmt.Printf("%-50s %9.1f %9.1f %9.1f %9.1f %9.1f\n", brief(address), ms(50), ms(95), each, float64(whole)/1e3, float64(sent)/1e3)
	}
	return nil
}

// processor is the time of processors that the program has used.
func processor() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func get(ctx context.Context, pages http.Handler, address, encoding string) (int, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
		return 0, fmt.Errorf("%s: %d: %s", address, w.Code, w.Body)
	}
	return w.Body.Len(), nil
}

// brief is an address without the whole of its ids.
func brief(address string) string {
	fields := strings.Split(address, "/")
	for i, f := range fields {
		id, query, _ := strings.Cut(f, "?")
		if len(id) == 36 {
			fields[i] = "ID"
			if query != "" {
				fields[i] += "?" + query
			}
		}
	}
	return strings.Join(fields, "/")
}
