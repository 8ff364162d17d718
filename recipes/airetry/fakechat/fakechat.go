// Package fakechat is a model server for tests and demos: it speaks the chat completions protocol over real HTTP on
// this machine, costs nothing, and misbehaves on request.
//
// Its words come from a Markov chain over the opening of "Alice's Adventures in Wonderland" (Lewis Carroll, 1865, in
// the public domain), and begin with a word of the prompt where the book knows one. The text is a function of the seed
// and the prompt, so the same prompt is always answered with the same words, in whatever order requests arrive.
//
// What makes it useful is how it fails. A [Fault] is one bad answer: too many requests, an error, silence, a connection
// cut in the middle, JSON that is broken or of another shape (see [Mode] for all). There are four ways to ask for one.
// The first that applies decides, and the others are left as they were:
//
//	header   Fake-Fault: limit 2s                 this request
//	prompt   tell me a tale [[limit 2s, error]]   the first request with this prompt, then the second; later ones are
//	                                              answered well
//	script   Options.Faults, Server.Script        one a request, in order of arrival, until they are used up
//	chance   Options.Chance                       now and then; a function of the seed, the prompt and the attempt
//
// A script in the prompt survives concurrency, since it counts the requests of that prompt alone. This is the way to
// make one work item of many fail twice and then succeed.
package fakechat

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// What a [Server] uses where its option is zero.
const (
	DefaultModel = "alice" // of Options.Model
	DefaultWords = 40      // of Options.Words
)

// HeaderFault is the request header that holds one fault for that request, as [ParseFaults] reads it.
const HeaderFault = "Fake-Fault"

// Options says how a server answers. The zero value is a healthy server that asks for no key.
type Options struct {
	// Seed chooses among the texts that a prompt may have, and among the requests that Chance spoils. 0 is a seed too.
	Seed uint64
	// Text is the sample that the words are taken from. Default: the opening of Alice's Adventures in Wonderland.
	Text string
	// Words is the least length of an answer, which continues to the end of its sentence or twice that length. Default
	// [DefaultWords].
	Words int
	// Model is the one model that is served; another name gets a 404. Default [DefaultModel].
	Model string
	// Key is the API key that requests must carry; another gets a 401. Empty asks for none.
	Key string
	// Faults are given to requests in order of arrival, one each. Later requests are answered well.
	Faults []Fault
	// Chance, from 0 to 1, is the part of the requests that get one of Among when no script is left. Default 0.
	Chance float64
	// Among is what Chance draws from. Default: limit, error, cut, drop, garbage, shape and empty, those that take no
	// time.
	Among []Fault
	// Now is the time that answers are dated with. Default [time.Now].
	Now func() time.Time
	// After ends the waits of Slow and Hanging, so that a test need not wait. Default [time.After].
	After func(time.Duration) <-chan time.Time
}

// Server is a fake model server. It is an [http.Handler] for POST /v1/chat/completions and GET /v1/models, and safe for
// concurrent use. [New] and [Start] make one.
type Server struct {
	opt   Options
	chain *chain
	mux   http.ServeMux
	http  *http.Server // nil without a listener
	url   string

	closing chan struct{}
	busy    sync.WaitGroup // answers that are being given, and the listener's loop

	mu       sync.Mutex
	closed   bool
	script   []Fault
	attempts map[string]int // by prompt
	requests []Request
}

// Request is what the server remembers of one request.
type Request struct {
	Prompt string // the last message of the user, as it was sent
	System string // the message of the system, if there was one
	Model  string // the model asked for
	// Attempt counts the requests with this prompt, from 1. It is 0 for a request that was wrong in itself: unreadable,
	// without the key, or for another model. Such a request takes nothing from a script.
	Attempt int
	// Fault is how the request was answered.
	Fault Fault
	// Status is the HTTP status that it was answered with, and 0 for Hanging and Dropped.
	Status int
}

// New makes a server without a listener, to be mounted as a handler. The error says which option is wrong.
func New(o Options) (*Server, error) {
	if o.Text == "" {
		o.Text = sample
	}
	if o.Words == 0 {
		o.Words = DefaultWords
	}
	if o.Model == "" {
		o.Model = DefaultModel
	}
	o.Among = slices.Clone(o.Among) // as Script does: a caller may use its slice again
	if len(o.Among) == 0 {
		for _, m := range []Mode{Limited, Failing, Cut, Dropped, BadJSON, WrongShape, Empty} {
			o.Among = append(o.Among, Fault{Mode: m})
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	s := &Server{opt: o, closing: make(chan struct{}), attempts: map[string]int{}}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("fake chat server: %w", err)
	}
	return s, nil
}

func (s *Server) prepare() (err error) {
	if s.opt.Words < 0 {
		return fmt.Errorf("an answer cannot have %d words", s.opt.Words)
	}
	if !(s.opt.Chance >= 0 && s.opt.Chance <= 1) {
		return fmt.Errorf("chance %v is not between 0 and 1", s.opt.Chance)
	}
	if err := checkAll(s.opt.Among); err != nil {
		return err
	}
	if err := s.Script(s.opt.Faults...); err != nil {
		return err
	}
	if s.chain, err = newChain(s.opt.Text); err != nil {
		return err
	}
	s.mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.mux.HandleFunc("GET /v1/models", s.models)
	return nil
}

// Start makes a server and lets it listen on a free port of 127.0.0.1. Close ends it.
func Start(o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fake chat server: %w", err)
	}
	s.url = "http://" + l.Addr().String() + "/v1"
	s.http = &http.Server{Handler: s}
	// Serve returns when Close closes the listener; there is no other way for a loopback listener to end.
	s.busy.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// URL is the base URL for a client, such as "http://127.0.0.1:40123/v1". It is "" without a listener.
func (s *Server) URL() string { return s.url }

// Model is the name of the model that is served.
func (s *Server) Model() string { return s.opt.Model }

// Close stops listening, cuts open connections, ends every wait, and returns when all is quiet. Closing twice does
// nothing more.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.busy.Wait()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Script appends faults to the script. The error names a fault that makes no sense, and then none is appended.
func (s *Server) Script(faults ...Fault) error {
	if err := checkAll(faults); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, faults...)
	return nil
}

// Text is what a good answer to the prompt says.
func (s *Server) Text(prompt string) string {
	return s.chain.say(s.opt.Seed, withoutScript(prompt), s.opt.Words)
}

// Requests are all requests for a completion so far, in order of arrival. The slice is the caller's own.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is the number of requests for a completion so far.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}
