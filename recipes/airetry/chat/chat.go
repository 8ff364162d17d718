// Package chat is a small client for the chat completions protocol, which OpenAI made and most model servers speak:
// one prompt goes in, one text comes out, over net/http and nothing else.
//
// A model is the least reliable colleague of a process. It is asked too often and says 429, it fails and says 500, it
// says nothing at all, it hangs up in the middle of a word, or it answers with something that is no answer. Every such
// case is one error type, [*Error], and it carries the two facts that a retry policy needs: whether asking again may
// help ([Error.Temporary]), and how long the server wants to be left alone ([Error.RetryAfter]).
//
//	reply, err := client.Complete(ctx, "Why Petri nets?")
//	if e, ok := errors.AsType[*chat.Error](err); ok && !e.Temporary {
//		// a wrong key, an unknown model: a person has to look at it
//	}
//
// The client itself never tries twice. The process that calls it does, where each attempt is seen, counted and kept;
// a second loop in here would multiply the attempts of the first.
//
// The API key goes into the Authorization header and nowhere else: a printed [Client] does not show it, and it is
// blotted out of whatever a server says in an error.
package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// What a [Client] uses where its field is zero.
const (
	DefaultTimeout  = 2 * time.Minute // of Client.Timeout; a long text of a slow model takes about one minute
	DefaultMaxReply = 4 << 20         // of Client.MaxReply, in bytes
)

// Client asks one model of one endpoint. BaseURL and Model are required, other fields may be zero. A Client is safe for
// concurrent use as long as its fields stay as they are.
type Client struct {
	// BaseURL is the address that "/chat/completions" is appended to, such as "https://api.openai.com/v1". A query
	// in it is kept, since some gateways want a version there.
	BaseURL string
	// Model is the name of the model as the endpoint knows it.
	Model string
	// Key is the API key, sent as a bearer token. Empty sends none, which local servers accept.
	Key string
	// System is said to the model before each prompt: its role and its manners. Empty says nothing.
	System string
	// Timeout limits one call, from the connection to the last byte. Default [DefaultTimeout]. A nearer deadline of
	// the context holds.
	Timeout time.Duration
	// MaxReply is the largest reply that is read, in bytes. Default [DefaultMaxReply]. It keeps an endpoint that
	// never stops talking from filling the memory.
	MaxReply int64
	// HTTP makes the requests. Default [http.DefaultClient].
	HTTP *http.Client
	// Now is asked for the time where a Retry-After is a date and the reply does not say what its own date is.
	// Default [time.Now].
	Now func() time.Time
}

// Reply is what the model answered.
type Reply struct {
	Text   string `json:"text"`   // the words; never empty
	Model  string `json:"model"`  // the model that answered, often more exact than the one asked for
	Finish string `json:"finish"` // why it stopped: "stop", or "length" for a text cut short; may be empty
	Usage  Usage  `json:"usage"`
}

// Usage counts the tokens that the endpoint charges for. Servers that do not count leave it zero.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Complete asks the model once and waits for its whole answer. Every error is an [*Error]; one that a context caused
// also matches [context.Canceled] or [context.DeadlineExceeded].
func (c *Client) Complete(ctx context.Context, prompt string) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	req, err := c.request(ctx, prompt)
	if err != nil {
		return Reply{}, c.named(&Error{Code: CodeConfig, Message: err.Error()})
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return Reply{}, c.named(broken(ctx, 0, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, cmp.Or(c.MaxReply, DefaultMaxReply)))
	// A refusal counts even where its explanation was cut short: the status line has said what matters.
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Reply{}, c.named(c.refused(resp, body))
	}
	if err != nil {
		return Reply{}, c.named(broken(ctx, resp.StatusCode, err))
	}
	reply, failure := decode(resp.StatusCode, body)
	if failure != nil {
		return Reply{}, c.named(failure)
	}
	reply.Model = cmp.Or(reply.Model, c.Model)
	return reply, nil
}

// request builds the call. Its errors are the caller's to correct, so they say which field is wrong; the address itself is
// not repeated, because a password or a key may stand in it.
func (c *Client) request(ctx context.Context, prompt string) (*http.Request, error) {
	if c.Model == "" {
		return nil, fmt.Errorf("the client's Model is empty; name a model that the endpoint serves")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the client's BaseURL is not an http address such as %q", publicURL)
	}
	if strings.ContainsFunc(c.Key, unicode.IsControl) {
		return nil, fmt.Errorf("the client's Key holds a line break or another control character; copy it again")
	}
	messages := []message{{Role: "user", Content: prompt}}
	if c.System != "" {
		messages = append([]message{{Role: "system", Content: c.System}}, messages...)
	}
	body, err := json.Marshal(question{Model: c.Model, Messages: messages})
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	u = u.JoinPath("chat/completions")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the client's BaseURL cannot be asked for %q", "chat/completions")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	return req, nil
}

// String names the model and the endpoint, without the key.
func (c Client) String() string { return fmt.Sprintf("model %q at %s", c.Model, publicName(c.BaseURL)) }

// GoString is what %#v prints: the same as [Client.String], for the same reason.
func (c Client) GoString() string { return "chat.Client(" + c.String() + ")" }

// MarshalText is what encoders and structured loggers write: the same again. It never fails.
func (c Client) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// publicName is an address without the parts that may hold a secret: user, password, query and fragment.
func publicName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an unreadable address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
