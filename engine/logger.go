package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// guardedLog is the handler of Config.Logger, which is called on goroutines of the engine's own: there its panic would
// end the process, as that of a test's log does once the test is over, and runtime.Goexit the engine. Its records are
// lost then, and it is said once where.
type guardedLog struct {
	slog.Handler
	reported *sync.Once
}

func guarded(log *slog.Logger) *slog.Logger {
	return slog.New(guardedLog{log.Handler(), new(sync.Once)})
}

// Enabled implements [slog.Handler].
func (g guardedLog) Enabled(ctx context.Context, level slog.Level) bool {
	defer g.recoveredEnabled(level)
	return g.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler]. It calls the handler on a goroutine that nothing else needs.
func (g guardedLog) Handle(ctx context.Context, r slog.Record) error {
	done := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%w: the handler of Config.Logger did not return", ErrCallback)
		defer func() { done <- err }()
		defer g.recovered(r.Message)
		err = g.Handler.Handle(ctx, r)
	}()
	return <-done
}

// WithAttrs implements [slog.Handler].
func (g guardedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guardedLog{g.Handler.WithAttrs(attrs), g.reported}
}

// WithGroup implements [slog.Handler].
func (g guardedLog) WithGroup(name string) slog.Handler {
	return guardedLog{g.Handler.WithGroup(name), g.reported}
}

// recovered is deferred around a call of the handler.
func (g guardedLog) recovered(lost string) {
	if p := recover(); p != nil {
		g.report(p, lost)
	}
}

// recoveredEnabled is recovered for a question to the handler, which is asked at each commit: its words are put
// together if they are needed.
func (g guardedLog) recoveredEnabled(level slog.Level) {
	if p := recover(); p != nil {
		g.report(p, "records of level "+level.String())
	}
}

func (g guardedLog) report(panicked any, lost string) {
	g.reported.Do(func() {
		fmt.Fprintf(os.Stderr, "tasq: the handler of Config.Logger panicked: %v; lost is %q, and whatever else it panics at\n", panicked, lost)
	})
}
