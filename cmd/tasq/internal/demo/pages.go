package demo

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/serve"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
)

// withBulk returns the workflows for the engine of a demo: also that of bulk actions, if the demo serves pages.
func (s *Setting) withBulk(w engine.Workflow) (all []engine.Workflow, many *bulk.Bulk) {
	if !s.Serve {
		return []engine.Workflow{w}, nil
	}
	many = bulk.New(engine.Code)
	return []engine.Workflow{w, many}, many
}

// pages serves the pages of the demo while it runs, if Serve is set. wait waits for the end of the context, and stop
// stops the server.
func (s *Setting) pages(ctx context.Context, out io.Writer, e *engine.Engine, many *bulk.Bulk) (wait, stop func(), err error) {
	if !s.Serve {
		return func() {}, func() {}, nil
	}
	server, err := serve.Open(e, admin.Config{Bulk: many}, serve.Options{Act: true, Listen: s.ServeAt, Name: "you"})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	s.url = server.URL()
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		if err := server.Run(ctx, out); err != nil {
			fmt.Fprintf(out, "the pages are not served any more: %v\n", err)
		}
	})
	wait = func() {
		fmt.Fprintln(out, "The pages stay until you press Ctrl-C.")
		<-ctx.Done()
	}
	return wait, func() { cancel(); done.Wait() }, nil
}
