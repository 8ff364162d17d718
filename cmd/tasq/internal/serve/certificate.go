package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// ErrCertificate is the error of an invalid certificate or key.
var ErrCertificate = errors.New("the certificate cannot be used")

// certificate is the TLS certificate of the server: a chain and its key, in two PEM files. They are read again when one
// of them changes, since certificates are renewed while the server runs.
type certificate struct {
	log *slog.Logger

	mu         sync.Mutex
	chain, key file
	pair       *tls.Certificate
	failed     string // why the files are invalid; "" if they are valid
}

// openCertificate reads the files of a certificate and its key; nil if both paths are "". The error wraps
// [ErrCertificate].
func openCertificate(chain, key string, log *slog.Logger) (*certificate, error) {
	switch {
	case chain == "" && key == "":
		return nil, nil
	case chain == "" || key == "":
		return nil, fmt.Errorf("%w: it is one of two files; name the certificate with --tls-cert and its key with --tls-key", ErrCertificate)
	}
	c := &certificate{log: cmp.Or(log, slog.Default()), chain: file{path: chain}, key: file{path: key}}
	return c, c.read()
}

func (c *certificate) read() error {
	chain, err := c.chain.read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	key, err := c.key.read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("%w: %s with the key %s: %w", ErrCertificate, c.chain.path, c.key.path, err)
	}
	c.pair = &pair
	return nil
}

// get is the GetCertificate function of a tls.Config. While the files are invalid, for example when only one of them
// has been replaced, the old certificate stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.chain.changed() && !c.key.changed() {
		return c.pair, nil
	}
	if err := c.read(); err == nil {
		c.failed = ""
		c.log.Info("tasq pages: the certificate is read again", "file", c.chain.path, "until", c.pair.Leaf.NotAfter)
	} else if text := err.Error(); text != c.failed {
		c.failed = text
		c.log.Error("tasq pages: the certificate is not read again; that of before stays", "error", err)
	}
	return c.pair, nil
}
