package demo_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
)

// pipes is a network within a synctest bubble, in which time passes only while all wait.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, other := net.Pipe()
	select {
	case p.accepted <- other:
		return mine, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// runLimits runs the demo in a bubble: a minute of it takes no time.
func runLimits(t *testing.T, o demo.LimitsOptions) (text string, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		o.SetNetwork(p, p.dial)
		var out strings.Builder
		begun := time.Now()
		err = demo.RunLimits(t.Context(), &out, o)
		text, took = out.String(), time.Since(begun)
	})
	return text, took, err
}

func TestNoCallOfTheDemoOfLimitsIsRefused(t *testing.T) {
	t.Parallel()
	out, took, err := runLimits(t, demo.LimitsOptions{})
	require.NoError(t, err)
	require.Contains(t, out, "200 of 200 calls served,  0 running, 0 answered with 429")
	require.Regexp(t, `key-1 +\d+ +50 of 50 +5 of 5 +0\n`, out)
	require.Contains(t, out, "The server can serve 200 calls in 64.0 s at best. It took 64.5 s: a utilisation of 99.2 %.")
	require.Less(t, took, 65*time.Second)

	out, _, err = runLimits(t, demo.LimitsOptions{Fast: true})
	require.NoError(t, err)
	require.Contains(t, out, "It took 9.4 s: a utilisation of 68.1 %.\nWith -fast windows are 3s longer")
}

// The demo judges what the server has counted.
func TestTheDemoOfLimitsFailsIfTheyAreMissed(t *testing.T) {
	t.Parallel()
	early := demo.LimitsOptions{Fast: true}
	early.SetMargin(-2 * time.Second)
	out, _, err := runLimits(t, early)
	require.ErrorIs(t, err, demo.ErrMissed)
	require.ErrorContains(t, err, "of 200 calls with 429")
	require.NotContains(t, out, "answered with 0")

	late := demo.LimitsOptions{}
	late.SetMargin(10 * time.Second)
	_, _, err = runLimits(t, late)
	require.ErrorIs(t, err, demo.ErrMissed)
	require.ErrorContains(t, err, "the utilisation is 86.5 %, and is to be 95 %")
}

// A call that cannot be made ends the demo at once.
func TestTheDemoOfLimitsEndsWithACallThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		down, first := errors.New("the network is down"), atomic.Bool{}
		o := demo.LimitsOptions{}
		o.SetNetwork(p, func(ctx context.Context, network, address string) (net.Conn, error) {
			if first.CompareAndSwap(false, true) {
				return nil, down
			}
			return p.dial(ctx, network, address)
		})
		begun := time.Now()
		require.ErrorIs(t, demo.RunLimits(t.Context(), io.Discard, o), down)
		require.Less(t, time.Since(begun), 2*time.Second)
	})
}

func TestTheDemoOfLimitsIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	require.ErrorIs(t, demo.RunLimits(ctx, &out, demo.LimitsOptions{}), context.Canceled)
	require.Contains(t, out.String(), "Stopped.")
}
