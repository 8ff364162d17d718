package chat

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The environment variables that [FromEnv] reads. The names are OpenAI's own, which other tools read as well, so that
// an environment that works for them works here.
const (
	EnvBaseURL = "OPENAI_BASE_URL" // the endpoint; OpenAI's own where only a key is set
	EnvKey     = "OPENAI_API_KEY"  // the key; may be unset for a local server
	EnvModel   = "OPENAI_MODEL"    // the model; no default, since models are withdrawn
)

// publicURL is where the inventor of the protocol serves it.
const publicURL = "https://api.openai.com/v1"

// ErrNotConfigured is the error of [FromEnv] where the environment names no endpoint and holds no key. A demo may continue
// with a fake model then; every other error means that the environment is meant to work and does not.
var ErrNotConfigured = errors.New("no chat endpoint: set " + EnvBaseURL + " or " + EnvKey)

// FromEnv makes a client from the variables [EnvBaseURL], [EnvKey] and [EnvModel]. It sends no request, so a wrong key shows
// only at the first [Client.Complete]. The error is [ErrNotConfigured] where neither endpoint nor key is set.
func FromEnv() (*Client, error) {
	c := &Client{BaseURL: env(EnvBaseURL), Key: env(EnvKey), Model: env(EnvModel)}
	if c.BaseURL == "" && c.Key == "" {
		return nil, ErrNotConfigured
	}
	c.BaseURL = cmp.Or(c.BaseURL, publicURL)
	if c.Model == "" {
		return nil, fmt.Errorf("chat endpoint %s: no model: set %s", publicName(c.BaseURL), EnvModel)
	}
	return c, nil
}

// env reads a variable without the line break that a key copied from a file so often ends with.
func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
