package cli

import (
	"context"
	"io"
	"sync"
)

// input is standard input that stops reading when the command is interrupted, so that a process that waits for input at
// a terminal can be ended. It reads nothing before the first Read.
type input struct {
	ctx   context.Context
	from  io.Reader
	begin sync.Once
	pipe  *io.PipeReader
}

// Read reads input, or returns the context's error once the context has ended.
func (in *input) Read(p []byte) (int, error) {
	in.begin.Do(func() {
		r, w := io.Pipe()
		in.pipe = r
		context.AfterFunc(in.ctx, func() { w.CloseWithError(in.ctx.Err()) })
		go func() { // a read in progress cannot be canceled; it ends with the process
			_, err := io.Copy(w, in.from)
			w.CloseWithError(err)
		}()
	})
	return in.pipe.Read(p)
}
