package step

import (
	"context"
	"log/slog"
	"slices"
)

// Log returns the job's logger, which does not repeat on a replay what was logged on an earlier run. On a replay,
// lines are buffered until the branch does something new, and are dropped when it reaches a recorded step, or
// branches that it waited for. After a crash a line may be repeated or missing.
//
//	step.Log(ctx).Info("charged", "order", o.ID)
//
// In a step's function every line is logged. Outside a job it is slog.Default().
func Log(ctx context.Context) *slog.Logger {
	s := scopeOf(ctx)
	switch {
	case s == nil:
		return slog.Default()
	case s.inside != "":
		return s.run.info.Log
	}
	return slog.New(&onceHandler{s.run.info.Log.Handler(), s})
}

// onceHandler passes on the lines that are new.
type onceHandler struct {
	next slog.Handler
	at   *scope
}

// line is one that is held back.
type line struct {
	ctx    context.Context
	to     slog.Handler
	record slog.Record
}

func emit(lines []line) {
	for _, l := range lines {
		_ = l.to.Handle(l.ctx, l.record) // a logger has no way to report it
	}
}

// Enabled is the handler's.
func (h *onceHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle passes a line on, or holds it back.
func (h *onceHandler) Handle(ctx context.Context, record slog.Record) error {
	r, b := h.at.run, h.at.branch
	r.load()
	r.mu.Lock()
	held := b.replays()
	if held {
		b.lines = append(b.lines, line{ctx, h.next, record.Clone()})
	}
	r.mu.Unlock()
	if held {
		return nil
	}
	return h.next.Handle(ctx, record)
}

// replays reports whether a branch has done nothing in this run that it had not done in an earlier one. The lock is
// held.
func (b *branch) replays() bool { return !b.live && len(b.run.order) > 0 }

// WithAttrs returns the handler with attributes.
func (h *onceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &onceHandler{h.next.WithAttrs(attrs), h.at}
}

// WithGroup returns the handler within a group.
func (h *onceHandler) WithGroup(name string) slog.Handler {
	return &onceHandler{h.next.WithGroup(name), h.at}
}

// takeLines takes the lines that a branch has held back, as it comes to something new. The lock is held; [call.writeLines]
// follows once it is not.
func (c *call) takeLines() {
	c.lines = append(c.lines, c.branch.lines...)
	c.branch.lines = nil
}

// remainingLines takes the lines that are held back when the function has returned, but for those of branches that were not
// chosen.
func (r *Run) remainingLines() (lines []line) {
	r.mu.Lock() // goroutines that the run knows nothing of may still log
	defer r.mu.Unlock()
	for _, b := range slices.Concat(r.branches, []*branch{r.main}) {
		if !b.canceled {
			lines = append(lines, b.lines...)
		}
		b.lines = nil
	}
	return lines
}

// writeLines writes the lines that were taken.
func (c *call) writeLines() {
	emit(c.lines)
	c.lines = nil
}
