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

// hookPath is where the webhook is; the token follows.
const hookPath = "/verify/"

// hook serves the link of the mail on this machine, as long as the demo runs.
type hook struct {
	listener net.Listener
	server   *http.Server
	once     sync.Once
}

// listen reserves the address. One that cannot be had is a mistake of the command line.
func listen(address string) (*hook, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: the webhook cannot be served at %q; give -listen another address: %w",
			ErrUsage, address, err)
	}
	return &hook{listener: listener, server: &http.Server{ReadTimeout: 10 * time.Second}}, nil
}

// serve begins to serve, the first time that it is called. It goes on until close.
func (h *hook) serve(e workflow.Doer) {
	h.once.Do(func() {
		mux := http.NewServeMux()
		mux.Handle(hookPath, http.StripPrefix(hookPath, admin.Webhook(e, 0)))
		h.server.Handler = mux
		go func() { _ = h.server.Serve(h.listener) }() // should it end early, there is still the command beside the address
	})
}

func (h *hook) url(token string) string {
	return "http://" + h.listener.Addr().String() + hookPath + token
}

// close ends the server, and the requests that it serves.
func (h *hook) close() {
	_, _ = h.server.Close(), h.listener.Close() // nothing is left to be done about an error
}
