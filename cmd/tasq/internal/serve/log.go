package serve

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// errorLog returns a logger for an http.Server that writes to a structured log.
func errorLog(to *slog.Logger) *log.Logger { return log.New(lines{to}, "", 0) }

// lines writes each call of Write as a message.
type lines struct{ to *slog.Logger }

// levels maps the beginnings of an http.Server's messages to levels. Any client that reaches the port can cause some of
// them at any rate, such as a connection that does not use TLS or ends too soon.
// reaches the port can cause, as often as they like.
var levels = []struct {
	begins string
	level  slog.Level
}{
	{"http: TLS handshake error", slog.LevelDebug},
	{"http2: server: error reading preface", slog.LevelDebug},
	{"http: panic serving", slog.LevelError},
	{"http: Accept error", slog.LevelError},
}

// Write implements io.Writer.
func (l lines) Write(message []byte) (int, error) {
	text, level := strings.TrimSpace(string(message)), slog.LevelWarn
	for _, known := range levels {
		if strings.HasPrefix(text, known.begins) {
			level = known.level
			break
		}
	}
	l.to.Log(context.Background(), level, "tasq pages: "+text)
	return len(message), nil
}
