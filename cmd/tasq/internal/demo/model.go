package demo

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
)

// model is the model of the demo.
type model struct {
	client *chat.Client
	name   string // for display, without the key
	close  func()
}

// model returns the endpoint of the options, or of the environment, or starts a server on this machine.
func (o *Options) model() (*model, error) {
	client, err := chat.FromEnv()
	switch {
	case o.URL != "":
		if o.Model == "" {
			return nil, fmt.Errorf("%w: the endpoint %s needs the name of a model", ErrUsage, o.URL)
		}
		client = &chat.Client{BaseURL: o.URL, Model: o.Model, Key: o.Key}
	case o.Model != "" || o.Key != "":
		return nil, fmt.Errorf("%w: a model or a key without a URL; give the endpoint that they are for", ErrUsage)
	case errors.Is(err, chat.ErrNotConfigured):
		return o.local()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if o.Faults != "" {
		return nil, fmt.Errorf("%w: faults are for the local server; %s fails when it likes", ErrUsage, client)
	}
	return &model{client: client, name: client.String(), close: func() {}}, nil
}

// local starts a server on this machine that fails according to the script.
func (o *Options) local() (*model, error) {
	script, timeout := cmp.Or(o.Faults, DefaultFaults), 5*time.Second
	switch {
	case o.Fast && o.Faults == "":
		script = FastFaults // has no fault that a timeout ends, and a slow machine can need a second for an answer
	case o.Fast:
		timeout = 300 * time.Millisecond
	}
	faults, err := fakechat.ParseFaults(script)
	if err != nil {
		return nil, fmt.Errorf("%w: faults: %w", ErrUsage, err)
	}
	server, err := fakechat.Start(fakechat.Options{})
	if err != nil {
		return nil, err
	}
	transport := &faulty{faults: faults, http: new(http.Transport)}
	return &model{
		client: &chat.Client{
			BaseURL: server.URL(), Model: server.Model(), Timeout: timeout, HTTP: &http.Client{Transport: transport},
		},
		name: fmt.Sprintf("a local server that will say: %s, and then answer", script),
		close: func() {
			transport.http.CloseIdleConnections()
			server.Close()
		},
	}, nil
}

// faulty requests from the server the fault for the current attempt. If the server counted requests itself, its script
// would start again with each run of the demo, and a resumed case would get the first faults twice.
type faulty struct {
	faults []fakechat.Fault
	http   *http.Transport
}

// RoundTrip implements http.RoundTripper. The draft after a rejection is written without faults.
func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	w, ok := builder.WorkFrom(r.Context())
	if ok && w.Item != nil && w.Item.Generation == 1 && w.Item.Attempt <= len(f.faults) {
		r = r.Clone(r.Context())
		r.Header.Set(fakechat.HeaderFault, f.faults[w.Item.Attempt-1].String())
	}
	return f.http.RoundTrip(r)
}
