package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is the way to a server, which a test can break.
type proxy struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool   // takes no connections
	fault  string // "", "reply", "request"
	from   []byte // the fault begins when a request has this; nil for the next one
}

// newProxy returns a proxy, and the connection string that goes through it.
func newProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, server: u.Host, conns: make(map[net.Conn]bool)}
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil || !p.add(client, server) {
			_ = client.Close()
			continue
		}
		broken := make(chan struct{})
		go p.requests(client, server, broken)
		go p.replies(client, server, broken)
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.closed
}

// requests copies what the client sends. A fault concerns one connection, and is over with it.
func (p *proxy) requests(client, server net.Conn, broken chan struct{}) {
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		switch p.takeFault(buf[:n]) {
		case "request":
			_ = client.Close()
			return
		case "reply":
			close(broken)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) takeFault(request []byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == "" || !bytes.Contains(request, p.from) {
		return ""
	}
	fault := p.fault
	p.fault = ""
	return fault
}

// replies copies what the server sends, until the fault: then the client learns nothing but that the connection is closed.
func (p *proxy) replies(client, server net.Conn, broken chan struct{}) {
	defer client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		select {
		case <-broken:
			if err == nil {
				_ = client.Close()
				_, _ = io.Copy(io.Discard, server)
			}
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// breakNext loses a reply, or a request, of the connection that next sends one with the text.
func (p *proxy) breakNext(fault, from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.from = fault, []byte(from)
}

// cut ends all connections; a closed proxy takes no new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) close(closed bool) {
	p.mu.Lock()
	p.closed = closed
	p.mu.Unlock()
	if closed {
		p.cut()
	}
}
