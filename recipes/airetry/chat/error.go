package chat

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The codes of failures that the client itself finds. A failure that the server reports has the server's own code,
// such as "rate_limit_exceeded".
const (
	CodeConfig     = "bad_client"       // a field of the Client is wrong; nothing was sent
	CodeCanceled   = "canceled"         // the caller's context was canceled
	CodeTimeout    = "timeout"          // no whole reply in time
	CodeConnection = "no_connection"    // no reply at all: no such host, refused, or hung up at once
	CodeCut        = "cut_short"        // the reply began and did not end
	CodeTooLarge   = "reply_too_large"  // the reply is longer than Client.MaxReply
	CodeJSON       = "invalid_json"     // the reply is not JSON
	CodeShape      = "unexpected_shape" // the reply is JSON of some other protocol
	CodeEmpty      = "empty_reply"      // no choices, or a first choice without words
	CodeRefusal    = "refusal"          // the model declined, with its reason as the message
)

// Error says why a model gave no answer. It is the only error type of [Client.Complete].
type Error struct {
	// Endpoint and Model are the two that failed: the base URL without anything secret, and the model's name.
	Endpoint, Model string
	// Status is the HTTP status, or 0 where no reply began.
	Status int
	// Code is one of the Code constants, or what the server calls the failure. Empty where the server does not say.
	Code string
	// Message is the explanation, in one line of at most 300 bytes, without the key.
	Message string
	// RetryAfter is how long the server asks to be left alone. 0 means that it does not say.
	RetryAfter time.Duration
	// Temporary is whether the same call may succeed later. It is false where the endpoint understood and refused (a
	// wrong key, an unknown model, a used-up quota), and where the reply is too large.
	Temporary bool
	// Err is the cause, such as a context's or a connection's error. Nil where the server itself reported the failure.
	Err error
}

// Error returns one line with the model, the endpoint, the cause, and what to do about it.
func (e *Error) Error() string {
	kind := e.Code
	if e.Status != 0 {
		kind = strings.TrimSpace(fmt.Sprint(e.Status, " ", e.Code))
	}
	line := fmt.Sprintf("complete with model %q at %s: %s: %s", e.Model, e.Endpoint, kind, e.Message)
	if advice := e.advice(); advice != "" {
		line += "; " + advice
	}
	return line
}

// Unwrap returns the cause, so that errors.Is finds a context's error.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) advice() string {
	switch {
	case e.Temporary && e.RetryAfter > 0:
		return fmt.Sprintf("try again after %v", e.RetryAfter)
	case e.Temporary:
		return "try again"
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "check the API key and its rights"
	case e.Status == http.StatusNotFound:
		return "check the base URL and the name of the model"
	}
	return ""
}

// named completes an error with its parties, and takes the key out of what the server said: some servers repeat the
// key that they refuse.
func (c *Client) named(e *Error) *Error {
	e.Endpoint, e.Model = publicName(c.BaseURL), c.Model
	if c.Key != "" {
		e.Code = strings.ReplaceAll(e.Code, c.Key, "[key]")
		e.Message = strings.ReplaceAll(e.Message, c.Key, "[key]")
	}
	e.Message = oneLine(e.Message)
	return e
}

// broken explains a call that ended without a whole reply. The status is that of the reply that began, or 0.
func broken(ctx context.Context, status int, err error) *Error {
	timeout := false
	if n, ok := errors.AsType[net.Error](err); ok {
		timeout = n.Timeout()
	}
	// The address in net/http's error may hold a secret, and the endpoint is named anyway.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	e := &Error{Status: status, Message: err.Error(), Temporary: true, Err: err}
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case tooLarge:
		e.Code, e.Temporary = CodeTooLarge, false
	case ctx.Err() == context.Canceled:
		// Temporary: a worker that is stopped has not failed, so its work is tried again.
		e.Code, e.Err = CodeCanceled, ctx.Err()
	case ctx.Err() != nil:
		e.Code, e.Err = CodeTimeout, ctx.Err()
	case timeout:
		e.Code = CodeTimeout
	case untrusted:
		e.Code, e.Temporary = CodeConnection, false
	case status != 0:
		e.Code = CodeCut
	default:
		e.Code = CodeConnection
	}
	return e
}

// refused explains a reply whose status is not a success.
func (c *Client) refused(resp *http.Response, body []byte) *Error {
	code, text := complaint(body)
	return &Error{
		Status:     resp.StatusCode,
		Code:       code,
		Message:    cmp.Or(text, http.StatusText(resp.StatusCode)),
		RetryAfter: c.retryAfter(resp.Header),
		Temporary:  passing(resp.StatusCode, code),
	}
}

// codeNoQuota is OpenAI's code for a budget that is used up.
const codeNoQuota = "insufficient_quota"

// passing reports whether a status is about this moment rather than about this request.
func passing(status int, code string) bool {
	switch status {
	case http.StatusTooManyRequests:
		// The same status for two things: too fast, which passes, and a used-up budget, which no wait restores.
		return code != codeNoQuota
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// retryAfter reads the header of that name: seconds, or a date. A date is compared with the date of the reply where it
// has one: both are of the server's clock, so ours may be wrong. What cannot be read, or is past, is 0.
func (c *Client) retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	// Fractions are not in the standard, but some servers send them.
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return clamp(seconds)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = c.now()
	}
	return max(at.Sub(now), 0)
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// clamp turns seconds into a duration, the nearest one that there is; NaN and negative ones are 0.
func clamp(seconds float64) time.Duration {
	switch ns := seconds * float64(time.Second); {
	case !(ns > 0):
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	default:
		return time.Duration(ns)
	}
}
