package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// bench is an engine with a case that waits for an event, and the webhook by which it is sent.
type bench struct {
	t      testing.TB
	e      *enginetest.Engine
	hook   http.Handler
	wait   *builder.Workflow[any]
	tokens chan string
}

func start(t testing.TB, cfg engine.Config, limit int64) *bench {
	t.Helper()
	b := &bench{t: t, tokens: make(chan string, 1)}
	w := builder.New[any]("wait")
	task := builder.Task(w, "wait", builder.Work[any, json.RawMessage]{
		Run: func(ctx context.Context, _ any) (json.RawMessage, error) {
			token, err := step.Token(ctx, "link", "paid")
			if err != nil {
				return nil, err
			}
			_, err = step.Do(ctx, "mail", func(context.Context) (any, error) { b.tokens <- token; return nil, nil })
			if err != nil {
				return nil, err
			}
			return step.Await[json.RawMessage](ctx, "paid")
		},
	})
	w.Path(w.Start(), task, w.End())
	w.Result(builder.Output(task))
	b.wait = w.MustBuild()
	b.e = enginetest.Open(t, memory(), cfg, b.wait)
	b.hook = admin.Webhook(b.e, limit)
	return b
}

// token starts a case and returns the token that it makes.
func (b *bench) token() (string, workitem.CaseID) {
	b.t.Helper()
	id, err := b.wait.Start(context.Background(), b.e, nil)
	require.NoError(b.t, err)
	b.e.Drain()
	return <-b.tokens, id
}

// output is what the case with the token got; it must have ended.
func (b *bench) output(id workitem.CaseID) string {
	b.t.Helper()
	b.e.Drain()
	c, err := b.e.Case(context.Background(), id)
	require.NoError(b.t, err)
	require.Equal(b.t, state.CaseCompleted, c.State)
	return string(c.Output)
}

// ask sends a request, and returns the status and the body of the answer.
func (b *bench) ask(method, path string, body io.Reader, headers ...string) (int, string) {
	b.t.Helper()
	r := httptest.NewRequest(method, "/", body)
	r.URL.Path = path
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.hook.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (b *bench) post(token, body string, headers ...string) int {
	b.t.Helper()
	status, _ := b.ask(http.MethodPost, "/"+token, strings.NewReader(body), headers...)
	return status
}

func TestAnEventIsSentOnce(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	require.Equal(t, http.StatusAccepted, b.post(token, ` {"amount":100} `))
	require.Equal(t, http.StatusNotFound, b.post(token, `{"amount":200}`))
	require.Equal(t, `{"amount":100}`, b.output(id))
	require.Equal(t, http.StatusNotFound, b.post(token, `{"amount":300}`), "nor after the end")
	require.Equal(t, []string{"paid webhook"}, b.messages())
}

func (b *bench) messages() (all []string) {
	b.t.Helper()
	require.NoError(b.t, b.e.View(context.Background(), func(r store.Reader) error {
		list, err := r.Messages(context.Background(), store.MessageFilter{})
		for _, m := range list {
			all = append(all, m.Name+" "+m.By)
		}
		return err
	}))
	return all
}

func TestAnEmptyBodyIsNull(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	for _, body := range []string{"", " \n", "null"} {
		token, id := b.token()
		require.Equal(t, http.StatusAccepted, b.post(token, body))
		require.Empty(t, strings.Trim(b.output(id), "nul"), "%q", body)
	}
}

func TestACallThatIsRepeatedWithItsKey(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	require.Equal(t, http.StatusAccepted, b.post(token, `1`, "Idempotency-Key", "k1"))
	require.Equal(t, http.StatusAccepted, b.post(token, `1`, "Idempotency-Key", "k1"))
	require.Equal(t, http.StatusNotFound, b.post(token, `2`, "Idempotency-Key", "k2"), "another key is another call")
	require.Equal(t, http.StatusNotFound, b.post(token, `2`), "and so is none")
	require.Equal(t, `1`, b.output(id))
	require.Equal(t, http.StatusAccepted, b.post(token, `1`, "Idempotency-Key", "k1"), "also after the end")
	require.Len(t, b.messages(), 1)

	other, id := b.token()
	require.Equal(t, http.StatusAccepted, b.post(other, `3`, "Idempotency-Key", "k1"), "each token has keys of its own")
	require.Equal(t, `3`, b.output(id))

	failed, id := b.token()
	require.Equal(t, http.StatusBadRequest, b.post(failed, `{`, "Idempotency-Key", "k1"))
	require.Equal(t, http.StatusAccepted, b.post(failed, `4`, "Idempotency-Key", "k1"), "what was refused is not remembered")
	require.Equal(t, `4`, b.output(id))
}

// A key of a caller's choice is no way to make the database hold what the caller likes, and holds no token either.
func TestAKeyOfAnyKindIsTaken(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	for _, key := range []string{strings.Repeat("k", 1<<20), "ü \x7f'; DROP TABLE jobs; --", "\xff\xfe"} {
		token, id := b.token()
		require.Equal(t, http.StatusAccepted, b.post(token, `1`, "Idempotency-Key", key))
		require.Equal(t, http.StatusAccepted, b.post(token, `1`, "Idempotency-Key", key))
		require.Equal(t, http.StatusNotFound, b.post(token, `1`, "Idempotency-Key", key+"x"))
		b.output(id)
		for entry, err := range store.AllEntries(t.Context(), b.e, store.JournalFilter{Root: id}) {
			require.NoError(t, err)
			require.LessOrEqual(t, len(entry.Key), 100)
			require.NotContains(t, entry.Key, token)
		}
	}
}

func TestTheFirstOfManyCallersSends(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	statuses := make(chan int)
	for i := range 20 {
		go func() { statuses <- b.post(token, fmt.Sprint(i)) }()
	}
	accepted := 0
	for range 20 {
		switch s := <-statuses; s {
		case http.StatusAccepted:
			accepted++
		default:
			require.Equal(t, http.StatusNotFound, s)
		}
	}
	require.Equal(t, 1, accepted)
	require.NotEmpty(t, b.output(id))
}

func TestOnlyPOSTSends(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "post", "X",
	} {
		r := httptest.NewRequest(http.MethodPost, "/"+token, strings.NewReader("1"))
		r.Method = method
		w := httptest.NewRecorder()
		b.hook.ServeHTTP(w, r)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, http.MethodPost, w.Header().Get("Allow"))
	}
	require.Equal(t, http.StatusAccepted, b.post(token, "1"), "the token is still good")
	b.output(id)
}

func TestPathsThatAreNoToken(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	flipped := []byte(token)
	flipped[len(flipped)-3] ^= 1
	for _, path := range []string{
		"", "/", "//", "/..", "/../" + token, "/" + token + "/x", "/" + token[:len(token)-1], "/" + token + "A", "/" + token + "=",
		"/" + strings.ToUpper(token) + " ", "/ " + token, "/\x00", "/ü", "/" + string(flipped), "/" + strings.Repeat("A", 1<<16),
		"/" + strings.Repeat("A", len(token)), "/" + id.String(), "/%00",
	} {
		status, body := b.ask(http.MethodPost, path, strings.NewReader("1"))
		require.Equal(t, http.StatusNotFound, status, "%.80q", path)
		require.Equal(t, `{"error":"there is no such token, or it was used before"}`+"\n", body, "the same for all: it tells nothing")
	}
	require.Equal(t, http.StatusAccepted, b.post(token+"/", "1"), "a slash at the end is a habit")
	b.output(id)
}

func TestHostileBodies(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, id := b.token()
	for name, body := range map[string]string{
		"no JSON":           `amount=100`,
		"half":              `{"amount":`,
		"two values":        `1 2`,
		"a comment":         `1 // one`,
		"a NUL":             "1\x00",
		"a BOM":             "\ufeff1",
		"not UTF-8":         "\"\xff\xfe\"",
		"only bytes":        "\x80\x81",
		"very deep":         strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"deep, unclosed":    strings.Repeat(`{"a":`, 50_000),
		"single quotes":     `{'amount':1}`,
		"NaN":               `NaN`,
		"control character": "\"\n\"",
	} {
		status, text := b.ask(http.MethodPost, "/"+token, strings.NewReader(body))
		require.Equal(t, http.StatusBadRequest, status, name)
		require.JSONEq(t, `{"error":"the body is not JSON"}`, text, name)
	}
	status, text := b.ask(http.MethodPost, "/"+token, strings.NewReader(`{"a":{"b":1,"b":2}}`))
	require.Equal(t, http.StatusBadRequest, status)
	require.JSONEq(t, `{"error":"invalid JSON: the field \"a.b\" is there twice; send it once (byte 12)"}`, text)
	status, text = b.ask(http.MethodPost, "/"+token, iotest.ErrReader(errors.New("secret: the cable was cut")))
	require.Equal(t, http.StatusBadRequest, status)
	require.NotContains(t, text, "secret")
	require.Equal(t, http.StatusAccepted, b.post(token, `{"a":1,"A":1e99,"\u0000":"\ud800"}`), "strange, and JSON")
	require.NotEmpty(t, b.output(id))
}

func TestABodyHasALimit(t *testing.T) {
	b := start(t, engine.Config{}, 10)
	token, id := b.token()
	status, text := b.ask(http.MethodPost, "/"+token, strings.NewReader(`"123456789"`))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.JSONEq(t, `{"error":"the body is longer than 10 bytes"}`, text)
	chunked := io.MultiReader(strings.NewReader(`"1234`), strings.NewReader(strings.Repeat("5", 1<<20)))
	status, _ = b.ask(http.MethodPost, "/"+token, chunked)
	require.Equal(t, http.StatusRequestEntityTooLarge, status, "also if its length is not announced")
	require.Equal(t, http.StatusAccepted, b.post(token, `"12345678"`))
	require.Equal(t, `"12345678"`, b.output(id))
}

func TestTheLimitIsTheEnginesUnlessItIsGiven(t *testing.T) {
	for _, limit := range []int64{0, -1} {
		b := start(t, engine.Config{}, limit)
		token, id := b.token()
		long := `"` + strings.Repeat("x", engine.DefaultMaxPayload-2) + `"`
		require.Equal(t, http.StatusRequestEntityTooLarge, b.post(token, long+" "))
		require.Equal(t, http.StatusAccepted, b.post(token, long))
		require.Len(t, b.output(id), engine.DefaultMaxPayload)
	}
	b := start(t, engine.Config{MaxPayload: 1000}, 0)
	token, id := b.token()
	status, text := b.ask(http.MethodPost, "/"+token, strings.NewReader(`"`+strings.Repeat("x", 1000)+`"`))
	require.Equal(t, http.StatusRequestEntityTooLarge, status, "an engine may have less")
	require.JSONEq(t, `{"error":"the value is too large"}`, text)
	require.Equal(t, http.StatusAccepted, b.post(token, `1`))
	b.output(id)
}

func TestAClosedEngineIsNotNow(t *testing.T) {
	b := start(t, engine.Config{}, 0)
	token, _ := b.token()
	require.NoError(t, b.e.Close())
	require.Equal(t, http.StatusServiceUnavailable, b.post(token, `1`))
	b.e.Crash() // opens it again, which the end of the test needs
}

// sender is an engine that answers with an error.
type sender struct{ err error }

func (s sender) Do(context.Context, workflow.Command) (workflow.Result, error) {
	return workflow.Result{}, s.err
}

// An unauthenticated caller gets an error about the call, without internal details.
func TestErrorToUnauthenticatedCallerHidesDetails(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{nil, http.StatusAccepted},
		{engine.ErrNotFound, http.StatusNotFound},
		{engine.ErrInactive, http.StatusNotFound},
		{engine.ErrKeyReused, http.StatusConflict},
		{engine.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{engine.ErrClosed, http.StatusServiceUnavailable},
		{store.ErrReadOnly, http.StatusInternalServerError},
		{context.Canceled, http.StatusInternalServerError},
		{errors.New("boom"), http.StatusInternalServerError},
	} {
		b := &bench{t: t}
		var err error
		if c.err != nil {
			err = fmt.Errorf("secret.db: %w", c.err)
		}
		b.hook = admin.Webhook(sender{err}, 0)
		status, text := b.ask(http.MethodPost, "/x", strings.NewReader("1"))
		require.Equal(t, c.status, status, "%v", c.err)
		require.NotContains(t, text, "secret")
		if c.err == nil {
			require.Empty(t, text)
			continue
		}
		var answer struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(text), &answer))
		require.NotEmpty(t, answer.Error)
	}
}

func TestErrorsAreJSON(t *testing.T) {
	w := httptest.NewRecorder()
	admin.Webhook(sender{engine.ErrNotFound}, 0).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/x", nil))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
}

// Whatever is sent, the answer is one of those that are documented, and the token serves at most once.
func TestEveryRequestGetsADocumentedAnswer(t *testing.T) {
	b := start(t, engine.Config{}, 64)
	token, id := b.token()
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.OneOf(rapid.Just(token), rapid.String(), rapid.StringN(len(token), len(token), -1)).Draw(t, "path")
		body := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 100), rapid.Just([]byte("1"))).Draw(t, "body")
		status, _ := b.ask(http.MethodPost, "/"+path, bytes.NewReader(body))
		switch status {
		case http.StatusAccepted:
			accepted++
			if accepted > 1 || strings.Trim(path, "/") != token {
				t.Fatalf("accepted %d times, by %q", accepted, path)
			}
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge:
		default:
			t.Fatalf("status %d", status)
		}
	})
	if accepted == 0 {
		require.Equal(t, http.StatusAccepted, b.post(token, "1"))
	}
	b.output(id)
}
