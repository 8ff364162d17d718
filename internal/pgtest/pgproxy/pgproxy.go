// Package pgproxy is a proxy in front of a PostgreSQL server. A test breaks its connections at a statement that it names.
//
// It knows the frames of the protocol: a statement that was prepared before is known by its text when it is executed. The connection
// must not be encrypted.
package pgproxy

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to a connection at a statement. All but Delay concern one connection, and are over with it.
type Fault string

// The faults.
const (
	// Request cuts the connection before the statement reaches the server.
	Request Fault = "request lost"
	// Reply has the server do the statement, and cuts the connection then: the client learns nothing of what became of it.
	Reply Fault = "reply lost"
	// HalfOpen lets nothing through any more, and leaves both sides open: the statement does not reach the server.
	HalfOpen Fault = "half-open"
	// Silence is HalfOpen after the server has the statement.
	Silence Fault = "reply withheld"
	// Late cuts the client's side, and keeps the statement until Deliver is called.
	Late Fault = "delivered late"
	// Delay holds the statement back for a while.
	Delay Fault = "delayed"
)

// delayed is how long Delay holds a statement back.
const delayed = 300 * time.Millisecond

// T is what a proxy needs of a test; *testing.T and *testing.B are one.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// Proxy is a way to a server. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	server   string

	deciding sync.Mutex
	decide   decider // what happens at a statement; nil for nothing

	mu      sync.Mutex
	links   map[*link]bool
	closed  bool // takes no connections
	late    []func()
	met     int // how many faults there were
	refused int // how many connections a closed proxy did not take
}

// decider says what happens at a statement; "" for nothing.
type decider func(statement string) Fault

// New returns a proxy to the server that a connection string names, and the connection string that goes through it. The proxy ends with
// the test.
func New(t T, dsn string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, server: u.Host, links: make(map[*link]bool)}
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.Close()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{p: p, client: client, server: server, broken: make(chan struct{}), drained: make(chan struct{})}
		if !p.add(l) {
			l.close()
			continue
		}
		go l.requests()
		go l.replies()
	}
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.refused++
		return false
	}
	p.links[l] = true
	return true
}

// Break has a fault happen at the next statement that has the text, in its SQL or its arguments.
func (p *Proxy) Break(f Fault, text string) {
	over := false
	p.Decide(func(statement string) Fault {
		if over || !strings.Contains(statement, text) {
			return ""
		}
		over = true
		return f
	})
}

// Decide has a function say what happens at each statement; "" for nothing. It is not called concurrently; nil ends all faults that
// are to come.
func (p *Proxy) Decide(f func(statement string) Fault) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	p.decide = f
}

// Met returns how many faults there were.
func (p *Proxy) Met() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met
}

// Refused returns how many connections it did not take while it was closed.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (p *Proxy) fault(statement string) Fault {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	if p.decide == nil {
		return ""
	}
	f := p.decide(statement)
	if f != "" {
		p.mu.Lock()
		p.met++
		p.mu.Unlock()
	}
	return f
}

// Deliver gives the server what Late kept, and returns how many times it did. It waits until the server has answered, or has ended
// the connection.
func (p *Proxy) Deliver() int {
	p.mu.Lock()
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, deliver := range late {
		deliver()
	}
	return len(late)
}

func (p *Proxy) keep(deliver func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, deliver)
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	clear(p.links)
}

// Close ends all connections, and takes no new ones until Open is called.
func (p *Proxy) Close() {
	p.Refuse()
	p.Cut()
}

// Refuse takes no new connections until Open is called. A function of Decide may call it.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// Open takes connections again.
func (p *Proxy) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
}
