// Package slowclient ends the connections of HTTP clients that stop sending a request, or stop receiving an answer. A timeout of [http.Server] is for a
// whole request or answer, so it cannot be used where an answer is a stream that does not end; without one, a client that stops keeps its
// connection, and what the handler holds, until the program ends.
package slowclient

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// Patience is how long a client may send nothing of a body that it announced, or receive nothing of what is written.
const Patience = 30 * time.Second

// piece is how much of an answer a client must receive within that time.
const piece = 64 << 10

// Handler limits the pauses of the clients of a handler.
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, limited := w.(*writer); limited {
			h.ServeHTTP(w, r)
			return
		}
		out := &writer{w, http.NewResponseController(w)}
		out.limit(false) // that of the previous request of the connection may be over
		if r.ContentLength != 0 {
			in := &body{r.Body, out.c}
			in.limit()
			r = r.WithContext(r.Context()) // the server reads what is left of the body from its own request
			r.Body = in
		}
		defer out.limit(true) // for what the server sends when the handler has returned
		h.ServeHTTP(out, r)
	})
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	c *http.ResponseController
}

// Read implements [io.Reader]. After its end the server waits for the next request, which has a limit of its own.
func (b *body) Read(p []byte) (int, error) {
	b.limit()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// limit does nothing if the connection has no deadlines, as in a test.
func (b *body) limit() { _ = b.c.SetReadDeadline(retry.SystemClock.Now().Add(Patience)) }

// writer is an answer. Between two writes it may take as long as it likes.
type writer struct {
	http.ResponseWriter
	c *http.ResponseController
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (n int, err error) {
	defer w.limit(false)
	for {
		w.limit(true)
		m, err := w.ResponseWriter.Write(p[n:min(n+piece, len(p))])
		if n += m; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// FlushError is for [http.ResponseController].
func (w *writer) FlushError() error {
	w.limit(true)
	defer w.limit(false)
	return w.c.Flush()
}

func (w *writer) limit(on bool) {
	end := time.Time{}
	if on {
		end = retry.SystemClock.Now().Add(Patience)
	}
	_ = w.c.SetWriteDeadline(end)
}
