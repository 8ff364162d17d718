package serve

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a server meets is in the structured log: what anyone who reaches the port can cause at DEBUG, its own failures at ERROR.
func TestServerLogsErrors(t *testing.T) {
	var out bytes.Buffer
	log := errorLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the disk is gone") }))
	server.Config.ErrorLog = log
	server.StartTLS()

	scanner, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = scanner.Write([]byte("\x01\x02 this is no handshake"))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, scanner) // until the server has closed the connection, which it does once it has logged that
	require.NoError(t, scanner.Close())

	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS12
	_, err = client.Get(server.URL)
	require.Error(t, err)
	server.Close()
	log.Println("http: Accept error: too many open files; retrying in 5ms")
	log.Println("http: superfluous response.WriteHeader call")

	text := out.String()
	require.Contains(t, text, `level=DEBUG msg="tasq pages: http: TLS handshake error from 127.0.0.1:`)
	require.Contains(t, text, `level=ERROR msg="tasq pages: http: panic serving 127.0.0.1:`)
	require.Contains(t, text, `the disk is gone\ngoroutine`, "the stack is part of the line")
	require.Contains(t, text, `level=ERROR msg="tasq pages: http: Accept error`)
	require.Contains(t, text, `level=WARN msg="tasq pages: http: superfluous`)
	require.Equal(t, 4, strings.Count(text, "\n"), text)
}
