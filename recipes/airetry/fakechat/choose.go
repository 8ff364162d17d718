package fakechat

import (
	"fmt"
	"net/http"
	"strings"
)

// splitScript finds the script in a prompt: what stands between the last "[[" and the "]]" after it.
func splitScript(prompt string) (text, script string, found bool) {
	open := strings.LastIndex(prompt, "[[")
	if open < 0 {
		return prompt, "", false
	}
	script, rest, found := strings.Cut(prompt[open+len("[["):], "]]")
	if !found {
		return prompt, "", false
	}
	return prompt[:open] + rest, script, true
}

// withoutScript is the part of a prompt that is meant for the model, so that a script does not change the answer.
func withoutScript(prompt string) string {
	text, _, _ := splitScript(prompt)
	return strings.TrimSpace(text)
}

// admit takes a request in: it counts it, chooses its answer, and remembers both. It reports false when the server is
// closed; otherwise busy.Done must be called when the request is answered.
func (s *Server) admit(q *question, header http.Header, bad *problem) (Fault, *problem, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Fault{}, nil, false
	}
	s.busy.Add(1)
	rec := Request{Model: q.Model, Prompt: q.last("user"), System: q.last("system")}
	if bad == nil {
		rec.Fault, bad = s.choose(rec.Prompt, s.attempts[rec.Prompt]+1, header.Get(HeaderFault))
	}
	if bad == nil {
		s.attempts[rec.Prompt]++
		rec.Attempt = s.attempts[rec.Prompt]
		rec.Status = modes[rec.Fault.Mode].status
	} else {
		rec.Status = bad.status
	}
	s.requests = append(s.requests, rec)
	return rec.Fault, bad, true
}

// choose decides how a request is answered; the package comment has the order. A script that cannot be read is a bad
// request, since a test with a typing error in it must not pass as a healthy one.
func (s *Server) choose(prompt string, attempt int, header string) (Fault, *problem) {
	if header != "" {
		faults, err := ParseFaults(header)
		if err == nil && len(faults) != 1 {
			err = fmt.Errorf("%d faults for one request; give one", len(faults))
		}
		if err != nil {
			return Fault{}, badRequest("header %s: %v", HeaderFault, err)
		}
		return faults[0], nil
	}
	if _, script, found := splitScript(prompt); found {
		faults, err := ParseFaults(script)
		if err != nil {
			return Fault{}, badRequest("script in the prompt: %v", err)
		}
		return nth(faults, attempt), nil
	}
	if len(s.script) > 0 {
		f := s.script[0]
		s.script = s.script[1:]
		return f, nil
	}
	r := random(s.opt.Seed, fmt.Sprintf("attempt %d: %s", attempt, prompt))
	if r.Float64() < s.opt.Chance {
		return s.opt.Among[r.IntN(len(s.opt.Among))], nil
	}
	return Fault{}, nil
}

// nth is the fault of the n-th request, counted from 1, and the healthy one behind the last.
func nth(faults []Fault, n int) Fault {
	if n > len(faults) {
		return Fault{}
	}
	return faults[n-1]
}
