package admin_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// limited is an answer that counts the limits of its connection.
type limited struct {
	*httptest.ResponseRecorder
	reads, writes int
}

func (l *limited) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		l.reads++
	}
	return nil
}

func (l *limited) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		l.writes++
	}
	return nil
}

// A client that stops in the middle of a request or an answer does not keep its connection, and what the handler holds for it.
func TestClientsMaySlowDownButNotStop(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.Handler{
		"pages":   admin.Handler(admin.Reading(empty{}, nil), admin.Config{Access: admin.ReadOnly, Logger: slog.New(slog.DiscardHandler)}),
		"webhook": admin.Webhook(nil, 0),
	} {
		w := &limited{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/commands", strings.NewReader("{")))
		require.NotZero(t, w.reads, name)
		require.NotZero(t, w.writes, name)
	}
}
