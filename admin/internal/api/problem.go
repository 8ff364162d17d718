package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// problem is the response to a failed request, see RFC 9457.
type problem struct {
	Title  string              `json:"title"`
	Status int                 `json:"status"`
	Detail string              `json:"detail"`
	Code   string              `json:"code"`             // stable: that of engine.Code, or one of this package
	Param  string              `json:"param,omitempty"`  // the invalid query parameter
	Fields []domain.FieldError `json:"fields,omitempty"` // the invalid fields of a payload
}

// statuses maps codes to HTTP statuses. All others are 409: the state of a case, or the process's own code, refused the
// command.
var statuses = map[string]int{
	"throttled": http.StatusTooManyRequests,
	"not-found": http.StatusNotFound, "unknown-workflow": http.StatusNotFound,
	"bad-parameter": http.StatusBadRequest, "bad-command": http.StatusBadRequest, "invalid-payload": http.StatusUnprocessableEntity,
	"too-large": http.StatusRequestEntityTooLarge, "not-allowed": http.StatusForbidden, "read-only": http.StatusForbidden,
	"commit-failed": http.StatusServiceUnavailable, "closed": http.StatusServiceUnavailable, "lost": http.StatusServiceUnavailable,
	"unavailable": http.StatusServiceUnavailable, "random-failed": http.StatusServiceUnavailable, "undone": http.StatusServiceUnavailable, "owned": http.StatusServiceUnavailable,
	"older": http.StatusServiceUnavailable, "newer": http.StatusServiceUnavailable, "corrupt": http.StatusInternalServerError,
	"error": http.StatusInternalServerError, // an unknown error; the caller cannot correct it
}

// StatusOf returns the HTTP status and the stable code of an error.
func StatusOf(err error) (status int, code string) {
	if bad := (*query.Error)(nil); errors.As(err, &bad) {
		return http.StatusBadRequest, "bad-parameter"
	}
	if errors.As(err, new(*store.RemovedError)) {
		return http.StatusGone, "removed"
	}
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return http.StatusRequestEntityTooLarge, "too-large"
	}
	if tookLong(err) {
		return http.StatusServiceUnavailable, "busy"
	}
	code = engine.Code(err)
	if status = statuses[code]; status == 0 {
		status = http.StatusConflict
	}
	return status, code
}

// Problem writes the response for an error.
func Problem(w http.ResponseWriter, err error) {
	status, code := StatusOf(err)
	p := problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), Code: code}
	if bad := (*query.Error)(nil); errors.As(err, &bad) {
		p.Param = bad.Param
	}
	if invalid := (*domain.InvalidError)(nil); errors.As(err, &invalid) {
		p.Fields = invalid.Fields
	}
	if tookLong(err) {
		p.Detail = slowly
		w.Header().Set("Retry-After", "1")
	}
	if throttled := (*workflow.ThrottledError)(nil); errors.As(err, &throttled) {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(throttled.Wait.Seconds()), 'f', 0, 64))
	}
	p.write(w)
}

// caseProblem is [Problem] for an error of an address of a case: of one that was removed it says by whom.
func (a *API) caseProblem(w http.ResponseWriter, r *http.Request, err error) {
	var id workitem.CaseID
	if errors.Is(err, store.ErrNotFound) && id.UnmarshalText([]byte(r.PathValue("id"))) == nil {
		missing := err
		if failed := a.Backend.View(r.Context(), func(v store.Reader) error {
			err = store.OrRemoved(r.Context(), v, id, missing)
			return nil
		}); failed != nil {
			err = failed
		}
	}
	Problem(w, err)
}

// Refuse writes the response to a refused request.
func Refuse(w http.ResponseWriter, status int, code, text string) {
	p := problem{Title: http.StatusText(status), Status: status, Detail: text, Code: code}
	p.write(w)
}

// FallbackPattern matches the addresses of the API that no other pattern matches, for [NotFound].
const FallbackPattern = "GET /api/"

// allow reports whether a user may send a command of a kind to a target. If not, it answers so.
func allow(w http.ResponseWriter, u *access.User, kind, target string) bool {
	if u.Allowed(kind, target) {
		return true
	}
	Refuse(w, http.StatusForbidden, "not-allowed", fmt.Sprintf("%s may not have %q done on %s", access.Named(u), kind, target))
	return false
}

// NotFound writes the response for an unknown address of the API.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Refuse(w, http.StatusNotFound, "not-found", "the API has nothing at this address; "+Base+"openapi.json describes what it has")
}

// Only makes responses of the API to unsupported methods JSON; the mux would write plain text.
func Only(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" || !strings.HasPrefix(r.URL.Path, Base) {
			mux.ServeHTTP(w, r)
			return
		}
		read := *r
		read.Method = http.MethodGet
		if _, pattern := mux.Handler(&read); pattern == FallbackPattern {
			NotFound(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		Refuse(w, http.StatusMethodNotAllowed, "bad-method", "this address of the API is only read, by GET; commands are sent to "+Base+"commands")
	})
}

func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil { // marshaling cannot fail
		panic(err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
