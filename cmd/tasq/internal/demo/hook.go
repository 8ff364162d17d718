package demo

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
)

// hookPath is the path of the webhook, before the token.
const hookPath = "/verify/"

// hook serves the link in the mail, until the demo ends.
type hook struct {
	listener net.Listener
	server   *http.Server
	once     sync.Once
}

// listen reserves the address. An address that is not available is an error of usage.
func listen(address string) (*hook, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: the webhook cannot be served at %q; give -listen another address: %w",
			ErrUsage, address, err)
	}
	return &hook{listener: listener, server: &http.Server{ReadTimeout: 10 * time.Second}}, nil
}

// serve starts the server at its first call.
func (h *hook) serve(e workflow.Doer) {
	h.once.Do(func() {
		mux := http.NewServeMux()
		mux.Handle(hookPath, http.StripPrefix(hookPath, admin.Webhook(e, 0)))
		h.server.Handler = mux
		go func() { _ = h.server.Serve(h.listener) }() // if it fails, the printed command still works
	})
}

func (h *hook) url(token string) string {
	return "http://" + h.listener.Addr().String() + hookPath + token
}

// close stops the server and its requests.
func (h *hook) close() {
	_, _ = h.server.Close(), h.listener.Close() // nothing depends on these errors
}
