package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/recipes/airetry/chat"
)

const key = "sk-very-secret-0001"

// good is a whole reply as OpenAI sends it, with fields that the client does not read.
const good = `{"id":"c1","object":"chat.completion","created":1,"model":"m-2025-01","choices":[{"index":0,
	"message":{"role":"assistant","content":"Because they are drawn.","refusal":null},"logprobs":null,
	"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}`

// serve starts a server with one answer and returns a client of it.
func serve(t *testing.T, h http.HandlerFunc) *chat.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &chat.Client{BaseURL: s.URL + "/v1", Model: "m", Key: key, HTTP: s.Client()}
}

// says answers every request with a status, a body and headers, given as "Name: value".
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// failure makes one call that must fail.
func failure(t *testing.T, c *chat.Client) *chat.Error {
	t.Helper()
	reply, err := c.Complete(t.Context(), "why?")
	var e *chat.Error
	require.ErrorAs(t, err, &e)
	require.Zero(t, reply)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, *e, e), key, "the key must stay secret")
	return e
}

func TestCompleteSendsAndReadsTheProtocol(t *testing.T) {
	var path, auth, body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		path, auth, body = r.Method+" "+r.RequestURI, r.Header.Get("Authorization"), string(sent)
		says(200, good)(w, r)
	})
	c.System = "Be brief."
	c.BaseURL += "/?version=7"
	reply, err := c.Complete(t.Context(), "Why <Petri> nets?")
	require.NoError(t, err)
	require.Equal(t, chat.Reply{
		Text: "Because they are drawn.", Model: "m-2025-01", Finish: "stop",
		Usage: chat.Usage{Prompt: 3, Completion: 5, Total: 8},
	}, reply)
	require.Equal(t, "POST /v1/chat/completions?version=7", path)
	require.Equal(t, "Bearer "+key, auth)
	require.JSONEq(t, `{"model":"m","messages":[{"role":"system","content":"Be brief."},
		{"role":"user","content":"Why <Petri> nets?"}]}`, body)
}

func TestCompleteWithoutKeyAndWithoutExtras(t *testing.T) {
	var auth []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Values("Authorization")
		says(200, `{"choices":[{"message":{"content":"yes"}}]}`)(w, r)
	})
	c.Key, c.HTTP = "", nil
	reply, err := c.Complete(t.Context(), "?")
	require.NoError(t, err)
	require.Equal(t, chat.Reply{Text: "yes", Model: "m"}, reply, "a server that names no model served ours")
	require.Empty(t, auth)
}

// Every status with what it means for a retry. The bodies are the shapes that servers in use send.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name, body    string
		status        int
		code, message string
		temporary     bool
	}{
		{"rate limit", `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`,
			429, "rate_limit_exceeded", "slow down", true},
		{"used-up quota", `{"error":{"message":"pay first","type":"insufficient_quota","code":null}}`,
			429, "insufficient_quota", "pay first", false},
		{"server error", `{"error":{"message":"oops","type":"server_error"}}`, 500, "server_error", "oops", true},
		{"page of a proxy", "<html>\n<h1>502</h1>\n</html>", 502, "", "<html> <h1>502</h1> </html>", true},
		{"overloaded, no words", "", 503, "", "Service Unavailable", true},
		{"gateway timeout", "{}", 504, "", "{}", true},
		{"not implemented", "", 501, "", "Not Implemented", false},
		{"request timeout", "", 408, "", "Request Timeout", true},
		{"conflict", "", 409, "", "Conflict", true},
		{"wrong key", `{"error":{"message":"wrong key ` + key + `","code":"invalid_api_key"}}`,
			401, "invalid_api_key", "wrong key [key]", false},
		{"forbidden", `{"detail":"no"}`, 403, "", `{"detail":"no"}`, false},
		{"plain text error", `{"error":"model 'm' not found"}`, 404, "", "model 'm' not found", false},
		{"flat error", `{"object":"error","message":"too long","code":400}`, 400, "400", "too long", false},
		{"error of another shape", `{"error":[1]}`, 400, "", `{"error":[1]}`, false},
		{"code of another shape", `{"error":{"message":"hm","code":{}}}`, 422, "", "hm", false},
		{"too large a prompt", "", 413, "", "Request Entity Too Large", false},
		{"redirect to nowhere", "", 304, "", "Not Modified", false},
		{"long page", strings.Repeat("é ", 5000), 500, "", strings.Repeat("é ", 99) + "...", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, says(tt.status, tt.body))
			e := failure(t, c)
			require.Equal(t, &chat.Error{Endpoint: c.BaseURL, Model: "m", Status: tt.status, Code: tt.code,
				Message: tt.message, Temporary: tt.temporary}, e)
		})
	}
}

func TestRetryAfter(t *testing.T) {
	const noon = "Wed, 21 Oct 2015 12:00:00 GMT"
	tests := []struct {
		name, after, date string
		want              time.Duration
	}{
		{"seconds", "7", noon, 7 * time.Second},
		{"fraction", "0.25", noon, 250 * time.Millisecond},
		{"date, by the server's clock", "Wed, 21 Oct 2015 12:00:30 GMT", noon, 30 * time.Second},
		{"date, by our clock", "Wed, 21 Oct 2015 12:00:30 GMT", "unreadable", 10 * time.Second},
		{"past date", "Wed, 21 Oct 2015 11:00:00 GMT", noon, 0},
		{"negative", "-3", noon, 0},
		{"not a number", "NaN", noon, 0},
		{"beyond all time", "1e300", noon, 1<<63 - 1},
		{"unreadable", "soon", noon, 0},
		{"absent", "", noon, 0},
	}
	for _, tt := range tests {
		for _, status := range []int{429, 503} {
			t.Run(fmt.Sprint(tt.name, " ", status), func(t *testing.T) {
				c := serve(t, says(status, "", "Retry-After: "+tt.after, "Date: "+tt.date))
				c.Now = func() time.Time { return time.Date(2015, 10, 21, 12, 0, 20, 0, time.UTC) }
				e := failure(t, c)
				require.Equal(t, tt.want, e.RetryAfter)
				require.True(t, e.Temporary)
			})
		}
	}
}

func TestRepliesThatAreNoAnswer(t *testing.T) {
	tests := []struct {
		name, body, code string
		temporary        bool
	}{
		{"not JSON", "<html>hello</html>", chat.CodeJSON, true},
		{"half of it", good[:len(good)/2], chat.CodeJSON, true},
		{"nothing", "", chat.CodeJSON, true},
		{"two of them", good + good, chat.CodeJSON, true},
		{"a list", `[1, 2]`, chat.CodeShape, true},
		{"text for choices", `{"choices":"none"}`, chat.CodeShape, true},
		{"number for words", `{"choices":[{"message":{"content":4}}]}`, chat.CodeShape, true},
		{"no choices", `{"choices":[]}`, chat.CodeEmpty, true},
		{"another protocol", `{"response":"hello"}`, chat.CodeEmpty, true},
		{"null", `null`, chat.CodeEmpty, true},
		{"no words", `{"choices":[{"message":{"content":null}}]}`, chat.CodeEmpty, true},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"I will not."}}]}`, chat.CodeRefusal, false},
		{"gateway's error", `{"error":{"message":"down","code":502}}`, "502", true},
		{"gateway's refusal", `{"error":{"message":"who?","code":401}}`, "401", false},
		{"gateway's unnamed error", `{"error":"down"}`, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := failure(t, serve(t, says(200, tt.body)))
			require.Equal(t, 200, e.Status)
			require.Equal(t, tt.code, e.Code)
			require.Equal(t, tt.temporary, e.Temporary)
			require.NotEmpty(t, e.Message)
		})
	}
}

func TestReplyTooLarge(t *testing.T) {
	c := serve(t, says(200, good))
	c.MaxReply = int64(len(good))
	_, err := c.Complete(t.Context(), "exactly as large as allowed")
	require.NoError(t, err)

	c.MaxReply--
	e := failure(t, c)
	require.Equal(t, chat.CodeTooLarge, e.Code)
	require.False(t, e.Temporary)

	c = serve(t, says(503, good, "Retry-After: 2"))
	c.MaxReply = 10
	e = failure(t, c)
	require.Equal(t, 503, e.Status, "an explanation that is too long does not hide the refusal")
	require.Equal(t, 2*time.Second, e.RetryAfter)
}

func TestCutConnection(t *testing.T) {
	for name, head := range map[string]string{
		"in the middle of the body": "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"choi",
		"in the middle of a chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"choi",
		"before a word":             "",
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_, _ = io.WriteString(conn, head)
					_ = conn.Close()
				}
			})
			e := failure(t, c)
			require.True(t, e.Temporary)
			require.Error(t, e.Err)
			if head == "" {
				require.Equal(t, chat.CodeConnection, e.Code)
				require.Zero(t, e.Status)
				return
			}
			require.Equal(t, chat.CodeCut, e.Code)
			require.Equal(t, 200, e.Status)
			require.ErrorIs(t, e, io.ErrUnexpectedEOF)
		})
	}
}

func TestServerThatRefusesConnections(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	e := failure(t, &chat.Client{BaseURL: s.URL + "?key=" + key, Model: "m", Key: key})
	require.Equal(t, chat.CodeConnection, e.Code)
	require.True(t, e.Temporary)
	require.Equal(t, s.URL, e.Endpoint)
}

func TestUntrustedServerIsNotAskedAgain(t *testing.T) {
	s := httptest.NewUnstartedServer(says(200, good))
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	e := failure(t, &chat.Client{BaseURL: s.URL, Model: "m", Key: key})
	require.Equal(t, chat.CodeConnection, e.Code)
	require.False(t, e.Temporary)
}

// The server hears the question and never answers; it lets go when the client does.
func TestTimeoutOfARealServer(t *testing.T) {
	for name, begin := range map[string]string{"silent": "", "begun": `{"choices":`} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body) // only then does the server notice that the client leaves
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			c.Timeout = 30 * time.Millisecond
			e := failure(t, c)
			require.Equal(t, chat.CodeTimeout, e.Code)
			require.True(t, e.Temporary)
			require.ErrorIs(t, e, context.DeadlineExceeded)
		})
	}
}

// trip is a transport without a network, so that time can be virtual.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestContextEndsWait(t *testing.T) {
	silent := trip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	})
	tests := []struct {
		name   string
		client chat.Client
		limit  time.Duration // of the caller
		want   time.Duration
		code   string
	}{
		{"default", chat.Client{}, 0, chat.DefaultTimeout, chat.CodeTimeout},
		{"client", chat.Client{Timeout: time.Hour}, 0, time.Hour, chat.CodeTimeout},
		{"deadline", chat.Client{Timeout: time.Hour}, time.Minute, time.Minute, chat.CodeTimeout},
		{"transport", chat.Client{HTTP: &http.Client{Timeout: time.Second}}, 0, time.Second, chat.CodeTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tt.client
				c.BaseURL, c.Model = "http://model.test/v1", "m"
				if c.HTTP == nil {
					c.HTTP = &http.Client{}
				}
				c.HTTP.Transport = silent
				ctx := t.Context()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				start := time.Now()
				_, err := c.Complete(ctx, "?")
				var e *chat.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, tt.want, time.Since(start))
				require.Equal(t, tt.code, e.Code)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		})
	}
}

func TestCanceledCallIsTemporary(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		cancel(io.ErrClosedPipe)
		<-r.Context().Done()
	})
	_, err := c.Complete(ctx, "?")
	var e *chat.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, chat.CodeCanceled, e.Code)
	require.True(t, e.Temporary, "a worker that is stopped must not lose its work")
	require.ErrorIs(t, err, context.Canceled)
}

func TestBadClientSendsNothing(t *testing.T) {
	tests := map[string]chat.Client{
		"no model":      {BaseURL: "http://model.test"},
		"no address":    {Model: "m"},
		"no host":       {Model: "m", BaseURL: "http:///v1"},
		"other scheme":  {Model: "m", BaseURL: "ftp://" + key + "@model.test"},
		"unreadable":    {Model: "m", BaseURL: "http://" + key + ":x y"},
		"key of a file": {Model: "m", BaseURL: "http://model.test", Key: key + "\n"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			c.HTTP = &http.Client{Transport: trip(func(*http.Request) (*http.Response, error) {
				t.Error("a request was sent")
				return nil, io.EOF
			})}
			e := failure(t, &c)
			require.Equal(t, chat.CodeConfig, e.Code)
			require.False(t, e.Temporary)
		})
	}
}

func TestClientDoesNotShowItsKey(t *testing.T) {
	c := chat.Client{BaseURL: "https://user:" + key + "@model.test/v1?k=" + key, Model: "m", Key: key}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, c), key)
		require.NotContains(t, fmt.Sprintf(verb, &c), key)
	}
	c.BaseURL = "https://model.test"
	require.Equal(t, `model "m" at https://model.test`, c.String())
	text, err := json.Marshal(map[string]any{"client": &c})
	require.NoError(t, err)
	require.JSONEq(t, `{"client": "model \"m\" at https://model.test"}`, string(text))
}

func TestErrorSaysWhatToDo(t *testing.T) {
	tests := map[string]chat.Error{
		"429 slow: wait; try again after 2s": {Status: 429, Code: "slow", Message: "wait", Temporary: true,
			RetryAfter: 2 * time.Second},
		"429 insufficient_quota: pay": {Status: 429, Code: "insufficient_quota", Message: "pay",
			RetryAfter: 2 * time.Second},
		"timeout: late; try again":                                   {Code: "timeout", Message: "late", Temporary: true},
		"401: no; check the API key and its rights":                  {Status: 401, Message: "no"},
		"404 gone: no; check the base URL and the name of the model": {Status: 404, Code: "gone", Message: "no"},
		"400 bad: no": {Status: 400, Code: "bad", Message: "no"},
	}
	for want, e := range tests {
		e.Endpoint, e.Model = "http://h/v1", "m"
		require.Equal(t, `complete with model "m" at http://h/v1: `+want, e.Error())
	}
}
