package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// guardedLog is the handler of Config.Logger, which is called on goroutines of the engine. There a panic would end the
// process, as that of the log of a test that has ended, and runtime.Goexit would end a part of the engine. The record
// is lost then, and the first such loss is printed.
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

// Handle implements [slog.Handler]. It calls the handler on a separate goroutine, so that runtime.Goexit ends only
// that.
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

// recovered recovers from a panic of the handler. It is deferred.
func (g guardedLog) recovered(lost string) {
	if p := recover(); p != nil {
		g.report(p, lost)
	}
}

// recoveredEnabled is recovered for Enabled, which is called at each commit: it formats the text only after a panic.
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
