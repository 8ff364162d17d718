package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
)

// DefaultTimeout is how long an answer may take.
const DefaultTimeout = 10 * time.Second

// within returns a request with a deadline, unless its answer is a stream or an export, which take as long as they need, or a command, whose
// outcome the client must learn.
func within(r *http.Request, timeout time.Duration) (*http.Request, context.CancelFunc) {
	accept := r.Header.Get("Accept")
	endless := strings.HasSuffix(r.URL.Path, "/stream") || strings.HasSuffix(r.URL.Path, "/export") || r.URL.Query().Get("format") != "" ||
		strings.Contains(accept, "text/csv") || strings.Contains(accept, "application/x-ndjson")
	if endless || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return r, func() {}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return r.WithContext(ctx), cancel
}

// tookLong reports whether an error says that the deadline of an answer has passed.
func tookLong(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, source.ErrNoOwner)
}

// slowly says what to do after that.
const slowly = "the answer takes longer than an answer may: send the request again later, select less with the filters and limit, or ask for all rows with the header " +
	"Accept: application/x-ndjson where there are rows, which has no deadline"
