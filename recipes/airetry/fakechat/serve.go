package fakechat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRequest limits the body of a request, in bytes.
const maxRequest = 1 << 20

// The wire shapes, as far as the fake knows them. The client in ../chat has its own: two that share their types would
// agree with each other even where both are wrong.
type (
	question struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Stream   bool      `json:"stream"`
	}
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	answer struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   usage    `json:"usage"`
	}
	choice struct {
		Index   int     `json:"index"`
		Message message `json:"message"`
		Finish  string  `json:"finish_reason"`
	}
	usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	// model is an entry of the list of models.
	model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Owner  string `json:"owned_by"`
	}
)

// last is the content of the last message of a role, or "".
func (q *question) last(role string) (content string) {
	for _, m := range q.Messages {
		if m.Role == role {
			content = m.Content
		}
	}
	return content
}

// problem is an answer that is no success.
type problem struct {
	status     int
	kind, code string
	message    string
	retryAfter string // the header's value, or "" for none
}

func badRequest(format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, kind: "invalid_request_error", code: "bad_request",
		message: fmt.Sprintf(format, args...)}
}

// complete answers POST /v1/chat/completions.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	// The body is read to its end before anything else: only then does net/http notice that a client went away.
	q, bad := s.read(w, r)
	fault, bad, open := s.admit(q, r.Header, bad)
	if !open {
		sever(w)
		return
	}
	defer s.busy.Done()
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	s.answer(w, r, q, fault)
}

// read takes the question from a request. It is never nil, so that a wrong request can be remembered too.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*question, *problem) {
	q := new(question)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	switch {
	case err != nil && len(body) >= maxRequest:
		return q, &problem{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", code: "too_large",
			message: fmt.Sprintf("the request is larger than %d bytes", maxRequest)}
	case err != nil:
		return q, badRequest("the request was cut short: %v", err)
	}
	if err := json.Unmarshal(body, q); err != nil {
		return q, badRequest("the request is not a chat completion request: %v", err)
	}
	switch {
	case s.opt.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opt.Key:
		return q, &problem{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key",
			message: "the API key is missing or wrong"}
	case q.Model != s.opt.Model:
		return q, &problem{status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found",
			message: fmt.Sprintf("there is no model %q; this server has %q", q.Model, s.opt.Model)}
	case q.Stream:
		return q, badRequest("this server does not stream; leave stream out")
	case q.last("user") == "":
		return q, badRequest("there is no message with the role user and some content")
	}
	return q, nil
}

// answer does what the fault says.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q *question, f Fault) {
	switch f.Mode {
	case Limited:
		s.refuse(w, &problem{status: http.StatusTooManyRequests, kind: "requests", code: "rate_limit_exceeded",
			message: "too many requests", retryAfter: s.retryAfter(f)})
	case Failing:
		s.refuse(w, &problem{status: http.StatusInternalServerError, kind: "server_error", code: "internal_error",
			message: "the server failed, as it was asked to"})
	case Refusing:
		s.refuse(w, badRequest("the request was refused, as it was asked to be"))
	case Hanging:
		s.hang(w, r, f.wait())
	case Dropped:
		sever(w)
	case Cut:
		body := s.good(q)
		s.begin(w, http.StatusOK, len(body))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		sever(w)
	case BadJSON:
		body := s.good(q)
		s.write(w, http.StatusOK, body[:len(body)/2])
	case WrongShape:
		s.write(w, http.StatusOK, encode(map[string]map[string]string{"choices": {"text": s.Text(q.last("user"))}}))
	case Empty:
		s.write(w, http.StatusOK, encode(answer{Object: "chat.completion", Model: q.Model, Choices: []choice{}}))
	case Slow:
		if !s.pause(r, f.wait()) {
			sever(w)
			return
		}
		s.write(w, http.StatusOK, s.good(q))
	default:
		s.write(w, http.StatusOK, s.good(q))
	}
}

// hang says nothing for as long as the client has patience. A gateway loses its own patience some time.
func (s *Server) hang(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if !s.pause(r, limit) {
		sever(w)
		return
	}
	s.refuse(w, &problem{status: http.StatusGatewayTimeout, kind: "server_error", code: "gateway_timeout",
		message: fmt.Sprintf("the model was silent for %v", limit)})
}

// pause waits, and reports whether the time is over. It is not where the client or the server went away before.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	select {
	case <-s.opt.After(d):
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// sever closes the connection in whatever state it is. A writer that does not own its connection, as in HTTP/2, is left
// by the panic that net/http defines for this purpose and recovers from in silence.
func sever(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}

// retryAfter is the header's value, rounded up to whole seconds: who waits that long has waited long enough.
func (s *Server) retryAfter(f Fault) string {
	wait := f.wait().Truncate(time.Second)
	if wait < f.wait() {
		wait += time.Second
	}
	if f.Date {
		return s.opt.Now().Add(wait).UTC().Format(http.TimeFormat)
	}
	return strconv.FormatInt(int64(wait/time.Second), 10)
}

// good is the body of a good answer. A token is a word here, as near as makes no difference to a test.
func (s *Server) good(q *question) []byte {
	text := s.Text(q.last("user"))
	asked := 0
	for _, m := range q.Messages {
		asked += len(strings.Fields(m.Content))
	}
	told := len(strings.Fields(text))
	return encode(answer{
		ID: "chatcmpl-fake", Object: "chat.completion", Created: s.opt.Now().Unix(), Model: q.Model,
		Choices: []choice{{Message: message{Role: "assistant", Content: text}, Finish: "stop"}},
		Usage:   usage{Prompt: asked, Completion: told, Total: asked + told},
	})
}

// models answers GET /v1/models.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := []model{{ID: s.opt.Model, Object: "model", Owner: "fakechat"}}
	s.write(w, http.StatusOK, encode(struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list}))
}

func (s *Server) refuse(w http.ResponseWriter, p *problem) {
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	s.write(w, p.status, encode(map[string]map[string]string{
		"error": {"message": p.message, "type": p.kind, "code": p.code},
	}))
}

func (s *Server) write(w http.ResponseWriter, status int, body []byte) {
	s.begin(w, status, len(body))
	_, _ = w.Write(body) // a client that went away is no concern of the server
}

// begin writes the head of an answer. The date is the server's own, so that it agrees with a Retry-After.
func (s *Server) begin(w http.ResponseWriter, status, length int) {
	w.Header().Set("Date", s.opt.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

// encode writes a value that is made of strings and numbers alone, which cannot fail.
func encode[T any](v T) []byte {
	body, _ := json.Marshal(v)
	return body
}
