package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/slowclient"
	"github.com/tasq-dev/tasq/workflow"
)

// Webhook answers calls from outside with the event that a step waits for. A step makes a token (step.Token), passes
// its address on, and awaits the event; a caller that posts to the address sends it, once:
//
//	mux.Handle("POST /hooks/", http.StripPrefix("/hooks/", admin.Webhook(e, 0)))
//
//	POST /hooks/AZ1c...             the path below the handler is the token
//	{"amount":100}                  the body is the value, as JSON; an empty one is null
//
// The answers are
//
//	202  the event is sent, and durable
//	400  the body is not JSON, or names a field twice (see domain.CheckForm)
//	404  there is no such token, it was used before, or the case that made it has ended
//	405  another method than POST
//	409  the Idempotency-Key was used for something else
//	413  the body is longer than limit, in bytes; a limit of 0 or less is the engine's default, 1 MiB
//	500  the event could not be sent; try again
//	503  the engine is closed; try again
//
// A caller that is not sure whether its call arrived calls again: with the same header Idempotency-Key the second call
// gets the answer of the first, without it 404. A token is a secret of 192 random bits beside the id of its case: serve
// it over TLS only, and do not log the path.
func Webhook(e workflow.Doer, limit int64) http.Handler {
	if limit <= 0 {
		limit = engine.DefaultMaxPayload
	}
	return slowclient.Handler(&webhook{e, limit})
}

type webhook struct {
	e     workflow.Doer
	limit int64
}

// ServeHTTP implements [http.Handler].
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "an event is sent by POST")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.limit))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", tooLong.Limit))
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read")
		return
	}
	value := json.RawMessage(strings.TrimSpace(string(body)))
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	if !json.Valid(value) || !utf8.Valid(value) {
		refuse(w, http.StatusBadRequest, "the body is not JSON")
		return
	}
	if err := domain.CheckJSON(value); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	token := strings.Trim(r.URL.Path, "/")
	if workflow.CheckText("token", token) != nil {
		refuse(w, http.StatusNotFound, noSuchToken)
		return
	}
	opts := []workflow.Option{workflow.By("webhook")}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		opts = append(opts, workflow.Key(keyOf(token, key)))
	}
	if _, err := h.e.Do(r.Context(), workflow.SendToken(token, value, opts...)); err != nil {
		status, text := explain(err)
		refuse(w, status, text)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// keyOf names a call of one token. It is a hash, since what a stranger sends has any length, and since a token that was
// not accepted is a secret, which the journal is not to hold.
func keyOf(token, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(token), token, key))
	return "webhook " + hex.EncodeToString(sum[:])
}

const noSuchToken = "there is no such token, or it was used before"

// explain says as much of an error as a stranger may know.
func explain(err error) (int, string) {
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrInactive), errors.Is(err, workflow.ErrBadCommand):
		return http.StatusNotFound, noSuchToken
	case errors.Is(err, engine.ErrTooLarge):
		return http.StatusRequestEntityTooLarge, "the value is too large"
	case errors.Is(err, engine.ErrKeyReused):
		return http.StatusConflict, "the idempotency key was used for something else"
	case errors.Is(err, engine.ErrClosed):
		return http.StatusServiceUnavailable, "not now; try again"
	}
	return http.StatusInternalServerError, "the event could not be sent; try again"
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = printable.NewEncoder(w).Encode(map[string]string{"error": text}) // the caller may be gone
}
