package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// Command is a program and all that it is run with. It is a value; the zero value is invalid.
type Command struct {
	// Argv is the program and its arguments. A program without a slash is looked up in the PATH of the calling process.
	Argv []string

	// Dir is the folder that it runs in. It has to be set.
	Dir string

	// Env is its whole environment, each as KEY=value. Default: empty; nothing is taken over from the calling process.
	Env []string

	// Stderr gets what the program writes to standard error, as it is written, beside the end of it that is kept for
	// errors. Default: nil, which drops it.
	Stderr io.Writer

	// Permanent are exit codes after which another attempt makes no sense. Default: none, so all failures are worth
	// another attempt.
	Permanent []int

	// Grace is the time between SIGTERM and SIGKILL when the context ends. Default: 10 seconds.
	Grace time.Duration

	// MaxOutput is the most bytes that the program may write to standard output. Default: 16 MiB.
	MaxOutput int

	// Clock measures Grace. Default: retry.SystemClock.
	Clock retry.Clock
}

// The defaults of a command.
const (
	DefaultGrace     = 10 * time.Second
	DefaultMaxOutput = 16 << 20
)

// kept is how much of the end of standard error an error has.
const kept = 4 << 10

// ErrInvalid is what the error of a command that cannot be run is, by errors.Is.
var ErrInvalid = errors.New("invalid command")

// Validate reports what is missing or wrong as one error, which is [ErrInvalid]; nil if nothing is. It does not look at the
// file system.
func (c Command) Validate() error {
	var wrong []string
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		wrong = append(wrong, "Argv names no program")
	}
	if c.Dir == "" {
		wrong = append(wrong, "Dir is empty: name the folder to run in")
	}
	for _, v := range c.Env {
		if !strings.Contains(v, "=") {
			wrong = append(wrong, fmt.Sprintf("Env has %q: use KEY=value", v))
		}
	}
	if c.Grace < 0 || c.MaxOutput < 0 {
		wrong = append(wrong, "Grace or MaxOutput is negative: use 0 for the default")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(wrong, "; "))
}

// ExitError says that a program failed: it exited with another code than 0, or by a signal.
type ExitError struct {
	Program string // Argv[0]
	Code    int    // the exit code; -1 if a signal ended it
	Signal  string // the signal that ended it, such as "killed"; "" if none did
	Stderr  string // the end of what it wrote to standard error, up to 4 KiB

	permanent bool
}

// Error returns "render.py exited with 3: no such page", with the last line of standard error.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s exited with %d", e.Program, e.Code)
	if e.Signal != "" {
		text = fmt.Sprintf("%s was ended by a signal: %s", e.Program, e.Signal)
	}
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		text += ": " + last
	}
	return text
}

// Permanent reports whether the exit code is one of [Command.Permanent].
func (e *ExitError) Permanent() bool { return e.permanent }

// FailureCode is the code of the failure that a durable attempt is recorded with: "exit".
func (e *ExitError) FailureCode() string { return "exit" }

// FailureDetails are the details of that failure: a JSON object with the exit code, the signal and the end of standard
// error.
func (e *ExitError) FailureDetails() json.RawMessage {
	details, _ := json.Marshal(struct { // strings and numbers always have a JSON form
		Exit   int    `json:"exit"`
		Signal string `json:"signal,omitempty"`
		Stderr string `json:"stderr,omitempty"`
	}{e.Code, e.Signal, e.Stderr})
	return details
}

// OutputError says that a program exited with 0, and what it wrote is no result.
type OutputError struct {
	Program string
	Err     error // why: the error of package json, or that there was too much of it
}

// Error returns "render.py wrote no valid result: unexpected end of JSON input".
func (e *OutputError) Error() string {
	return fmt.Sprintf("%s wrote no valid result: %v", e.Program, e.Err)
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// FailureCode is the code of the failure that a durable attempt is recorded with: "output".
func (e *OutputError) FailureCode() string { return "output" }

// FailureDetails returns nil.
func (e *OutputError) FailureDetails() json.RawMessage { return nil }

// Call runs the command with the JSON form of in on standard input, and returns what it writes to standard output, read as
// JSON. The error is ctx.Err() if the context ended, with the last of what the program said; [*ExitError] if it failed;
// [*OutputError] if its result is none; otherwise why it could not be run, which is [ErrInvalid] if the command is.
func Call[Out, In any](ctx context.Context, c Command, in In) (out Out, err error) {
	if err := c.Validate(); err != nil {
		return out, retry.Permanent(err)
	}
	input, err := json.Marshal(in)
	if err != nil {
		return out, retry.Permanent(fmt.Errorf("the input of %s has no JSON form: %w", c.Argv[0], err))
	}
	output, err := c.run(ctx, input)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(output, &out); err != nil {
		return out, &OutputError{c.Argv[0], err}
	}
	return out, nil
}
