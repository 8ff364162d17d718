package slowclient_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/slowclient"
)

// pipes is a listener for connections without a buffer, which have deadlines in synthetic time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// connect returns a connection to a server of a handler, which is stopped when the test ends.
func connect(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	p := make(pipes)
	s := &http.Server{Handler: slowclient.Handler(slowclient.Handler(h)), ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error)
	go func() { ended <- s.Serve(p) }()
	client, server := net.Pipe()
	p <- server
	t.Cleanup(func() {
		close(p)
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.NoError(t, s.Close())
		require.NoError(t, client.Close())
	})
	return client
}

// pass lets synthetic time pass.
func pass(d time.Duration) { <-time.After(d) }

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// A client that stops in the body of a request loses the connection, also if the handler has not read the body.
func TestAClientThatStopsSending(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var failed error
			c := connect(t, func(_ http.ResponseWriter, r *http.Request) {
				if reads {
					_, failed = io.ReadAll(r.Body)
				}
			})
			send(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
			begun := time.Now()
			for range 3 { // it is slow, but sends
				pass(slowclient.Patience / 2)
				if reads {
					send(t, c, "1")
				}
			}
			_, _ = io.Copy(io.Discard, c) // until the server ends the connection
			require.LessOrEqual(t, time.Since(begun), 3*slowclient.Patience)
			require.Equal(t, reads, errors.Is(failed, os.ErrDeadlineExceeded))
		})
	}
}

// A client that does not receive ends its handler, whatever that writes; one that receives slowly gets all, and a stream may pause.
func TestAClientThatStopsReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 1<<20)
		ended := make(chan error, 1)
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			out := http.NewResponseController(w)
			err := out.Flush()
			for err == nil {
				pass(3 * slowclient.Patience) // as a stream without an event
				if _, err = io.WriteString(w, large); err == nil {
					err = out.Flush()
				}
			}
			ended <- err
		})
		send(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		in := bufio.NewReader(c)
		for range 2 << 20 / 4096 {
			_, err := io.CopyN(io.Discard, in, 4096)
			require.NoError(t, err)
			pass(time.Second)
		}
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	})
}

// The limit of one request is not that of the next one of the connection.
func TestAConnectionServesFurtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			_, end := r.Body.Read(make([]byte, 1)) // as a decoder may, while the server waits for the next request already
			assert.ErrorIs(t, end, io.EOF)
			if err == nil {
				pass(10 * slowclient.Patience)
				_, err = w.Write(body)
			}
			assert.NoError(t, err)
			assert.NoError(t, r.Context().Err())
		})
		in := bufio.NewReader(c)
		for range 3 {
			send(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
			answer, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, "ab", string(body))
			pass(10 * slowclient.Patience)
		}
	})
}
