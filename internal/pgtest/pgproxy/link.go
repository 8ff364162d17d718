package pgproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	p              *Proxy
	client, server net.Conn
	broken         chan struct{} // closed when the client learns nothing any more
	breaking       sync.Once
	drained        chan struct{}     // closed when the server sends nothing any more
	statements     map[string]string // by the names under which they were prepared
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) isBroken() { l.breaking.Do(func() { close(l.broken) }) }

// requests passes on what the client sends, as many messages at a time as it has sent.
func (l *link) requests() {
	from := bufio.NewReaderSize(l.client, 1<<16)
	l.statements = make(map[string]string)
	sent, err := frame(from, false) // without a type: how a connection begins
	for err == nil {
		if _, err = l.server.Write(sent); err != nil {
			break
		}
		fault := Fault("")
		sent, fault, err = l.next(from)
		if err == nil && fault != "" && !l.apply(fault, sent) {
			return
		}
	}
	_ = l.server.Close()
	_ = l.client.Close()
}

// next reads the messages that the client has sent, and what is to happen at them.
func (l *link) next(from *bufio.Reader) (sent []byte, fault Fault, err error) {
	for first := true; first || from.Buffered() > 0; first = false {
		message, err := frame(from, true)
		if err != nil {
			return nil, "", err
		}
		if statement, is := l.statement(message); is && fault == "" {
			fault = l.p.fault(statement)
		}
		sent = append(sent, message...)
	}
	return sent, fault, nil
}

// frame reads one message.
func frame(from *bufio.Reader, typed bool) ([]byte, error) {
	head := make([]byte, 4, 5)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[len(head)-4:])
	if n < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	message := append(make([]byte, 0, len(head)+int(n)-4), head...)
	body := message[len(head):cap(message)]
	_, err := io.ReadFull(from, body)
	return message[:cap(message)], err
}

// statement is the SQL of a message that has the server execute some, with the arguments; false for other messages.
func (l *link) statement(message []byte) (string, bool) {
	body := message[5:]
	switch message[0] {
	case 'Q':
		return string(body), true
	case 'P':
		name, rest, _ := bytes.Cut(body, []byte{0})
		query, _, _ := bytes.Cut(rest, []byte{0})
		l.statements[string(name)] = string(query)
	case 'B':
		_, rest, _ := bytes.Cut(body, []byte{0})
		name, arguments, _ := bytes.Cut(rest, []byte{0})
		return l.statements[string(name)] + "\x00" + string(arguments), true
	}
	return "", false
}

// apply has a fault happen to what was sent; false if the connection does not continue.
func (l *link) apply(f Fault, sent []byte) (goesOn bool) {
	if f == Delay {
		time.Sleep(delayed)
		return true
	}
	l.isBroken()
	if f == Reply || f == Silence {
		_, _ = l.server.Write(sent)
	}
	switch f {
	case Request:
		l.close()
	case Reply:
		l.finish()
		_ = l.client.Close()
	case Late:
		_ = l.client.Close()
		l.p.keep(func() {
			_, _ = l.server.Write(sent)
			l.finish()
		})
	case HalfOpen, Silence:
		_, _ = io.Copy(io.Discard, l.client) // the server does not learn that the client has given up
		_ = l.client.Close()
	}
	return false
}

// finish ends the server's side when the server has done what it was sent.
func (l *link) finish() {
	if server, ok := l.server.(*net.TCPConn); ok {
		_ = server.CloseWrite()
	}
	<-l.drained
	_ = l.server.Close()
}

// replies passes on what the server sends, until the client is to learn nothing any more.
func (l *link) replies() {
	defer close(l.drained)
	buf := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buf)
		select {
		case <-l.broken:
			if err != nil {
				return
			}
			continue
		default:
		}
		if err == nil {
			_, err = l.client.Write(buf[:n])
		}
		if err != nil {
			l.close()
			return
		}
	}
}
