package serve_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/serve"
	"github.com/tasq-dev/tasq/engine/enginetest"
)

// pair is the files of a certificate for this machine, signed by itself, and of its key.
type pair struct {
	t          *testing.T
	chain, key string
	writes     int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, chain: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
	p.renew(1)
	return p
}

// renew writes a new certificate with a serial number.
func (p *pair) renew(serial int64) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(p.t, err)
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "tasq"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(p.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(p.t, err)
	p.write(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	p.write(p.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// write changes a file, also where the times of files are coarse.
func (p *pair) write(path string, text []byte) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(path, text, 0o600))
	p.writes++
	at := time.Now().Add(time.Duration(p.writes) * time.Second)
	require.NoError(p.t, os.Chtimes(path, at, at))
}

// browser trusts the certificate that is in the file now.
func (p *pair) browser() *http.Client {
	p.t.Helper()
	text, err := os.ReadFile(p.chain)
	require.NoError(p.t, err)
	roots := x509.NewCertPool()
	require.True(p.t, roots.AppendCertsFromPEM(text))
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	p.t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestPagesAreServedByTLS(t *testing.T) {
	p := newPair(t)
	file := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(file, []byte(line(t, "ann", "right", ":act")), 0o600))
	url := run(t, serve.Options{Listen: "127.0.0.1:0", Users: file, Certificate: p.chain, Key: p.key, Log: slog.New(slog.DiscardHandler)})
	require.True(t, strings.HasPrefix(url, "https://127.0.0.1:"), url)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.SetBasicAuth("ann", "right")
	w, err := p.browser().Do(r)
	require.NoError(t, err)
	require.NoError(t, w.Body.Close())
	require.Equal(t, http.StatusOK, w.StatusCode)
	_, err = http.DefaultClient.Do(r.Clone(t.Context()))
	require.ErrorContains(t, err, "certificate", "no authority that this machine trusts has signed it")
	code, _ := ask(t, http.DefaultClient, "http://"+strings.TrimPrefix(url, "https://"))
	require.Equal(t, http.StatusBadRequest, code, "not without TLS")
}

// The cookie of the token goes over encrypted connections only.
func TestTheCookieStaysOnTLS(t *testing.T) {
	p := newPair(t)
	for url, secure := range map[string]bool{
		run(t, serve.Options{Listen: "127.0.0.1:0", Certificate: p.chain, Key: p.key}): true,
		run(t, serve.Options{Listen: "127.0.0.1:0"}):                                   false,
	} {
		c := p.browser()
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		w, err := c.Do(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Len(t, w.Cookies(), 1)
		require.Equal(t, secure, w.Cookies()[0].Secure, url)
	}
}

// A renewed certificate is shown to the next connection. One that cannot be used changes nothing, and is logged once.
func TestARenewedCertificateIsShown(t *testing.T) {
	p := newPair(t)
	var log bytes.Buffer
	lines := slog.New(slog.NewTextHandler(&log, nil))
	url := run(t, serve.Options{Listen: "127.0.0.1:0", Certificate: p.chain, Key: p.key, Log: lines})
	serial := func() int64 {
		c, err := tls.Dial("tcp", strings.Split(strings.TrimPrefix(url, "https://"), "/")[0], &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	p.renew(2)
	require.EqualValues(t, 2, serial())
	p.write(p.key, []byte("half a k"))
	require.EqualValues(t, 2, serial())
	require.EqualValues(t, 2, serial())
	require.NoError(t, os.Remove(p.chain))
	require.EqualValues(t, 2, serial())
	p.renew(3)
	require.EqualValues(t, 3, serial())
	require.Equal(t, 2, strings.Count(log.String(), "is read again"), log.String())
	require.Equal(t, 2, strings.Count(log.String(), "not read again"), log.String())
}

func TestBadCertificates(t *testing.T) {
	p, other := newPair(t), newPair(t)
	for _, c := range []struct{ chain, key, says string }{
		{p.chain, "", "--tls-key"},
		{"", p.key, "--tls-cert"},
		{p.chain, filepath.Join(t.TempDir(), "none"), "none"},
		{filepath.Join(t.TempDir(), "none"), p.key, "none"},
		{p.chain, other.key, p.chain},
		{p.key, p.key, p.key},
		{t.TempDir(), p.key, "directory"},
	} {
		_, err := serve.Open(enginetest.New(t).Engine, admin.Config{}, serve.Options{Listen: "127.0.0.1:0", Certificate: c.chain, Key: c.key})
		require.ErrorIs(t, err, serve.ErrCertificate)
		require.ErrorContains(t, err, c.says)
	}
}

// Who serves passwords to other machines without TLS is warned.
func TestPasswordsWithoutTLSAreAWarning(t *testing.T) {
	file, p := filepath.Join(t.TempDir(), "users"), newPair(t)
	require.NoError(t, os.WriteFile(file, []byte(line(t, "ann", "right", "")), 0o600))
	for _, c := range []struct {
		o     serve.Options
		warns bool
	}{
		{serve.Options{Listen: "0.0.0.0:0", Users: file}, true},
		{serve.Options{Listen: "0.0.0.0:0", Users: file, Certificate: p.chain, Key: p.key}, false},
		{serve.Options{Listen: "127.0.0.1:0", Users: file}, false},
	} {
		var log bytes.Buffer
		c.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		run(t, c.o)
		require.Equal(t, c.warns, strings.Contains(log.String(), "does not encrypt"), log.String())
	}
}

// A connection that speaks no TLS is a line of the log of the pages at DEBUG, and none on standard error.
func TestAPortScannerIsNoError(t *testing.T) {
	var out bytes.Buffer
	p, log := newPair(t), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	base := run(t, serve.Options{Listen: "127.0.0.1:0", Certificate: p.chain, Key: p.key, Log: log})
	at, _, _ := strings.Cut(strings.TrimPrefix(base, "https://"), "/")
	scanner, err := net.Dial("tcp", at)
	require.NoError(t, err)
	_, err = scanner.Write([]byte("\x01\x02 this is no handshake"))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, scanner) // until the server has closed the connection, which it does once it has logged that
	require.NoError(t, scanner.Close())
	log.Info("the end") // whose lock is that of the line before
	require.Contains(t, out.String(), `level=DEBUG msg="tasq pages: http: TLS handshake error`)
}
