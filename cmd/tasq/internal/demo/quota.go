package demo

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// quota is what a model server admits for each of its API keys: a number of calls in any window, and a number at once.
type quota struct {
	keys   []string
	most   int           // calls of a key that the server admits in any window
	per    time.Duration // the length of a window
	atOnce int           // calls of a key that the server handles at a time
	takes  time.Duration // the duration of a call
}

// quotaServer is a model server that answers 429 if a key exceeds its quota. It has its own counts, which do not depend
// on the limits of the caller.
type quotaServer struct {
	quota
	mu    sync.Mutex
	of    map[string]*keyCount
	first time.Time // the time of the first call
	last  time.Time // the time of the last answer
}

// keyCount has the counts of the server for a key.
type keyCount struct {
	Running   int
	Served    int
	Refused   int
	MostRun   int // at a time
	MostCalls int // in any window
	calls     []time.Time
}

func newQuotaServer(q quota) *quotaServer {
	s := &quotaServer{quota: q, of: make(map[string]*keyCount)}
	for _, key := range q.keys {
		s.of[key] = new(keyCount)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *quotaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if code := s.begin(key); code != http.StatusOK {
		http.Error(w, http.StatusText(code), code)
		return
	}
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
	}
	s.end(key) // before the answer, since the caller may call again as soon as it has it
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{"answer": "yes"}) //nolint:errcheck // the caller has closed the connection
}

// begin counts a call, or refuses it and returns the HTTP status.
func (s *quotaServer) begin(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.of[key], retry.SystemClock.Now()
	if k == nil {
		return http.StatusUnauthorized
	}
	for len(k.calls) > 0 && now.Sub(k.calls[0]) >= s.per {
		k.calls = k.calls[1:]
	}
	if k.Running == s.atOnce || len(k.calls) == s.most {
		k.Refused++
		return http.StatusTooManyRequests
	}
	if s.first.IsZero() {
		s.first = now
	}
	k.calls = append(k.calls, now)
	k.Running++
	k.MostRun, k.MostCalls = max(k.MostRun, k.Running), max(k.MostCalls, len(k.calls))
	return http.StatusOK
}

func (s *quotaServer) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[key].Running--
	s.of[key].Served++
	s.last = retry.SystemClock.Now()
}

// counted returns the counts of the keys in order, and the time from the first call to the last answer.
func (s *quotaServer) counted() (of []keyCount, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		of = append(of, *s.of[key])
	}
	return of, s.last.Sub(s.first)
}

// leastTime returns the least time for a number of calls, if each begins as soon as a key has room for it.
func (q *quota) leastTime(calls int) (took time.Duration) {
	begins := make([][]time.Duration, len(q.keys)) // of the calls of each key
	for range calls {
		first, at := 0, time.Duration(0)
		for key := range q.keys {
			if t := q.next(begins[key]); key == 0 || t < at {
				first, at = key, t
			}
		}
		begins[first] = append(begins[first], at)
		took = max(took, at+q.takes)
	}
	return took
}

// next returns the time at which a key has room for another call after those that have begun.
func (q *quota) next(begun []time.Duration) (at time.Duration) {
	if n := len(begun) - q.atOnce; n >= 0 {
		at = begun[n] + q.takes
	}
	if n := len(begun) - q.most; n >= 0 {
		at = max(at, begun[n]+q.per)
	}
	return at
}
