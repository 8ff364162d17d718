package demo

import (
	"context"
	"net"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// SetOpener has a demo open its database by another store.
func (s *Setting) SetOpener(f func(path string) store.Opener) { s.opener = f }

// SetWait has a demo wait so long before another attempt, and in a pause.
func (s *Setting) SetWait(d time.Duration) { s.wait = d }

// Wrap is how a draft is shown.
func Wrap(text string) string { return wrap(text, 78) }

// SetNetwork has the demo of limits use another network than that of the machine.
func (o *LimitsOptions) SetNetwork(l net.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	o.listener, o.dial = l, dial
}

// SetMargin has the demo of limits ask for windows that are longer by another time than those of the server.
func (o *LimitsOptions) SetMargin(d time.Duration) { o.longer = d }
