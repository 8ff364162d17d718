package cli

import (
	"context"
	"io"
	"sync"
)

// input is standard input that stops being read when the command is interrupted: a process that waits at a terminal for a
// model that never comes can be ended. Nothing is read before the first Read.
type input struct {
	ctx   context.Context
	from  io.Reader
	begin sync.Once
	pipe  *io.PipeReader
}

// Read reads on, or returns the context's error once that has ended.
func (in *input) Read(p []byte) (int, error) {
	in.begin.Do(func() {
		r, w := io.Pipe()
		in.pipe = r
		context.AfterFunc(in.ctx, func() { w.CloseWithError(in.ctx.Err()) })
		go func() { // the read that is under way cannot be ended, and ends with the process
			_, err := io.Copy(w, in.from)
			w.CloseWithError(err)
		}()
	})
	return in.pipe.Read(p)
}
