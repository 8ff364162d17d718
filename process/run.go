package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// late is how long what a program started, and what is no longer in its process group, may hold its output open.
const late = time.Second

// running is a program that was started, and our ends of its pipes.
type running struct {
	Command
	cmd          *exec.Cmd
	in, out, err *os.File
	stdout       bytes.Buffer
	stderr       tail
	copied       sync.WaitGroup
	stopKill     func() bool // stops the SIGKILL that follows SIGTERM; nil if there was none
}

// run runs the program, and returns what it wrote.
func (c Command) run(ctx context.Context, input []byte) ([]byte, error) {
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = DefaultMaxOutput
	}
	if c.Clock == nil {
		c.Clock = retry.SystemClock
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s was not started: %w", c.Argv[0], context.Cause(ctx))
	}
	r := &running{Command: c, stderr: tail{also: c.Stderr}}
	if err := r.start(ctx); err != nil {
		return nil, fmt.Errorf("%s cannot be run: %w", c.Argv[0], err)
	}
	r.copied.Go(func() {
		_, _ = r.in.Write(input) // a program need not read it
		_ = r.in.Close()
	})
	r.copied.Go(r.read)
	r.copied.Go(func() { _, _ = io.Copy(&r.stderr, r.err) })
	err := r.wait()
	return r.stdout.Bytes(), r.failure(ctx, err)
}

// start starts the program in a process group of its own.
func (r *running) start(ctx context.Context) error {
	// Pipes of our own: with those of package exec, Wait would wait for all that holds them, before the group is ended.
	var theirs [3]*os.File
	var err error
	for i, end := range []**os.File{&r.in, &r.out, &r.err} {
		reads, writes, failed := os.Pipe()
		err = errors.Join(err, failed)
		if i == 0 {
			theirs[i], *end = reads, writes
		} else {
			theirs[i], *end = writes, reads
		}
	}
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	r.cmd = exec.CommandContext(ctx, r.Argv[0], r.Argv[1:]...)
	r.cmd.Dir, r.cmd.Env = r.Dir, append([]string{}, r.Env...)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	r.cmd.Cancel = func() error {
		r.stopKill = r.Clock.AfterFunc(r.Grace, func() { killGroup(r.cmd) })
		return endGroup(r.cmd)
	}
	ownGroup(r.cmd)
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		r.close()
	}
	return err
}

// read keeps what the program writes. One that writes too much is ended.
func (r *running) read() {
	_, _ = io.Copy(&r.stdout, io.LimitReader(r.out, int64(r.MaxOutput)+1))
	if r.stdout.Len() > r.MaxOutput {
		killGroup(r.cmd)
	}
}

// wait waits for the program, ends what is left of its group, and then for the end of its output.
func (r *running) wait() error {
	err := r.cmd.Wait()
	if r.stopKill != nil {
		r.stopKill()
	}
	killGroup(r.cmd)
	stop := r.Clock.AfterFunc(late, r.close)
	r.copied.Wait()
	stop()
	r.close()
	return err
}

func (r *running) close() {
	for _, f := range []*os.File{r.in, r.out, r.err} {
		_ = f.Close()
	}
}

// failure says what the end of the program means.
func (r *running) failure(ctx context.Context, err error) error {
	program := r.Argv[0]
	if r.stdout.Len() > r.MaxOutput {
		return &OutputError{program, fmt.Errorf("it is longer than %d bytes", r.MaxOutput)}
	}
	if err == nil {
		return nil
	}
	failed := &ExitError{Program: program, Code: r.cmd.ProcessState.ExitCode(), Stderr: r.stderr.String()}
	if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		failed.Signal = status.Signal().String()
	}
	failed.permanent = slices.Contains(r.Permanent, failed.Code)
	if ctx.Err() != nil {
		return fmt.Errorf("%s was stopped: %w: %w", program, context.Cause(ctx), failed)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); !exited {
		return fmt.Errorf("%s cannot be waited for: %w", program, err)
	}
	return failed
}

// tail is a writer that keeps the end of what is written.
type tail struct {
	also  io.Writer // gets all of it; nil for none
	bytes []byte
}

// Write implements io.Writer. An error of also is ignored, so that a program does not fail for its log.
func (t *tail) Write(b []byte) (int, error) {
	if t.also != nil {
		_, _ = t.also.Write(b)
	}
	t.bytes = append(t.bytes, b...)
	if n := len(t.bytes) - kept; n > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[n:]...)
	}
	return len(b), nil
}

// String returns what was kept, as text.
func (t *tail) String() string { return strings.ToValidUTF8(string(t.bytes), "\ufffd") }
