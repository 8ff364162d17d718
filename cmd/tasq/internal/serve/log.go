package serve

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// errorLog is where an http.Server writes what goes wrong, as lines of a structured log.
func errorLog(to *slog.Logger) *log.Logger { return log.New(lines{to}, "", 0) }

// lines takes one message with each call of Write.
type lines struct{ to *slog.Logger }

// levels are those of the messages of an http.Server, by their beginnings. A connection that does not speak TLS, or ends too soon, is what anyone who
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
