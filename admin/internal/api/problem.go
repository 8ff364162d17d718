package api

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

// problem is the answer to a request that failed, as of RFC 9457.
type problem struct {
	Title  string              `json:"title"`
	Status int                 `json:"status"`
	Detail string              `json:"detail"`
	Code   string              `json:"code"`             // stable; that of engine.Code, or one of this package
	Param  string              `json:"param,omitempty"`  // of the query, that cannot be understood
	Fields []domain.FieldError `json:"fields,omitempty"` // of a payload, that break a rule
}

// statuses are those of the codes; 409 is for all others, which are refusals of the state or of the process's own code.
var statuses = map[string]int{
	"throttled": http.StatusTooManyRequests,
	"not-found": http.StatusNotFound, "unknown-workflow": http.StatusNotFound,
	"bad-parameter": http.StatusBadRequest, "bad-command": http.StatusBadRequest, "invalid-payload": http.StatusUnprocessableEntity,
	"too-large": http.StatusRequestEntityTooLarge, "not-allowed": http.StatusForbidden, "read-only": http.StatusForbidden,
	"commit-failed": http.StatusServiceUnavailable, "closed": http.StatusServiceUnavailable, "lost": http.StatusServiceUnavailable,
	"unavailable": http.StatusServiceUnavailable, "random-failed": http.StatusServiceUnavailable, "undone": http.StatusServiceUnavailable, "owned": http.StatusServiceUnavailable,
	"older": http.StatusServiceUnavailable, "newer": http.StatusServiceUnavailable, "corrupt": http.StatusInternalServerError,
	"error": http.StatusInternalServerError, // of no class: the caller can do nothing about it
}

// StatusOf is the HTTP status of an error, and its stable code.
func StatusOf(err error) (status int, code string) {
	if bad := (*query.Error)(nil); errors.As(err, &bad) {
		return http.StatusBadRequest, "bad-parameter"
	}
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return http.StatusRequestEntityTooLarge, "too-large"
	}
	code = engine.Code(err)
	if status = statuses[code]; status == 0 {
		status = http.StatusConflict
	}
	return status, code
}

// Problem answers with an error.
func Problem(w http.ResponseWriter, err error) {
	status, code := StatusOf(err)
	p := problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), Code: code}
	if bad := (*query.Error)(nil); errors.As(err, &bad) {
		p.Param = bad.Param
	}
	if invalid := (*domain.InvalidError)(nil); errors.As(err, &invalid) {
		p.Fields = invalid.Fields
	}
	if throttled := (*workflow.ThrottledError)(nil); errors.As(err, &throttled) {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(throttled.Wait.Seconds()), 'f', 0, 64))
	}
	p.write(w)
}

// Refuse answers a request that is not let through.
func Refuse(w http.ResponseWriter, status int, code, text string) {
	p := problem{Title: http.StatusText(status), Status: status, Detail: text, Code: code}
	p.write(w)
}

// Everywhere is the pattern of [Nowhere].
const Everywhere = "GET /api/"

// Nowhere answers for an address that the API does not have.
func Nowhere(w http.ResponseWriter, r *http.Request) {
	Refuse(w, http.StatusNotFound, "not-found", "the API has nothing at this address; "+Base+"openapi.json describes what it has")
}

// Only puts the answers of the API to methods that an address does not have before a mux, which has text for them.
func Only(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" || !strings.HasPrefix(r.URL.Path, Base) {
			mux.ServeHTTP(w, r)
			return
		}
		read := *r
		read.Method = http.MethodGet
		if _, pattern := mux.Handler(&read); pattern == Everywhere {
			Nowhere(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		Refuse(w, http.StatusMethodNotAllowed, "bad-method", "this address of the API is only read, by GET; commands are sent to "+Base+"commands")
	})
}

func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil { // no field can fail
		panic(err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs nothing
}
