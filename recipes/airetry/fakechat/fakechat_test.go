package fakechat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
)

// start gives a server and a client of it. No wait of the server takes time unless the options say so.
func start(t *testing.T, o fakechat.Options) (*fakechat.Server, *chat.Client) {
	t.Helper()
	if o.After == nil {
		o.After = func(time.Duration) <-chan time.Time { return over }
	}
	s, err := fakechat.Start(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, &chat.Client{BaseURL: s.URL(), Model: s.Model(), Key: o.Key, HTTP: new(http.Client)}
}

// over is a wait that has ended, never one without end.
var over, never = func() chan time.Time { c := make(chan time.Time); close(c); return c }(), make(chan time.Time)

func endless(time.Duration) <-chan time.Time { return never }

// ask makes a call and returns its failure, nil for none.
func ask(t *testing.T, c *chat.Client, prompt string) *chat.Error {
	t.Helper()
	_, err := c.Complete(t.Context(), prompt)
	if err == nil {
		return nil
	}
	var e *chat.Error
	require.ErrorAs(t, err, &e)
	return e
}

func faults(t *testing.T, script string) []fakechat.Fault {
	t.Helper()
	f, err := fakechat.ParseFaults(script)
	require.NoError(t, err)
	return f
}

// Every mode, as the real client sees it.
func TestModes(t *testing.T) {
	tests := []struct {
		fault     string
		status    int
		code      string
		after     time.Duration
		temporary bool
	}{
		{"limit", 429, "rate_limit_exceeded", time.Second, true},
		{"limit 7s", 429, "rate_limit_exceeded", 7 * time.Second, true},
		{"limit 1.5s", 429, "rate_limit_exceeded", 2 * time.Second, true},
		{"limit 1m0s date", 429, "rate_limit_exceeded", time.Minute, true},
		{"error", 500, "internal_error", 0, true},
		{"refuse", 400, "bad_request", 0, false},
		{"hang", 504, "gateway_timeout", 0, true}, // its wait is over at once, see start
		{"cut", 200, chat.CodeCut, 0, true},
		{"drop", 0, chat.CodeConnection, 0, true},
		{"garbage", 200, chat.CodeJSON, 0, true},
		{"shape", 200, chat.CodeShape, 0, true},
		{"empty", 200, chat.CodeEmpty, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			s, c := start(t, fakechat.Options{Faults: faults(t, tt.fault)})
			e := ask(t, c, "a rabbit")
			require.NotNil(t, e)
			require.Equal(t, tt.status, e.Status)
			require.Equal(t, tt.code, e.Code)
			require.Equal(t, tt.after, e.RetryAfter)
			require.Equal(t, tt.temporary, e.Temporary)
			require.Equal(t, tt.fault, s.Requests()[0].Fault.String())
			require.Nil(t, ask(t, c, "a rabbit"), "the script is used up")
		})
	}
}

func TestSlowAnswersAfterItsWait(t *testing.T) {
	var waits []time.Duration
	s, c := start(t, fakechat.Options{
		Faults: faults(t, "slow, slow 9s"),
		After:  func(d time.Duration) <-chan time.Time { waits = append(waits, d); return over },
	})
	require.Nil(t, ask(t, c, "a rabbit"))
	require.Nil(t, ask(t, c, "a rabbit"))
	s.Close()
	require.Equal(t, []time.Duration{2 * time.Second, 9 * time.Second}, waits)
}

func TestHangUntilTheClientGivesUp(t *testing.T) {
	for _, mode := range []string{"hang", "slow"} {
		t.Run(mode, func(t *testing.T) {
			_, c := start(t, fakechat.Options{Faults: faults(t, mode), After: endless})
			c.Timeout = 30 * time.Millisecond
			e := ask(t, c, "a rabbit")
			require.NotNil(t, e)
			require.Equal(t, chat.CodeTimeout, e.Code)
			require.ErrorIs(t, e, context.DeadlineExceeded)
			c.Timeout = 0
			require.Nil(t, ask(t, c, "a rabbit"))
		})
	}
}

// Close must not wait for a client that waits for the server.
func TestCloseEndsAWait(t *testing.T) {
	waiting := make(chan struct{})
	s, c := start(t, fakechat.Options{
		Faults: faults(t, "hang"),
		After:  func(time.Duration) <-chan time.Time { close(waiting); return never },
	})
	failed := make(chan error)
	go func() {
		_, err := c.Complete(context.Background(), "a rabbit")
		failed <- err
	}()
	<-waiting
	s.Close()
	var e *chat.Error
	require.ErrorAs(t, <-failed, &e)
	require.Equal(t, chat.CodeConnection, e.Code)
	s.Close() // twice is fine
	require.Equal(t, chat.CodeConnection, ask(t, c, "a rabbit").Code)
	require.Equal(t, 1, s.Count())
}

// Mounted in a server of somebody else, Close has no listener to close, and still leaves no one waiting.
func TestCloseEndsAWaitOfAMountedServer(t *testing.T) {
	waiting := make(chan struct{})
	s, err := fakechat.New(fakechat.Options{
		Faults: faults(t, "hang"),
		After:  func(time.Duration) <-chan time.Time { close(waiting); return never },
	})
	require.NoError(t, err)
	h := httptest.NewServer(s)
	defer h.Close()
	go func() {
		<-waiting
		s.Close()
	}()
	c := &chat.Client{BaseURL: h.URL + "/v1", Model: s.Model(), HTTP: h.Client(), Timeout: 5 * time.Second}
	require.Equal(t, chat.CodeConnection, ask(t, c, "a rabbit").Code)
}

func TestTheTextBelongsToThePrompt(t *testing.T) {
	s, c := start(t, fakechat.Options{Seed: 7})
	reply, err := c.Complete(t.Context(), "Tell me about MARMALADE!")
	require.NoError(t, err)
	require.Equal(t, s.Text("Tell me about MARMALADE!"), reply.Text)
	require.True(t, strings.HasPrefix(reply.Text, "MARMALADE"), reply.Text)
	require.Equal(t, "alice", reply.Model)
	require.Equal(t, "stop", reply.Finish)
	words := len(strings.Fields(reply.Text))
	require.Equal(t, chat.Usage{Prompt: 4, Completion: words, Total: 4 + words}, reply.Usage)

	again, err := fakechat.New(fakechat.Options{Seed: 7})
	require.NoError(t, err)
	other, err := fakechat.New(fakechat.Options{Seed: 8})
	require.NoError(t, err)
	require.Equal(t, reply.Text, again.Text("Tell me about MARMALADE!"))
	require.NotEqual(t, reply.Text, other.Text("Tell me about MARMALADE!"))
	require.Equal(t, reply.Text, again.Text("Tell me about MARMALADE! [[error]]"), "a script is not for the model")
	require.NotEmpty(t, again.Text("Zebra xylophone"), "nothing of it is known")
}

func TestScriptsOneAfterAnother(t *testing.T) {
	s, c := start(t, fakechat.Options{Faults: faults(t, "error, ok, drop")})
	require.Equal(t, 500, ask(t, c, "one").Status)
	require.Nil(t, ask(t, c, "two"))
	require.Equal(t, chat.CodeConnection, ask(t, c, "three").Code)
	require.Nil(t, ask(t, c, "four"))
	require.NoError(t, s.Script(faults(t, "empty")...))
	require.Equal(t, chat.CodeEmpty, ask(t, c, "one").Code)

	want := []fakechat.Request{
		{Prompt: "one", Model: "alice", Attempt: 1, Fault: fakechat.Fault{Mode: fakechat.Failing}, Status: 500},
		{Prompt: "two", Model: "alice", Attempt: 1, Status: 200},
		{Prompt: "three", Model: "alice", Attempt: 1, Fault: fakechat.Fault{Mode: fakechat.Dropped}},
		{Prompt: "four", Model: "alice", Attempt: 1, Status: 200},
		{Prompt: "one", Model: "alice", Attempt: 2, Fault: fakechat.Fault{Mode: fakechat.Empty}, Status: 200},
	}
	require.Equal(t, want, s.Requests())
	require.Equal(t, 5, s.Count())
}

// Twenty prompts at once, each with its own script: none takes a fault of another.
func TestPromptScriptsAreApart(t *testing.T) {
	s, c := start(t, fakechat.Options{Faults: faults(t, "refuse")})
	var wg sync.WaitGroup
	got := make([][]int, 20)
	for i := range got {
		wg.Go(func() {
			prompt := fmt.Sprintf("tale %d [[error, limit]]", i)
			for range 4 {
				_, err := c.Complete(context.Background(), prompt)
				status := 200
				if e, ok := errors.AsType[*chat.Error](err); ok {
					status = e.Status
				}
				got[i] = append(got[i], status)
			}
		})
	}
	wg.Wait()
	for i := range got {
		require.Equal(t, []int{500, 429, 200, 200}, got[i], "prompt %d", i)
	}
	require.Equal(t, 400, ask(t, c, "no script").Status, "the server's own script was left as it was")
	require.Equal(t, 81, s.Count())
}

func TestHeaderIsForOneRequest(t *testing.T) {
	s, c := start(t, fakechat.Options{Faults: faults(t, "drop")})
	status := func(fault string) int {
		body := `{"model":"alice","messages":[{"role":"user","content":"hi [[refuse]]"}]}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/chat/completions", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set(fakechat.HeaderFault, fault)
		resp, err := c.HTTP.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 500, status("error"))
	require.Equal(t, 200, status("ok"))
	require.Equal(t, 400, status("explode"), "a misspelt fault must not look healthy")
	require.Equal(t, 400, status("error, error"))
	require.Equal(t, chat.CodeConnection, ask(t, c, "hi").Code)
}

// The same seed spoils the same requests, whatever else is asked in between.
func TestChance(t *testing.T) {
	history := func(o fakechat.Options, prompts ...string) map[string]string {
		s, c := start(t, o)
		for _, p := range prompts {
			for range 30 {
				ask(t, c, p)
			}
		}
		got := map[string]string{}
		for _, r := range s.Requests() {
			got[r.Prompt] += r.Fault.Mode.String() + " "
		}
		return got
	}
	o := fakechat.Options{Seed: 3, Chance: 0.5}
	one, two := history(o, "a", "b"), history(o, "b", "c", "a")
	require.Equal(t, one["a"], two["a"])
	require.Equal(t, one["b"], two["b"])
	require.NotEqual(t, one["a"], one["b"])
	o.Seed = 4
	require.NotEqual(t, one["a"], history(o, "a")["a"])

	healthy := strings.Count(one["a"]+one["b"], "ok")
	require.InDelta(t, 30, healthy, 12, "about half of sixty")

	only := history(fakechat.Options{Chance: 1, Among: faults(t, "error")}, "a")
	require.Equal(t, strings.Repeat("error ", 30), only["a"])
}

func TestRequestsThatAreWrong(t *testing.T) {
	const user = `"messages":[{"role":"user","content":"hi"}]`
	tests := []struct {
		name, key, body string
		status          int
		code            string
	}{
		{"no key", "", `{"model":"alice",` + user + `}`, 401, "invalid_api_key"},
		{"other key", "Bearer k2", `{"model":"alice",` + user + `}`, 401, "invalid_api_key"},
		{"other model", "Bearer k1", `{"model":"bob",` + user + `}`, 404, "model_not_found"},
		{"streaming", "Bearer k1", `{"model":"alice","stream":true,` + user + `}`, 400, "bad_request"},
		{"no prompt", "Bearer k1", `{"model":"alice","messages":[]}`, 400, "bad_request"},
		{"misspelt script", "Bearer k1", strings.Replace(`{"model":"alice",`+user+`}`, "hi", "hi [[eror]]", 1),
			400, "bad_request"},
		{"no JSON", "Bearer k1", `hello`, 400, "bad_request"},
		{"too large", "Bearer k1", strings.Repeat(" ", 1<<20+1), 413, "too_large"},
		{"all right", "Bearer k1", `{"model":"alice",` + user + `}`, 500, "internal_error"},
	}
	s, err := fakechat.New(fakechat.Options{Key: "k1", Faults: faults(t, "error")})
	require.NoError(t, err)
	defer s.Close()
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(tt.body))
			r.Header.Set("Authorization", tt.key)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			var got struct {
				Error struct{ Message, Type, Code string }
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			require.Equal(t, tt.status, w.Code)
			require.Equal(t, tt.code, got.Error.Code)
			require.NotEmpty(t, got.Error.Message)
			require.Equal(t, tt.status, s.Requests()[i].Status)
			if i < len(tests)-1 {
				require.Zero(t, s.Requests()[i].Attempt, "it takes nothing from the script")
			}
		})
	}
}

func TestTheKeyLetsIn(t *testing.T) {
	s, c := start(t, fakechat.Options{Key: "k1", Model: "hatter"})
	c.System = "You are mad."
	require.Nil(t, ask(t, c, "hi"))
	require.Equal(t, fakechat.Request{Prompt: "hi", System: "You are mad.", Model: "hatter", Attempt: 1, Status: 200},
		s.Requests()[0])
	c.Key = "k2"
	e := ask(t, c, "hi")
	require.Equal(t, "invalid_api_key", e.Code)
	require.False(t, e.Temporary)
	c.Key, c.Model = "k1", "hare"
	e = ask(t, c, "hi")
	require.Equal(t, "model_not_found", e.Code)
	require.False(t, e.Temporary)
}

func TestModels(t *testing.T) {
	s, c := start(t, fakechat.Options{Faults: faults(t, "drop")})
	resp, err := c.HTTP.Get(s.URL() + "/models")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"object":"list","data":[{"id":"alice","object":"model","owned_by":"fakechat"}]}`, string(body))
	require.Zero(t, s.Count(), "only completions are counted, and only they fail")
}

// The dates of an answer are of the injected clock, all of them.
func TestDates(t *testing.T) {
	now := time.Date(2015, 10, 21, 12, 0, 0, 5e8, time.UTC)
	s, err := fakechat.New(fakechat.Options{Now: func() time.Time { return now }, Faults: faults(t, "limit 1m date")})
	require.NoError(t, err)
	body := `{"model":"alice","messages":[{"role":"user","content":"hi"}]}`
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)))
	require.Equal(t, "Wed, 21 Oct 2015 12:00:00 GMT", w.Header().Get("Date"))
	require.Equal(t, "Wed, 21 Oct 2015 12:01:00 GMT", w.Header().Get("Retry-After"))
	w = httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)))
	require.Contains(t, w.Body.String(), fmt.Sprintf(`"created":%d`, now.Unix()))
}

// A writer that owns no connection is left by the panic that net/http recovers from.
func TestCutWithoutAConnectionOfItsOwn(t *testing.T) {
	s, err := fakechat.New(fakechat.Options{Faults: faults(t, "cut")})
	require.NoError(t, err)
	h := httptest.NewUnstartedServer(s)
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	e := ask(t, &chat.Client{BaseURL: h.URL + "/v1", Model: s.Model(), HTTP: h.Client()}, "hi")
	require.NotNil(t, e)
	require.Equal(t, chat.CodeCut, e.Code)
	require.Empty(t, s.URL())
	s.Close()
	e = ask(t, &chat.Client{BaseURL: h.URL + "/v1", Model: s.Model(), HTTP: h.Client()}, "hi")
	require.Equal(t, chat.CodeConnection, e.Code, "a closed server answers nothing, wherever it is mounted")
}
